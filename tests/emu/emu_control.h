/* emu_control.h - lets a test control the emulator. The emulated plugin exports the functions.
 *
 * The following environment variables also control the emulator: ESPALIER_EMU_DEVICES,
 * ESPALIER_EMU_DRIVER and ESPALIER_EMU_LT (versions), ESPALIER_EMU_MEMORY (bytes),
 * ESPALIER_EMU_NCCL=0 (the machine has no NCCL), ESPALIER_EMU_NODE (bytes of each graph node),
 * ESPALIER_EMU_SMS (multiprocessors), ESPALIER_EMU_SHARED (kilobytes), ESPALIER_EMU_SEED,
 * ESPALIER_EMU_FAIL (number of the call that fails), ESPALIER_EMU_LEAKS=1 (print at exit which
 * objects were never released).
 */
#ifndef EMU_CONTROL_H
#define EMU_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void emu_set_devices(int count);
void emu_set_driver(int version); /* newest supported CUDA: 12040 is 12.4; 0 means no driver */
void emu_set_lt(int version);     /* version of cuBLASLt, initially 13; 0 means none */
/* Says what cuBLASLt's heuristic returns: algorithms (initially), no algorithm, or an error. */
enum emu_heuristic { EMU_FINDS, EMU_FINDS_NONE, EMU_REFUSES };
void emu_set_heuristic(enum emu_heuristic answer);
void emu_set_memory(size_t bytes); /* the device's memory; existing allocations stay valid */
/* These functions set the number of multiprocessors (initially 4) and the kilobytes of shared
 * memory that a block can request (initially 227, as on compute capability 9.0). The new values
 * apply to backends that are opened later. Compute capability 8.0 allows 163 KB; 8.6, 8.9 and
 * 12.0 allow 99 KB. */
void emu_set_multiprocessors(int count);
void emu_set_shared(int kilobytes);
/* Returns the maximum number of bytes of shared memory that a block has used since the last
 * call of this function. */
size_t emu_shared_peak(void);
/* Sets how much memory each node of an instantiated graph takes; initially 0. */
void emu_set_node_bytes(size_t bytes);
size_t emu_memory_used(void);
size_t emu_memory_peak(void); /* the most memory in use since the last call of this function */

/* Sets the seed for the order of threads, blocks and streams. 0 means the natural order. With
 * any other seed, a new order is drawn for every launch. The initial seed is 1. */
void emu_set_seed(uint64_t seed);

/* Makes a later call of the runtime or of cuBLASLt fail: 1 is the next call, 2 the call after
 * it, and 0 no call. If `ever_after` is set, all later calls also fail, as after a fault on a
 * GPU. A failing call that should release something returns the error, but still releases it.
 * `error` is a cudaError_t. A failing call of cuBLASLt returns an error of cuBLASLt's own type
 * instead. */
void emu_fail_at(long call, int error, bool ever_after);
long emu_calls(void); /* number of calls since emu_fail_at(), or since the program began */

const char *emu_failed_call(void); /* the first call that emu_fail_at() made fail, or "" */

/* Returns how many objects the program has not released. Writes their names to `text`. */
int emu_leaks(char *text, size_t bytes);

/* These functions return how many kernels have run since the program began, and how often the
 * host has waited for work that had not finished. */
long emu_kernels_run(void), emu_waits_made(void);

/* Counts bank conflicts of shared memory (emu_banks.cpp). emu_count_banks(true) starts counting
 * from 0. emu_banks_of() writes entry `index`, and returns 0 if there is no such entry. Each
 * entry is for a kernel (with its template arguments) and a function in it that accesses shared
 * memory. Conflicts slow these accesses down by the factor cycles / least. */
struct emu_banks {
    char kernel[120], place[40];
    long blocks, accesses, cycles, least; /* accesses: one for each access of a whole warp */
};
void emu_count_banks(bool on);
int emu_banks_of(int index, struct emu_banks *of);

#ifdef __cplusplus
}
#endif

#endif
