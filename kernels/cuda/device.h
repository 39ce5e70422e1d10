/* device.h - hides the differences between CUDA and the host emulator. Every .cu file includes
 * it.
 *
 * The same sources are compiled twice: by nvcc for GPUs, and by a C++ compiler, with
 * ESP_EMULATE, for the emulator (tests/emu/emu.h). The emulator runs the threads of a block one
 * after another, each up to the next barrier. This file hides the four things that differ:
 * launches (<<<>>> is not C++), dynamic shared memory, tensor core instructions, and libraries
 * that are loaded by name.
 *
 * A kernel is portable if it obeys these rules. All shared memory is dynamic: the kernel gets
 * it once, at its beginning, with ESP_SHARED, and divides it. Every thread of a warp reaches
 * every shuffle, vote, esp_mma and esp_load_matrices. Every thread of a block reaches every
 * __syncthreads(). Only this file contains inline assembly.
 */
#ifndef ESP_CUDA_DEVICE_H
#define ESP_CUDA_DEVICE_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef ESP_EMULATE
#include "tests/emu/emu.h"
#else
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#define ESP_START(kernel, grid, block, shared, stream, ...)                                    \
    kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)

/* Starts a kernel like ESP_START, but lets it begin before the previous kernel has ended. */
template <typename... P, typename... A>
static inline void esp_start_early(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                                   cudaStream_t stream, A &&...arguments)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, static_cast<A &&>(arguments)...);
}
#define ESP_START_EARLY(kernel, grid, block, shared, stream, ...)                              \
    esp_start_early((kernel), (grid), (block), (shared), (stream), ##__VA_ARGS__)

/* Declares `name` as a pointer to the block's dynamic shared memory, which is aligned to 16
 * bytes. */
#define ESP_SHARED(type, name)                                                                 \
    extern __shared__ __align__(16) unsigned char esp_shared_memory[];                         \
    type *name = reinterpret_cast<type *>(esp_shared_memory)

/* Only the emulator uses these two macros, to count bank conflicts. ESP_CALLER is a parameter
 * that names the caller of a function. ESP_TOUCH reports an access to shared memory. */
#define ESP_CALLER
#define ESP_TOUCH(at, bytes) ((void)0)

/* These macros open a library by name, and find a symbol of a library by name. They return NULL
 * on failure. */
#define ESP_LIBRARY_OPEN(name) dlopen((name), RTLD_NOW | RTLD_LOCAL)
#define ESP_LIBRARY_SYMBOL(library, name) dlsym((library), (name))

/* The size of the fences between the pieces of an allocation, in bytes. Only the emulator has
 * fences, and reports any access to them. */
enum { ESP_FENCE = 0 };
#define ESP_PUT_FENCE(address, bytes) ((void)0)
#endif

/* While this is true, ESP_LAUNCH only loads the kernel's code. The CUDA runtime loads code at
 * the first launch (CUDA_MODULE_LOADING=LAZY, the default since CUDA 12.2). But loading may
 * allocate memory and wait for the device, and neither is allowed while a stream is captured.
 * So before a pass is captured, it is run once with this variable set. This method needs no
 * list of kernels. Unlike CUDA_MODULE_LOADING=EAGER, it uses no memory for kernels that no pass
 * launches. */
inline thread_local bool esp_loading_kernels;

/* Describes one kernel launch. While esp_launches and esp_loading_kernels are both set,
 * ESP_LAUNCH reports each launch to esp_launches->seen() and does not start the kernel. In this
 * way predict.cu finds out which kernels a pass launches. */
struct esp_launch {
    const void *kernel;
    dim3 grid, block;
    size_t shared;
    bool early;
};
struct esp_launches {
    void (*seen)(void *user, const struct esp_launch *launch);
    void *user;
};
inline thread_local const struct esp_launches *esp_launches;

/* Reports the launch to esp_launches if this is set. Otherwise loads the code of the kernel. */
static inline void esp_load(const struct esp_launch &launch)
{
    cudaFuncAttributes attributes;
    if (esp_launches)
        esp_launches->seen(esp_launches->user, &launch);
    else
        cudaFuncGetAttributes(&attributes, launch.kernel);
}

/* Launches a kernel. If the kernel's template arguments contain commas, put it in parentheses:
 * (kernel<a, b>). If the launch fails, cudaGetLastError() returns the error. */
#define ESP_LAUNCH(kernel, grid, block, shared, stream, ...)                                   \
    do {                                                                                       \
        if (esp_loading_kernels)                                                               \
            esp_load(                                                                          \
                {(const void *)(kernel), dim3(grid), dim3(block), (size_t)(shared), false});   \
        else                                                                                   \
            ESP_START(kernel, grid, block, shared, stream, ##__VA_ARGS__);                     \
    } while (0)

/* Launches a kernel like ESP_LAUNCH. If `early` is true, the kernel may begin before the
 * previous one has ended, so it must call esp_wait_previous(). */
#define ESP_LAUNCH_EARLY(early, kernel, grid, block, shared, stream, ...)                      \
    do {                                                                                       \
        if (esp_loading_kernels)                                                               \
            esp_load(                                                                          \
                {(const void *)(kernel), dim3(grid), dim3(block), (size_t)(shared), (early)}); \
        else if (early)                                                                        \
            ESP_START_EARLY(kernel, grid, block, shared, stream, ##__VA_ARGS__);               \
        else                                                                                   \
            ESP_START(kernel, grid, block, shared, stream, ##__VA_ARGS__);                     \
    } while (0)

/* The first compute capability on which kernels can begin early. ESP_EARLY_ARCH is compared
 * with the architecture of the compiler, and ESP_EARLY_PTX with the runtime's ptxVersion.
 * ESP_EARLY_DRIVER is the first driver that can capture such kernels in a graph. */
#define ESP_EARLY_ARCH 900
enum { ESP_EARLY_PTX = 90, ESP_EARLY_DRIVER = 12030 };

/* ------------------------------------------------------------------ kernels that begin early
 *
 * A kernel launched by ESP_LAUNCH_EARLY may begin before the previous kernel of the stream has
 * ended ("programmatic dependent launch" in the CUDA C++ Programming Guide). While the last
 * blocks of the previous kernel run, it can do work that depends on no other kernel, such as
 * the first copies of weights.
 *
 * Every thread of such a kernel must call esp_wait_previous() before it reads data that another
 * kernel of the pass writes, and before it writes data that another kernel uses. The call waits
 * until the previous kernel has ended. That kernel has also waited for its previous kernel, so
 * all earlier kernels have ended, too. The numbers of the pass (esp_cuda_arrays) may be read
 * before the call: they are copied before the first kernel of the pass, which does not begin
 * early. When all blocks of a kernel have called esp_let_next_begin(), blocks of the next
 * kernel can begin on multiprocessors that have room for them. */
static __device__ __forceinline__ void esp_wait_previous()
{
#if defined(ESP_EMULATE)
    emu_wait_previous();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= ESP_EARLY_ARCH
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ __forceinline__ void esp_let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= ESP_EARLY_ARCH
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

enum { ESP_WARP = 32 };
/* Call this at the beginning of a kernel that cannot do any work before the previous kernel has
 * ended. */
static __device__ __forceinline__ void esp_begin_early()
{
    esp_let_next_begin();
    esp_wait_previous();
}

static const unsigned ESP_ALL_LANES = 0xffffffffu;

/* ------------------------------------------------------------------ 16-bit floats */

typedef __nv_bfloat16 esp_bf16;
typedef __half esp_f16;

static __device__ __forceinline__ float esp_to_float(esp_bf16 x)
{
    return __bfloat162float(x);
}

static __device__ __forceinline__ float esp_to_float(esp_f16 x)
{
    return __half2float(x);
}

static __device__ __forceinline__ float esp_to_float(float x)
{
    return x;
}

template <typename T> static __device__ __forceinline__ T esp_from_float(float x);

template <> __device__ __forceinline__ esp_bf16 esp_from_float<esp_bf16>(float x)
{
    return __float2bfloat16(x);
}

template <> __device__ __forceinline__ esp_f16 esp_from_float<esp_f16>(float x)
{
    return __float2half(x);
}

template <> __device__ __forceinline__ float esp_from_float<float>(float x)
{
    return x;
}

/* Returns an approximation of 2^x. On a GPU, results below 2^-126 become 0. */
static __device__ __forceinline__ float esp_exp2(float x)
{
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* Holds eight 16-bit floats, which one 16-byte access loads or stores. */
template <typename T> union esp_eight {
    uint4 words;
    uint32_t pair[4];
    T value[8];
    __device__ __forceinline__ esp_eight() : words()
    {
    }
};

template <typename T>
static __device__ __forceinline__ esp_eight<T> esp_load_eight(const T *address)
{
    esp_eight<T> eight;
    eight.words = *reinterpret_cast<const uint4 *>(address);
    return eight;
}

/* ------------------------------------------------------------------ shared memory */

/* Use these functions to read and write shared memory if the emulator should count the bank
 * conflicts of the access. */
template <typename V> static __device__ __forceinline__ V esp_shared_get(const V *at ESP_CALLER)
{
    ESP_TOUCH(at, sizeof *at);
    return *at;
}

template <typename V>
static __device__ __forceinline__ void esp_shared_put(V *at, V value ESP_CALLER)
{
    ESP_TOUCH(at, sizeof *at);
    *at = value;
}

/* ------------------------------------------------------------------ tensor cores */

/* A warp computes D += A B, where A is (16, 16), B is (16, 8) and D is (16, 8) of float. The
 * matrices are distributed over the lanes as in mma.sync.m16n8k16 (lane = 4 group + t):
 *   a[0] = A[group][2t..], a[1] = A[group + 8][2t..], a[2] = A[group][2t + 8..],
 *   a[3] = A[group + 8][2t + 8..]; b[0] = B[2t..][group], b[1] = B[2t + 8..][group];
 *   d[0], d[1] = D[group][2t], [2t + 1]; d[2], d[3] = D[group + 8][2t], [2t + 1].
 * A column of D depends only on the same column of B, not on the other columns of B. */
static __device__ __forceinline__ void esp_mma(float d[4], uint32_t a0, uint32_t a1,
                                               uint32_t a2, uint32_t a3, uint32_t b0,
                                               uint32_t b1, esp_bf16)
{
#if defined(ESP_EMULATE)
    emu_mma_bf16(d, a0, a1, a2, a3, b0, b1);
#elif defined(__CUDA_ARCH__)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

static __device__ __forceinline__ void esp_mma(float d[4], uint32_t a0, uint32_t a1,
                                               uint32_t a2, uint32_t a3, uint32_t b0,
                                               uint32_t b1, esp_f16)
{
#if defined(ESP_EMULATE)
    emu_mma_f16(d, a0, a1, a2, a3, b0, b1);
#elif defined(__CUDA_ARCH__)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

/* A warp computes D = A B + c, where A (16, 32) and B (32, 8) contain signed bytes, and D (16,
 * 8) contains integers. They are distributed over the lanes as in mma.sync.m16n8k32. A word
 * holds four consecutive bytes of a row of A or of a column of B. The words begin with
 *   a0: A[group][4t], a1: A[group + 8][4t], a2: A[group][4t + 16], a3: A[group + 8][4t + 16],
 *   b0: B[4t][group], b1: B[4t + 16][group]; d as in esp_mma(). */
static __device__ __forceinline__ void esp_mma_s8(int d[4], uint32_t a0, uint32_t a1,
                                                  uint32_t a2, uint32_t a3, uint32_t b0,
                                                  uint32_t b1, int c)
{
#if defined(ESP_EMULATE)
    d[0] = d[1] = d[2] = d[3] = c;
    emu_mma_s8(d, a0, a1, a2, a3, b0, b1);
#elif defined(__CUDA_ARCH__)
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c));
#endif
}

/* Computes D = A B + c like esp_mma_s8(), but A has only 16 columns and B has only 16 rows. So
 * there are no words a2, a3 and b1. */
static __device__ __forceinline__ void esp_mma_s8_half(int d[4], uint32_t a0, uint32_t a1,
                                                       uint32_t b0, int c)
{
#if defined(ESP_EMULATE)
    d[0] = d[1] = d[2] = d[3] = c;
    emu_mma_s8(d, a0, a1, 0, 0, b0, 0);
#elif defined(__CUDA_ARCH__)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a0), "r"(a1), "r"(b0), "r"(c));
#endif
}

/* Returns `sum` plus the dot product of a and b, which contain four signed bytes each. */
static __device__ __forceinline__ int esp_dot4(uint32_t a, uint32_t b, int sum)
{
    return __dp4a((int)a, (int)b, sum);
}

/* Loads four 8x8 matrices of 16-bit numbers from shared memory with the instruction ldmatrix.
 * Lane l passes the address of row l % 8 of matrix l / 8, which has 16 bytes and is aligned. In
 * r[i], lane 4 group + t gets the numbers [group][2t] and [group][2t + 1] of matrix i. If
 * `turned` is true, it gets [2t][group] and [2t + 1][group] instead. */
static __device__ __forceinline__ void esp_load_matrices(uint32_t r[4], const void *row,
                                                         bool turned)
{
#if defined(ESP_EMULATE)
    emu_load_matrices(r, row, turned);
#elif defined(__CUDA_ARCH__)
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
#endif
}

/* Rounds two floats to type T and packs them into a word of a matrix A or B. */
template <typename T> static __device__ __forceinline__ uint32_t esp_pack(float low, float high)
{
    const T two[2] = {esp_from_float<T>(low), esp_from_float<T>(high)};
    uint32_t word;
    memcpy(&word, two, sizeof word);
    return word;
}

/* ------------------------------------------------------------------ copies in the background
 */

/* Begins to copy 16 bytes to shared memory. If `there` is false, writes zeros instead and does
 * not read `from`. Both addresses must be aligned to 16 bytes. The thread can read the bytes
 * when it has waited for the group of the copy. Other threads can read them after the next
 * barrier. */
static __device__ __forceinline__ void esp_copy_begin(void *to, const void *from, bool there)
{
#if defined(ESP_EMULATE)
    emu_copy_begin(to, from, there);
#elif defined(__CUDA_ARCH__)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
#endif
}

/* Combines the copies that the thread has begun since its last group into a new group. The
 * group may be empty. */
static __device__ __forceinline__ void esp_copy_group()
{
#if defined(ESP_EMULATE)
    emu_copy_group();
#elif defined(__CUDA_ARCH__)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all groups of the thread, except the last LEFT groups, have been copied. */
template <int LEFT> static __device__ __forceinline__ void esp_copy_wait()
{
#if defined(ESP_EMULATE)
    emu_copy_wait(LEFT);
#elif defined(__CUDA_ARCH__)
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

/* ------------------------------------------------------------------ reductions */

template <typename T> static __device__ __forceinline__ T esp_warp_sum(T x)
{
    for (int step = ESP_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ESP_ALL_LANES, x, step);
    return x;
}

template <typename T> static __device__ __forceinline__ T esp_warp_max(T x)
{
    for (int step = ESP_WARP / 2; step > 0; step /= 2) {
        T other = __shfl_xor_sync(ESP_ALL_LANES, x, step);
        x = other > x ? other : x;
    }
    return x;
}

/* Returns to every thread the sum of x over all threads of the block. The order of the sum is
 * always the same. `room` is shared memory for one T per warp. It can be reused after the next
 * barrier. */
template <typename T> static __device__ T esp_block_sum(T x, T *room)
{
    int warp = threadIdx.x / ESP_WARP, warps = (blockDim.x + ESP_WARP - 1) / ESP_WARP;
    x = esp_warp_sum(x);
    __syncthreads();
    if (threadIdx.x % ESP_WARP == 0)
        room[warp] = x;
    __syncthreads();
    T sum = room[0];
    for (int i = 1; i < warps; i++)
        sum += room[i];
    return sum;
}

/* ------------------------------------------------------------------ the last block */

/* Returns whether this block is the last of `blocks` blocks that call this function. The last
 * block can read everything that the other blocks wrote before their calls. `room` is an int in
 * shared memory. Every thread of the block must call this function. */
static __device__ inline bool esp_last_block(unsigned *counter, unsigned blocks, int *room)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *room = atomicAdd(counter, 1u) == blocks - 1;
        if (*room)
            *counter = 0;
    }
    __syncthreads();
    bool last = *room != 0;
    __threadfence();
    return last;
}

#endif
