/* emu_control.h - how a test steers the emulator. Plain C, found in the emulated plugin.
 *
 * Environment variables do the same where a program loads the plugin: ESPALIER_EMU_DEVICES,
 * ESPALIER_EMU_DRIVER and ESPALIER_EMU_LT (versions), ESPALIER_EMU_MEMORY (bytes),
 * ESPALIER_EMU_NODE (bytes of a node of a graph), ESPALIER_EMU_SMS (multiprocessors),
 * ESPALIER_EMU_SHARED (kilobytes), ESPALIER_EMU_SEED, ESPALIER_EMU_FAIL (number of the call),
 * ESPALIER_EMU_LEAKS=1 (say at exit what was never given back).
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
void emu_set_driver(
    int version);             /* of CUDA that the driver knows: 12040 is 12.4; 0: no driver */
void emu_set_lt(int version); /* of cuBLASLt that can be found, 13 at first; 0: none */
/* What its heuristic answers: algorithms (at first), none, or a failure. */
enum emu_heuristic { EMU_FINDS, EMU_FINDS_NONE, EMU_REFUSES };
void emu_set_heuristic(enum emu_heuristic answer);
void emu_set_memory(size_t bytes); /* of the device; what is in use stays in use */
/* Multiprocessors, 4 at first, and kilobytes of shared memory that a block may ask for: 227 as
 * on compute capability 9.0 at first, 163 on 8.0, 99 on 8.6, 8.9 and 12.0. For backends that
 * are opened later. */
void emu_set_multiprocessors(int count);
void emu_set_shared(int kilobytes);
/* Bytes, the most that a block had since the last call of this. */
size_t emu_shared_peak(void);
void emu_set_node_bytes(size_t bytes); /* of each node of a graph that is ready, 0 at first */
size_t emu_memory_used(void);
size_t emu_memory_peak(void); /* most that was in use since the last call of this */

/* The order of threads, blocks and streams: 0 is the natural one; any other number draws a new
 * order for every launch. The program starts with 1. */
void emu_set_seed(uint64_t seed);

/* The `call`-th call of the runtime or of cuBLASLt from now on (1 is the next, 0: none) fails;
 * if `ever_after`, so do all that follow, as after a fault on a GPU. A call that gives
 * something back fails but gives it back. `error` is a cudaError_t; cuBLASLt fails in its own
 * way. */
void emu_fail_at(long call, int error, bool ever_after);
long emu_calls(void); /* calls since emu_fail_at, or the beginning */

const char *emu_failed_call(void); /* the first that was made to fail since then, or "" */

/* How many things the program never gave back; `text` names them. */
int emu_leaks(char *text, size_t bytes);

/* Since the program began: kernels that ran, and how often the host waited for work that was
 * not done. */
long emu_kernels_run(void), emu_waits_made(void);

/* Bank conflicts of shared memory (emu_banks.cpp): on forgets what was counted before. Entry
 * `index` is a kernel with its template arguments and a function that accesses shared memory;
 * 0: there are no more. cycles / least: how much conflicts slow its accesses down. */
struct emu_banks {
    char kernel[120], place[40];
    long blocks, accesses, cycles, least; /* accesses: of a warp */
};
void emu_count_banks(bool on);
int emu_banks_of(int index, struct emu_banks *of);

#ifdef __cplusplus
}
#endif

#endif
