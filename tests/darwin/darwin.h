/* darwin.h - imitates macOS: hides functions that macOS lacks, and declares functions that
 * macOS has but this C library hides without _GNU_SOURCE. The test includes it before every
 * file. */
#ifndef TEST_DARWIN_H
#define TEST_DARWIN_H

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef _GNU_SOURCE
#error "macOS does not know _GNU_SOURCE: compile with -U_GNU_SOURCE"
#endif

#define st_mtimespec st_mtim

/* --------------------------------------------------------- functions that both systems have */

int asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int vasprintf(char **text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
char *strcasestr(const char *in, const char *what);
void *memmem(const void *in, size_t size, const void *what, size_t length);
#define RTLD_NEXT ((void *)-1L)

/* ---------------------------------------------------------------- names that only macOS has */

#define F_NOCACHE 48
#define POSIX_SPAWN_SETSID 0x400
#define RENAME_EXCL 4
int renamex_np(const char *from, const char *to, unsigned flags);
int pthread_cond_timedwait_relative_np(pthread_cond_t *condition, pthread_mutex_t *lock,
                                       const struct timespec *left);

/* ------------------------------------------------------------------ names that macOS lacks */

#pragma GCC poison sigtimedwait sigwaitinfo sigqueue SIGPWR SIGSTKFLT SIGRTMIN SIGRTMAX
#pragma GCC poison pthread_condattr_setclock pthread_mutex_timedlock pthread_timedjoin_np
#pragma GCC poison pthread_tryjoin_np pthread_setaffinity_np pthread_spin_lock
#pragma GCC poison pthread_barrier_wait sem_init sem_timedwait clock_nanosleep timer_create
#pragma GCC poison posix_fadvise posix_fallocate fallocate fdatasync O_DIRECT O_PATH O_TMPFILE
#pragma GCC poison MADV_HUGEPAGE MAP_POPULATE MAP_HUGETLB mremap memfd_create
#pragma GCC poison pipe2 accept4 SOCK_CLOEXEC SOCK_NONBLOCK MSG_NOSIGNAL dup3 ppoll
#pragma GCC poison renameat2 RENAME_NOREPLACE qsort_r strchrnul memrchr mempcpy rawmemchr
#pragma GCC poison sched_getaffinity sched_setaffinity cpu_set_t CPU_COUNT get_nprocs gettid
#pragma GCC poison le16toh le32toh le64toh htole16 htole32 htole64 be32toh be64toh bswap_64
#pragma GCC poison canonicalize_file_name secure_getenv program_invocation_name execvpe
#pragma GCC poison sincos exp10 fopencookie posix_openpt_np RLIMIT_RTPRIO st_atim st_ctim

#endif
