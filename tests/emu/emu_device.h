/* emu_device.h - defines CUDA's device functions that the threads of a block or of a warp call
 * together.
 *
 * Threads of a block are fibres that run one after another (emu_block.cpp). A thread yields
 * only where it must wait for other threads: at barriers, and in functions that the lanes of a
 * warp must call together (shuffles, votes, __syncwarp, tensor core products). These lanes must
 * call the same function from the same line with the same mask, as the instruction requires. If
 * a thread waits forever, the emulator names the thread and ends the program.
 */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include "tests/emu/emu_types.h"

/* ---------------------------------------------------------------- the position of a thread */

struct emu_place {
    uint3 block;
    dim3 blocks, threads; /* gridDim, blockDim */
};
extern const uint3 *emu_thread; /* index of the running thread; NULL outside kernels */
extern const emu_place *emu_where;

#define threadIdx (*emu_thread)
#define blockIdx (emu_where->block)
#define blockDim (emu_where->threads)
#define gridDim (emu_where->blocks)
enum { warpSize = 32 };

/* Ends the program with a sentence that names the kernel, the block and the thread. */
[[noreturn]] void emu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void *emu_shared(const char *function);
#define ESP_SHARED(type, name)                                                                 \
    type *name = reinterpret_cast<type *>(emu_shared(__PRETTY_FUNCTION__))

/* Counts an access to shared memory, to find bank conflicts. `caller` is the name of the
 * function that makes the access. */
void emu_touch(const void *at, size_t bytes, const char *caller);
#define ESP_CALLER , const char *caller = __builtin_FUNCTION()
#define ESP_TOUCH(at, bytes) emu_touch((at), (bytes), caller)

/* ------------------------------------------------------------------ barriers */

#define EMU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct emu_count {
    int all, yes; /* how many threads arrived; how many of them had a predicate other than 0 */
};
emu_count emu_barrier(const char *what, int predicate, const char *file, int line);

static inline void __syncthreads(EMU_SITE)
{
    emu_barrier("__syncthreads", 0, file, line);
}

static inline int __syncthreads_count(int predicate, EMU_SITE)
{
    return emu_barrier("__syncthreads_count", predicate, file, line).yes;
}

static inline int __syncthreads_or(int predicate, EMU_SITE)
{
    return emu_barrier("__syncthreads_or", predicate, file, line).yes > 0;
}

static inline int __syncthreads_and(int predicate, EMU_SITE)
{
    emu_count count = emu_barrier("__syncthreads_and", predicate, file, line);
    return count.yes == count.all;
}

/* ----------------------------------------------------- functions that a warp calls together */

/* The last lane of `mask` that arrives calls this function. data[i] is the value of lane i, or
 * NULL if the lane is not in the mask. After the call, all lanes continue. */
typedef void emu_finish(void **data, unsigned mask);
void emu_meet(emu_finish *finish, const char *what, unsigned mask, void *data, const char *file,
              int line);
int emu_lane();

struct emu_exchange {
    uint64_t value, result;
    int source; /* the lane whose value becomes the result */
};
void emu_finish_sync(void **data, unsigned mask);
void emu_finish_shuffle(void **data, unsigned mask);
void emu_finish_ballot(void **data, unsigned mask); /* finds lanes with values other than 0 */
void emu_finish_match(void **data, unsigned mask);  /* finds lanes with equal values */

static inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_SITE)
{
    emu_meet(emu_finish_sync, "__syncwarp", mask, nullptr, file, line);
}

template <typename T>
static inline T emu_shuffle(const char *what, unsigned mask, T value, int source,
                            const char *file, int line)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "2, 4 or 8 bytes");
    emu_exchange exchange = {0, 0, source};
    memcpy(&exchange.value, &value, sizeof value);
    emu_meet(emu_finish_shuffle, what, mask, &exchange, file, line);
    memcpy(&value, &exchange.result, sizeof value);
    return value;
}

/* The four shuffles work as PTX defines shfl. A lane reads only from its segment of `width`
 * lanes. If the source is outside the segment, the lane gets its own value. */
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMU_SITE)
{
    int first = emu_lane() & ~(width - 1);
    return emu_shuffle("__shfl_sync", mask, value, first | (source & (width - 1)), file, line);
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_SITE)
{
    int lane = emu_lane(), source = lane - (int)by;
    source = source >= (lane & ~(width - 1)) ? source : lane;
    return emu_shuffle("__shfl_up_sync", mask, value, source, file, line);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_SITE)
{
    int lane = emu_lane(), source = lane + (int)by;
    source = source <= (lane | (width - 1)) ? source : lane;
    return emu_shuffle("__shfl_down_sync", mask, value, source, file, line);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, EMU_SITE)
{
    int lane = emu_lane(), source = lane ^ with;
    source = source <= (lane | (width - 1)) ? source : lane;
    return emu_shuffle("__shfl_xor_sync", mask, value, source & 31, file, line);
}

static inline unsigned emu_vote(const char *what, unsigned mask, int predicate,
                                const char *file, int line)
{
    emu_exchange exchange = {predicate != 0, 0, 0};
    emu_meet(emu_finish_ballot, what, mask, &exchange, file, line);
    return (unsigned)exchange.result;
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_SITE)
{
    return emu_vote("__ballot_sync", mask, predicate, file, line);
}

