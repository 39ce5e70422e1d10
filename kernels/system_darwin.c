/* system_darwin.c - defines the functions of system.h for macOS. They have not run on a Mac
 * yet; the tests compile them with the headers of tests/darwin.
 */
#include "kernels/system.h"

#include <errno.h>
#include <fcntl.h>
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

#include "kernels/cpu/cores.h"

/* ------------------------------------------------------------------ processors and memory */

static int number_of(const char *name, int otherwise)
{
    int value = 0;
    size_t size = sizeof value;
    const bool known = sysctlbyname(name, &value, &size, NULL, 0) == 0;
    return known && size == sizeof value && value > 0 ? value : otherwise;
}

int esp_cores_all(void)
{
    return number_of("hw.logicalcpu", 1);
}

/* Performance levels exist since macOS 12; the first one is the fastest. */
int esp_cores_best(void)
{
    const int all = esp_cores_all();
    const bool differ = number_of("hw.nperflevels", 1) > 1;
    return differ ? number_of("hw.perflevel0.physicalcpu", all) : all;
}

void esp_nodes_find(struct esp_nodes *nodes)
{
    const bool allowed[ESP_MOST_CORES] = {true};
    esp_nodes_of(nodes, "/nowhere", allowed);
}

void esp_stay_on_node(const struct esp_nodes *nodes, int node)
{
    (void)nodes, (void)node;
}

void esp_prefer_node(void *begin, size_t bytes, int number)
{
    (void)begin, (void)bytes, (void)number;
}

bool esp_arm_has(enum esp_arm_feature feature)
{
    return number_of(feature == ESP_ARM_DOTPROD ? "hw.optional.arm.FEAT_DotProd"
                                                : "hw.optional.arm.FEAT_I8MM",
                     0) > 0;
}

size_t esp_resident_bytes(void)
{
    struct mach_task_basic_info info;
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    const bool known = task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info,
                                 &count) == KERN_SUCCESS;
    return known ? (size_t)info.resident_size : 0;
}

size_t esp_available_bytes(void)
{
    vm_statistics64_data_t pages;
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    const bool known = host_statistics64(mach_host_self(), HOST_VM_INFO64,
                                         (host_info64_t)&pages, &count) == KERN_SUCCESS;
    return known ? ((size_t)pages.free_count + pages.inactive_count) * vm_kernel_page_size : 0;
}

/* Does nothing, because programs on macOS cannot request large pages. */
void esp_use_large_pages(void *begin, size_t bytes)
{
    (void)begin;
    (void)bytes;
}

/* ------------------------------------------------------------------ files */

bool esp_program_path(char *path, size_t size)
{
    uint32_t room = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    if (_NSGetExecutablePath(path, &room) == 0)
        return true;
    path[0] = '\0';
    return false;
}

/* With F_NOCACHE, reads may have any offset and size. */
int esp_open_direct(int file, bool *direct)
{
    const int again = fcntl(file, F_DUPFD_CLOEXEC, 0);
    *direct = again >= 0 && fcntl(again, F_NOCACHE, 1) == 0;
    return again;
}

/* Does nothing: reads through esp_open_direct() always bypass the cache. */
void esp_drop_cached(int file, off_t begin, off_t bytes)
{
    (void)file;
    (void)begin;
    (void)bytes;
}

bool esp_rename_to_new(const char *from, const char *to)
{
    if (renamex_np(from, to, RENAME_EXCL) == 0)
        return true;
    if (errno == ENOTSUP)
        errno = EINVAL;
    return false;
}

int esp_unnamed_file(const char *purpose)
{
    char path[] = "/tmp/espalier-XXXXXX";
    const int file = mkstemp(path);
    (void)purpose;
    if (file >= 0) {
        unlink(path);
        fcntl(file, F_SETFD, FD_CLOEXEC);
    }
    return file;
}

int esp_pipe(int ends[2], bool waits)
{
    if (pipe(ends) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        if (!waits)
            fcntl(ends[i], F_SETFL, O_NONBLOCK | fcntl(ends[i], F_GETFL));
    }
    return 0;
}

/* ------------------------------------------------------------------ processes and threads */

bool esp_random_bytes(void *bytes, size_t count)
{
    return getentropy(bytes, count) == 0;
}

/* Does nothing, because macOS has no such function. If the parent ends, the process continues
 * until it has used up its limit of processor time. */
void esp_end_with_parent(void)
{
}

/* Before 14.4, macOS has no public function to wait for a change of a word. So this function
 * reads the word twenty times per millisecond. */
void esp_wait_for_change(_Atomic uint32_t *word, uint32_t seen, double seconds)
{
    static const double STEP = 50e-6;
    const struct timespec moment = {.tv_nsec = (long)(STEP * 1e9)};
    for (; seconds > 0 && atomic_load(word) == seen; seconds -= STEP)
        nanosleep(&moment, NULL);
}

void esp_wake_for_change(_Atomic uint32_t *word)
{
    (void)word;
}

void esp_take_signals(const sigset_t *set)
{
    sigset_t pending;
    for (int number = 1; number < NSIG; number++)
        if (sigismember(set, number) && sigpending(&pending) == 0 &&
            sigismember(&pending, number)) {
            sigset_t one;
            int taken;
            sigemptyset(&one);
            sigaddset(&one, number);
            sigwait(&one, &taken);
        }
}

void esp_condition_open(pthread_cond_t *condition)
{
    pthread_cond_init(condition, NULL);
}

int esp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                       const struct timespec *until)
{
    struct timespec now, left;
    clock_gettime(CLOCK_MONOTONIC, &now);
    left.tv_sec = until->tv_sec - now.tv_sec;
    left.tv_nsec = until->tv_nsec - now.tv_nsec;
    if (left.tv_nsec < 0) {
        left.tv_sec--;
        left.tv_nsec += 1000000000;
    }
    return left.tv_sec < 0 ? ETIMEDOUT
                           : pthread_cond_timedwait_relative_np(condition, lock, &left);
}
