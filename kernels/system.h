/* system.h - functions that need different code on each operating system. system_linux.c and
 * system_darwin.c (macOS) define them; no other file depends on the system. Programs that this
 * process starts do not inherit the descriptors that these functions open.
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

/* Returns the number of CPUs that this process may run on, at least 1. */
int esp_cores_all(void);
/* Returns how many of these CPUs are performance cores (kernels/cpu/cores.h). If all CPUs are
 * alike, returns the number of all CPUs. */
int esp_cores_best(void);
/* Finds the memory nodes (NUMA) on which this process may run (kernels/cpu/cores.h). */
struct esp_nodes;
void esp_nodes_find(struct esp_nodes *nodes);
/* Binds this thread to the CPUs of a node, 0..count-1. */
void esp_stay_on_node(const struct esp_nodes *nodes, int node);
/* Asks the system to allocate pages of this range on the node with this number. Pages that are
 * already in use stay where they are. */
void esp_prefer_node(void *begin, size_t bytes, int number);
/* Returns whether this 64-bit ARM processor has a feature: the instructions sdot and udot, or
 * smmla. */
enum esp_arm_feature { ESP_ARM_DOTPROD, ESP_ARM_I8MM };
bool esp_arm_has(enum esp_arm_feature feature);
/* Returns how many bytes of memory this process occupies; 0 means unknown. */
size_t esp_resident_bytes(void);
/* Returns how many bytes of memory can be allocated without swapping; 0 means unknown. */
size_t esp_available_bytes(void);
/* Requests large pages, which save TLB misses, for a range of memory. */
void esp_use_large_pages(void *begin, size_t bytes);

/* ------------------------------------------------------------------ files */

/* Writes the path of the running program. Returns false if it is unknown or does not fit. */
bool esp_program_path(char *path, size_t size);
/* Opens a second descriptor of an open file for reading. If *direct becomes true, this
 * descriptor bypasses the page cache, and reads must be of whole pages, into
 * memory that is aligned to a page. Returns -1 on failure. */
int esp_open_direct(int file, bool *direct);
/* Tells the system that these bytes of a file need not stay in the page cache. */
void esp_drop_cached(int file, off_t begin, off_t bytes);
/* Renames a file if no file has the new name. Returns whether the file was renamed. errno is
 * EINVAL or ENOSYS if the system cannot do this in one step. */
bool esp_rename_to_new(const char *from, const char *to);
/* Opens a file without a name, in memory if possible. Returns -1 on failure. */
int esp_unnamed_file(const char *purpose);
/* Opens a pipe, as pipe() does. `waits` says whether reads and writes block. */
int esp_pipe(int ends[2], bool waits);

/* ------------------------------------------------------------------ processes and threads */

/* Fills up to 256 bytes with random bits, without waiting. Returns false if that is impossible.
 */
bool esp_random_bytes(void *bytes, size_t count);
/* Asks the system to kill this process when its parent ends, if the system can do that. */
void esp_end_with_parent(void);
/* Starts a program in its own session, without a terminal. It inherits `file` as descriptor
 * `inherited` and no other descriptor. Its output goes to `log` (-1 means nowhere). `program`
 * is a path, or a name to look up in PATH. Returns the process, or -1 (see errno). */
pid_t esp_start_apart(const char *program, char *const argv[], int file, int inherited,
                      int log);
/* Waits until the shared word differs from `seen`, and another process has announced this with
 * esp_wake_for_change(). Waits not much longer than `seconds`. */
void esp_wait_for_change(_Atomic uint32_t *word, uint32_t seen, double seconds);
void esp_wake_for_change(_Atomic uint32_t *word);
/* Removes the pending signals that are in `set`, so that they have no effect. These signals
 * must be blocked. */
void esp_take_signals(const sigset_t *set);
/* Opens a condition for esp_condition_wait(). That function waits at most until the monotonic
 * clock reaches `until`, and returns 0 or ETIMEDOUT. */
void esp_condition_open(pthread_cond_t *condition);
int esp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                       const struct timespec *until);

#endif