static inline int __any_sync(unsigned mask, int predicate, EMU_SITE)
{
    return emu_vote("__any_sync", mask, predicate, file, line) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, EMU_SITE)
{
    return emu_vote("__all_sync", mask, predicate, file, line) == mask;
}

template <typename T> static inline unsigned __match_any_sync(unsigned mask, T value, EMU_SITE)
{
    emu_exchange exchange = {0, 0, 0};
    memcpy(&exchange.value, &value, sizeof value);
    emu_meet(emu_finish_match, "__match_any_sync", mask, &exchange, file, line);
    return (unsigned)exchange.result;
}

/* ------------------------------------------------------------------ reductions of a warp */

void emu_finish_add(void **data, unsigned mask);
void emu_finish_and(void **data, unsigned mask);
void emu_finish_or(void **data, unsigned mask);
void emu_finish_xor(void **data, unsigned mask);
void emu_finish_min(void **data, unsigned mask); /* min and max compare as int64_t */
void emu_finish_max(void **data, unsigned mask);

#define EMU_REDUCE(name, finish, T)                                                            \
    static inline T name(unsigned mask, T value, EMU_SITE)                                     \
    {                                                                                          \
        emu_exchange exchange = {(uint64_t)(int64_t)value, 0, 0};                              \
        emu_meet(finish, #name, mask, &exchange, file, line);                                  \
        return (T)exchange.result;                                                             \
    }
EMU_REDUCE(__reduce_add_sync, emu_finish_add, int)
EMU_REDUCE(__reduce_add_sync, emu_finish_add, unsigned)
EMU_REDUCE(__reduce_min_sync, emu_finish_min, int)
EMU_REDUCE(__reduce_min_sync, emu_finish_min, unsigned)
EMU_REDUCE(__reduce_max_sync, emu_finish_max, int)
EMU_REDUCE(__reduce_max_sync, emu_finish_max, unsigned)
EMU_REDUCE(__reduce_and_sync, emu_finish_and, unsigned)
EMU_REDUCE(__reduce_or_sync, emu_finish_or, unsigned)
EMU_REDUCE(__reduce_xor_sync, emu_finish_xor, unsigned)
#undef EMU_REDUCE

/* ------------------------------------------------------------------ tensor cores */

/* Operands of D += A B; see esp_mma and esp_mma_s8 in kernels/cuda/device.h. Products are
 * exact. An element of D is summed in float in ascending order of k, starting from its old
 * value. So columns do not depend on each other.
 */
struct emu_mma_operands {
    uint32_t a[4], b[2];
    float *d;
};
struct emu_mma_integers {
    uint32_t a[4], b[2];
    int *d;
};
void emu_finish_mma_bf16(void **data, unsigned mask);
void emu_finish_mma_f16(void **data, unsigned mask);
void emu_finish_mma_s8(void **data, unsigned mask);

static inline void emu_mma_bf16(float *d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                uint32_t b0, uint32_t b1, EMU_SITE)
{
    emu_mma_operands operands = {{a0, a1, a2, a3}, {b0, b1}, d};
    emu_meet(emu_finish_mma_bf16, "mma.bf16", 0xffffffffu, &operands, file, line);
}

static inline void emu_mma_f16(float *d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                               uint32_t b0, uint32_t b1, EMU_SITE)
{
    emu_mma_operands operands = {{a0, a1, a2, a3}, {b0, b1}, d};
    emu_meet(emu_finish_mma_f16, "mma.f16", 0xffffffffu, &operands, file, line);
}

static inline void emu_mma_s8(int *d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                              uint32_t b0, uint32_t b1, EMU_SITE)
{
    emu_mma_integers operands = {{a0, a1, a2, a3}, {b0, b1}, d};
    emu_meet(emu_finish_mma_s8, "mma.s8", 0xffffffffu, &operands, file, line);
}

/* See esp_load_matrices in kernels/cuda/device.h. */
struct emu_matrices {
    const void *row;
    uint32_t *r;
};
void emu_finish_matrices(void **data, unsigned mask);
void emu_finish_turned_matrices(void **data, unsigned mask);

static inline void emu_load_matrices(uint32_t *r, const void *row, bool turned, EMU_SITE)
{
    emu_matrices matrices = {row, r};
    emu_touch(row, 16, "ldmatrix");
    emu_meet(turned ? emu_finish_turned_matrices : emu_finish_matrices, "ldmatrix", 0xffffffffu,
             &matrices, file, line);
}

/* If a kernel can begin before the previous kernel has ended, each of its threads must call
 * this function. */
void emu_wait_previous();

/* ------------------------------------------------------------------ copies in the background
 */

/* See esp_copy_begin in kernels/cuda/device.h. When a copy begins, its destination is filled
 * with 0xff. The source is read only when the thread waits for the copy. */
void emu_copy_begin(void *to, const void *from, bool there);
void emu_copy_group();
void emu_copy_wait(int left);

#undef EMU_SITE
#endif
