/* emu_state.h - shared by the files of the emulator: a lock, planted failures, live handles,
 * device memory, and the queues of streams.
 */
#ifndef EMU_STATE_H
#define EMU_STATE_H

#include <functional>
#include <mutex>
#include <set>

#include "tests/emu/emu_control.h"
#include "tests/emu/emu_runtime.h"

/* ------------------------------------------------------------------ calls (emu_control.cpp) */

std::recursive_mutex &emu_mutex();

/* Counts a call of the runtime. Returns cudaSuccess, or the failure that was planted for
 * this call. */
cudaError_t emu_count_call(const char *name);

/* Remembers the last error of this thread. */
cudaError_t emu_result(cudaError_t error);

/* Every function of the runtime begins with this. */
#define EMU_CALL()                                                                             \
    std::lock_guard<std::recursive_mutex> emu_locked(emu_mutex());                             \
    if (cudaError_t emu_planted = emu_count_call(__func__))                                    \
    return emu_result(emu_planted)

uint64_t emu_next_seed(); /* 0 if the order is the natural one */
int emu_device_count();
int emu_current_device(); /* device of this thread */
int emu_driver_version();
int emu_lt_version();
bool emu_has_nccl();
enum emu_heuristic emu_heuristic_answer();
size_t emu_memory_size();
int emu_multiprocessors();
int emu_shared_kilobytes(); /* maximum for a block */

/* ------------------------------------------------------------------ handles (emu_control.cpp)
 */

/* Records an object that must be released. kind: "stream", "event", ... */
void emu_live_add(const void *handle, const char *kind, size_t bytes);
bool emu_live(const void *handle, const char *kind);
bool emu_live_remove(const void *handle, const char *kind); /* false if it was not recorded */

/* ------------------------------------------------------------------ memory (emu_memory.cpp) */

/* Opens device memory for code that runs on the device; the host cannot access it otherwise. */
void emu_memory_open();
void emu_memory_close();

/* These take and release memory that the driver uses for graphs. emu_memory_take() returns
 * false if there is not enough. */
bool emu_memory_take(size_t bytes);
void emu_memory_give_back(size_t bytes);

enum emu_where_is {
    emu_on_host,
    emu_on_device,
    emu_nowhere
}; /* nowhere: not inside an allocation */
emu_where_is emu_find(const void *address, size_t bytes);
/* Removes the fences within a range for a copy or a fill, and restores them afterwards. */
void emu_lift_fences(const void *address, size_t bytes);
void emu_restore_fences(const void *address, size_t bytes);
bool emu_in_arena(const void *address); /* to describe a fault */

/* ------------------------------------------------------------------ streams (emu_stream.cpp)
 */

/* Adds work to a stream, or to the graph that the stream captures. */
cudaError_t emu_enqueue(cudaStream_t stream, std::function<void()> work);
cudaError_t emu_run_all(); /* runs everything on every stream */
bool emu_run_next(cudaStream_t stream); /* runs the next work; false if there is none */
bool emu_captures(cudaStream_t stream);
/* During a capture, returns cudaErrorStreamCaptureUnsupported and invalidates the capture. */
cudaError_t emu_refuse_in_capture();

/* Returns whether a GPU could start this kernel. Outside of a capture, this loads the kernel's
 * code; in a capture, the code must be loaded already. (emu_properties.cpp) */
struct emu_launch_shape;
cudaError_t emu_check_launch(const emu_launch_shape &launch, bool captured);

extern long emu_kernels, emu_waits;
extern size_t emu_most_shared;

#endif
