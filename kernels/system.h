/* system.h - what operating systems have in their own ways, and nothing else asks them for:
 * system_linux.c and system_darwin.c (macOS). Descriptors that these functions open are not
 * inherited by programs that are started.
 */
#ifndef ESP_SYSTEM_H
#define ESP_SYSTEM_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __APPLE__
#define st_mtim st_mtimespec
#define ESP_PATH_OF_STDIN "/dev/fd/0"
#else
#define ESP_PATH_OF_STDIN "/proc/self/fd/0"
#endif

/* ------------------------------------------------------------------ processors and memory */

/* Number of CPUs that this process may run on, at least 1. */
int esp_cores_all(void);
/* How many of them are performance cores (kernels/cpu/cores.h); all, where they do not differ.
 */
int esp_cores_best(void);
/* Whether this 64-bit ARM processor has the instructions sdot and udot, or smmla. */
enum esp_arm_feature { ESP_ARM_DOTPROD, ESP_ARM_I8MM };
bool esp_arm_has(enum esp_arm_feature feature);
/* Bytes of this process in memory; 0: unknown. */
size_t esp_resident_bytes(void);
/* Bytes of memory that programs can have without swapping; 0: unknown. */
size_t esp_available_bytes(void);
/* Asks for large pages, which save TLB misses. */
void esp_use_large_pages(void *begin, size_t bytes);

/* ------------------------------------------------------------------ files */

/* The path of the running program. False if it is unknown or longer than `size`. */
bool esp_program_path(char *path, size_t size);
/* A second descriptor of an open file, for reading past the page cache if *direct: of whole
 * pages, into memory that starts at one. -1: failed. */
int esp_open_direct(int file, bool *direct);
/* Bytes of a file that were read need not stay in the page cache. */
void esp_drop_cached(int file, off_t begin, off_t bytes);
/* Renames a file if the new name is free: in one step, else errno is EINVAL or ENOSYS. */
bool esp_rename_to_new(const char *from, const char *to);
/* A file without a name, in memory if possible; -1: failed. */
int esp_unnamed_file(const char *purpose);
/* As pipe(); `waits`: reads and writes wait. */
int esp_pipe(int ends[2], bool waits);

/* ------------------------------------------------------------------ processes and threads */

/* Fills memory of up to 256 bytes with random bits without waiting for them. */
bool esp_random_bytes(void *bytes, size_t count);
/* This process is killed when the one that started it ends, if the system can do that. */
void esp_end_with_parent(void);
/* Starts a program in a session of its own, without a terminal. It has `file` as descriptor
 * `inherited`, what it prints goes to `log` (-1: nowhere), and it has no other descriptor.
 * program: a path, or a name that PATH has. Returns the process, or -1 (errno). */
pid_t esp_start_apart(const char *program, char *const argv[], int file, int inherited,
                      int log);
/* Waits until a word that processes share is not `seen` any more and another one says so, but
 * not much longer than `seconds`. */
void esp_wait_for_change(_Atomic uint32_t *word, uint32_t seen, double seconds);
void esp_wake_for_change(_Atomic uint32_t *word);
/* Takes back blocked signals of a set that are pending for this thread. */
void esp_take_signals(const sigset_t *set);
/* A condition for esp_condition_wait(), which waits until the monotonic clock is at `until`. It
 * returns 0, or ETIMEDOUT. */
void esp_condition_open(pthread_cond_t *condition);
int esp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                       const struct timespec *until);

#endif
