/* emu_state.h - the state that the emulator's files share: a lock, failures that tests request,
 * live handles, device memory, and the queues of streams.
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

/* Counts a call of the runtime. Returns cudaSuccess, or the error that the test requested for
 * this call with emu_fail_at(). */
cudaError_t emu_count_call(const char *name);

/* Stores an error as the last error of this thread, and returns it. */
cudaError_t emu_result(cudaError_t error);

/* Every function of the runtime begins with this macro. */
#define EMU_CALL()                                                                             \
    std::lock_guard<std::recursive_mutex> emu_locked(emu_mutex());                             \
    if (cudaError_t emu_planted = emu_count_call(__func__))                                    \
    return emu_result(emu_planted)

uint64_t emu_next_seed(); /* returns the seed for a launch; 0 means the natural order */
int emu_device_count();
int emu_current_device(); /* returns the current device of this thread */
int emu_driver_version();
int emu_lt_version();
bool emu_has_nccl();
enum emu_heuristic emu_heuristic_answer();
size_t emu_memory_size();
int emu_multiprocessors();
int emu_shared_kilobytes(); /* returns how much shared memory a block can request */

/* ------------------------------------------------------------------ handles (emu_control.cpp)
 */

/* Records an object that must be released. `kind` is a plural noun: "streams", "events", ... */
void emu_live_add(const void *handle, const char *kind, size_t bytes);
bool emu_live(const void *handle, const char *kind);
bool emu_live_remove(const void *handle, const char *kind); /* false if it was not recorded */

/* ------------------------------------------------------------------ memory (emu_memory.cpp) */

/* Opens device memory before code runs on the device. The host cannot access closed memory. */
void emu_memory_open();
void emu_memory_close();

/* These functions take and release device memory for the driver's graphs. emu_memory_take()
 * returns false if there is not enough memory. */
bool emu_memory_take(size_t bytes);
void emu_memory_give_back(size_t bytes);

enum emu_where_is {
    emu_on_host,
    emu_on_device,
    emu_nowhere
}; /* nowhere: in device memory, but not in an allocation */
emu_where_is emu_find(const void *address, size_t bytes);
/* Removes the fences within a range for a copy or a fill, and restores them afterwards. */
void emu_lift_fences(const void *address, size_t bytes);
void emu_restore_fences(const void *address, size_t bytes);
bool emu_in_arena(const void *address); /* returns whether `address` is in device memory */

/* ------------------------------------------------------------------ streams (emu_stream.cpp)
 */

/* Adds work to a stream, or to the graph that the stream captures. */
cudaError_t emu_enqueue(cudaStream_t stream, std::function<void()> work);
cudaError_t emu_run_all();              /* runs the work of all streams */
bool emu_run_next(cudaStream_t stream); /* runs the next work; returns false if there is none */
bool emu_captures(cudaStream_t stream);
/* During a capture, invalidates the capture and returns cudaErrorStreamCaptureUnsupported. */
cudaError_t emu_refuse_in_capture();

/* Returns the error with which a GPU would refuse this launch, or cudaSuccess. Outside a
 * capture, this function loads the kernel's code. In a capture, the code must be loaded
 * already. (emu_properties.cpp) */
struct emu_launch_shape;
cudaError_t emu_check_launch(const emu_launch_shape &launch, bool captured);

extern long emu_kernels, emu_waits;
extern size_t emu_most_shared;

#endif
