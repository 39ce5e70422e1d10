/* emu_copy.cpp - implements the functions of the runtime that copy or fill memory.
 *
 * Arguments are checked when the host calls the function, but memory is read when the copy
 * runs. So the host must wait for the copy before it touches the source or the destination.
 */
#include "tests/emu/emu_state.h"

static cudaError_t check(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    emu_where_is at_to = emu_find(to, bytes), at_from = emu_find(from, bytes);
    if (!to || !from || at_to == emu_nowhere || at_from == emu_nowhere)
        return cudaErrorInvalidValue;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (kind != cudaMemcpyDefault &&
        (to_device != (at_to == emu_on_device) || from_device != (at_from == emu_on_device)))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

struct rectangle {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
};

static cudaError_t enqueue_copy(const rectangle &r, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (r.width == 0 || r.height == 0)
        return cudaSuccess;
    if (r.width > r.to_pitch || r.width > r.from_pitch)
        return cudaErrorInvalidValue;
    cudaError_t wrong = check(r.to, r.from, 1, kind);
    if (!wrong)
        wrong = check(r.to + (r.height - 1) * r.to_pitch,
                      r.from + (r.height - 1) * r.from_pitch, r.width, kind);
    if (wrong)
        return wrong;
    return emu_enqueue(stream, [r] {
        size_t to_bytes = (r.height - 1) * r.to_pitch + r.width;
        size_t from_bytes = (r.height - 1) * r.from_pitch + r.width;
        emu_lift_fences(r.to, to_bytes);
        emu_lift_fences(r.from, from_bytes);
        for (size_t row = 0; row < r.height; row++)
            memmove(r.to + row * r.to_pitch, r.from + row * r.from_pitch, r.width);
        emu_restore_fences(r.to, to_bytes);
        emu_restore_fences(r.from, from_bytes);
    });
}

/* Waits for all work on the default stream. `enqueued` is the result of queueing the work. */
static cudaError_t wait(cudaError_t enqueued)
{
    return enqueued ? enqueued : cudaStreamSynchronize(nullptr);
}

static rectangle line(void *to, const void *from, size_t bytes)
{
    return rectangle{
        static_cast<char *>(to), static_cast<const char *>(from), bytes, bytes, bytes, 1};
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    EMU_CALL();
    return emu_result(enqueue_copy(line(to, from, bytes), kind, stream));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    EMU_CALL();
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    return emu_result(wait(enqueue_copy(line(to, from, bytes), kind, nullptr)));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    EMU_CALL();
    rectangle r = {static_cast<char *>(to),
                   static_cast<const char *>(from),
                   to_pitch,
                   from_pitch,
                   width,
                   height};
    return emu_result(enqueue_copy(r, kind, stream));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind)
{
    EMU_CALL();
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    rectangle r = {static_cast<char *>(to),
                   static_cast<const char *>(from),
                   to_pitch,
                   from_pitch,
                   width,
                   height};
    return emu_result(wait(enqueue_copy(r, kind, nullptr)));
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
    EMU_CALL();
    if (bytes > 0 && emu_find(address, bytes) != emu_on_device)
        return emu_result(cudaErrorInvalidValue);
    return emu_result(emu_enqueue(stream, [=] {
        emu_lift_fences(address, bytes);
        if (bytes > 0)
            memset(address, value, bytes);
        emu_restore_fences(address, bytes);
    }));
}

cudaError_t cudaMemset(void *address, int value, size_t bytes)
{
    if (cudaError_t refused = emu_refuse_in_capture())
        return emu_result(refused);
    return cudaMemsetAsync(address, value, bytes, nullptr);
}
