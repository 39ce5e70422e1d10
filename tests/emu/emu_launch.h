/* emu_launch.h - defines ESP_START for the emulator. ESP_START launches a kernel.
 *
 * At the launch, arguments are converted to the kernel's parameter types and copied, as on a
 * GPU. The kernel runs later, when its stream runs. On a GPU, a kernel that gets the address of
 * host memory would fault. So every word of every parameter is checked for such addresses.
 */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include <type_traits>

#include "tests/emu/emu_runtime.h"

struct emu_launch_shape {
    const char *name;
    const void *kernel;
    dim3 grid, block;
    size_t shared;
    bool early; /* the kernel may begin before the previous kernel has ended */
};

struct emu_body { /* a kernel with its arguments */
    virtual void run() const = 0;
    virtual ~emu_body()
    {
    }
};

template <typename F> struct emu_body_of : emu_body {
    F call;
    explicit emu_body_of(F &&f) : call(static_cast<F &&>(f))
    {
    }
    void run() const override
    {
        call();
    }
};

/* Queues a kernel on a stream, and takes ownership of `body`. cudaGetLastError() returns an
 * error of this function. */
void emu_enqueue_kernel(const emu_launch_shape &launch, cudaStream_t stream,
                        const emu_body *body);
void emu_check_parameter(const char *kernel, int index, const void *value, size_t bytes);

/* The padding in a parameter can contain anything, even addresses from earlier use of the
 * memory. If the compiler cannot clear the padding, only parameters that are pointers are
 * checked. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define EMU_CLEARS_PADDING 1
#endif
#endif

template <typename T> static inline void emu_check(const char *kernel, int index, T value)
{
#ifdef EMU_CLEARS_PADDING
    __builtin_clear_padding(&value);
    emu_check_parameter(kernel, index, &value, sizeof value);
#else
    if (std::is_pointer<T>::value)
        emu_check_parameter(kernel, index, &value, sizeof value);
#endif
}

template <typename T> struct emu_same {
    typedef T type;
};

template <typename... P>
void emu_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                cudaStream_t stream, bool early, typename emu_same<P>::type... arguments)
{
    int index = 0;
    (void)index;
    (emu_check(name, index++, arguments), ...);
    auto call = [kernel, arguments...] { kernel(arguments...); };
    emu_launch_shape launch = {
        name, reinterpret_cast<const void *>(kernel), grid, block, shared, early};
    emu_enqueue_kernel(launch, stream,
                       new emu_body_of<decltype(call)>(static_cast<decltype(call) &&>(call)));
}

#define ESP_START(kernel, grid, block, shared, stream, ...)                                    \
    emu_launch(#kernel, kernel, (grid), (block), (shared), (stream), false, ##__VA_ARGS__)
#define ESP_START_EARLY(kernel, grid, block, shared, stream, ...)                              \
    emu_launch(#kernel, kernel, (grid), (block), (shared), (stream), true, ##__VA_ARGS__)

#endif
