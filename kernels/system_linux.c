/* system_linux.c - defines the functions of system.h for Linux. */
#include "kernels/system.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/cores.h"

/* ------------------------------------------------------------------ processors and memory */

int esp_cores_all(void)
{
    cpu_set_t set;
    long cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 1 ? (int)cores : 1;
}

/* Finds the CPUs on which this thread may run. allowed: (ESP_MOST_CORES). */
static bool find_allowed(bool *allowed)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (int i = 0; i < ESP_MOST_CORES; i++)
        allowed[i] = i < CPU_SETSIZE && CPU_ISSET(i, &set);
    return true;
}

int esp_cores_best(void)
{
    bool allowed[ESP_MOST_CORES];
    return find_allowed(allowed) ? esp_cores_best_of("/sys", allowed) : esp_cores_all();
}

/* Tests set ESPALIER_SYS to a folder that is read instead of /sys. */
void esp_nodes_find(struct esp_nodes *nodes)
{
    bool allowed[ESP_MOST_CORES] = {true};
    const char *sys = getenv("ESPALIER_SYS");
    if (!find_allowed(allowed))
        sys = "/nowhere";
    esp_nodes_of(nodes, sys ? sys : "/sys", allowed);
}

void esp_stay_on_node(const struct esp_nodes *nodes, int node)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < ESP_MOST_CORES && i < CPU_SETSIZE; i++)
        if (nodes->of[i] == node)
            CPU_SET(i, &set);
    sched_setaffinity(0, sizeof set, &set);
}

void esp_prefer_node(void *begin, size_t bytes, int number)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), at = (size_t)begin % page;
    const size_t skipped = at > 0 ? page - at : 0;
    const unsigned long mask = 1ul << number;
    if (bytes >= skipped + page)
        syscall(SYS_mbind, (char *)begin + skipped, (bytes - skipped) / page * page,
                MPOL_PREFERRED, &mask, sizeof mask * 8, 0);
}

bool esp_arm_has(enum esp_arm_feature feature)
{
#ifdef __aarch64__
    return feature == ESP_ARM_DOTPROD ? getauxval(AT_HWCAP) & HWCAP_ASIMDDP
                                      : getauxval(AT_HWCAP2) & HWCAP2_I8MM;
#else
    return (void)feature, false;
#endif
}

size_t esp_resident_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*s %zu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t esp_available_bytes(void)
{
    size_t kibibytes = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && kibibytes == 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %zu", &kibibytes) != 1)
            kibibytes = 0;
    if (file)
        fclose(file);
    return kibibytes * 1024;
}

void esp_use_large_pages(void *begin, size_t bytes)
{
    madvise(begin, bytes, MADV_HUGEPAGE);
}

/* ------------------------------------------------------------------ files */

bool esp_program_path(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size);
    const bool known = length > 0 && (size_t)length < size;
    path[known ? length : 0] = '\0';
    return known;
}

int esp_open_direct(int file, bool *direct)
{
    char again[64];
    snprintf(again, sizeof again, "/proc/self/fd/%d", file);
    const int opened = open(again, O_RDONLY | O_CLOEXEC | O_DIRECT);
    *direct = opened >= 0;
    return *direct ? opened : fcntl(file, F_DUPFD_CLOEXEC, 0);
}

void esp_drop_cached(int file, off_t begin, off_t bytes)
{
    posix_fadvise(file, begin, bytes, POSIX_FADV_DONTNEED);
}

bool esp_rename_to_new(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0;
}

int esp_unnamed_file(const char *purpose)
{
    return memfd_create(purpose, MFD_CLOEXEC);
}

int esp_pipe(int ends[2], bool waits)
{
    return pipe2(ends, O_CLOEXEC | (waits ? 0 : O_NONBLOCK));
}

/* ------------------------------------------------------------------ processes and threads */

bool esp_random_bytes(void *bytes, size_t count)
{
    return getrandom(bytes, count, GRND_NONBLOCK) == (ssize_t)count;
}

void esp_end_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void esp_wait_for_change(_Atomic uint32_t *word, uint32_t seen, double seconds)
{
    const struct timespec most = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, NULL, 0);
}

void esp_wake_for_change(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void esp_take_signals(const sigset_t *set)
{
    const struct timespec now = {.tv_sec = 0};
    while (sigtimedwait(set, NULL, &now) > 0)
        continue;
}

void esp_condition_open(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int esp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                       const struct timespec *until)
{
    return pthread_cond_timedwait(condition, lock, until);
}
