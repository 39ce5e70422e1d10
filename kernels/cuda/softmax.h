/* softmax.h - the six steps from logits to probabilities, for a block that computes a row or a
 * part of a row.
 *
 * The exponential uses the same operations as cpu/simd.h, and sums are added in the order of
 * the CPU (total.h). So the CPU backend computes bit-identical probabilities.
 *
 * Neither top-k nor top-p sorts the values: both search for one number, the last selected rank
 * (rank.h). For top-p, the weights are the exponentials, converted to integers. The unit of
 * these integers is 2^-61 times a power of two that is above the total of the exponentials.
 * Only exponentials below 2^-37 of the total are ignored.
 */
#ifndef ESP_CUDA_SOFTMAX_H
#define ESP_CUDA_SOFTMAX_H

#include "kernels/cuda/rank.h"
#include "kernels/cuda/total.h"

#include <cfloat>

static __device__ __forceinline__ struct esp_walk
esp_softmax_row(const struct esp_cuda_job *job, int begin, int end, float *kept, int held)
{
    const struct esp_walk w = {job->data + (size_t)job->which[blockIdx.x] * job->stride, kept,
                               begin, end, held};
    return w;
}

struct esp_walk_values { /* returns values of a walk, so that total.h can sum them */
    const struct esp_walk *w;

    __device__ double operator()(int i) const
    {
        return i < w->held ? w->kept[esp_held_place(i)] : w->row[i];
    }
};

/* Returns e^x for x <= 0, with the same bits as v16_exp(). */
static __device__ __forceinline__ float esp_exponential(float x)
{
    const float round = 0x1.8p23f;
    const float y = x > -87.0f ? x : -87.0f;
    const float shifted = fmaf(y, 0x1.715476p+0f, round); /* the integer n is in its low bits */
    const float n = shifted - round;
    float r = fmaf(n, -0x1.62e4p-1f, y);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = fmaf(0x1.6a4d5ap-10f, r, 0x1.12398ep-7f);
    p = fmaf(p, r, 0x1.5558b0p-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r * r, r) + 1.0f;
    return x < -87.0f ? 0.0f : p * __uint_as_float((__float_as_uint(shifted) + 127) << 23);
}

static __device__ __forceinline__ bool esp_finite(float x)
{
    return fabsf(x) <= FLT_MAX;
}

/* Returns the maximum of x over the threads of the block. `room` has a float for each warp, and
 * can be reused when this returns. */
static __device__ inline float esp_block_max(float x, float *room)
{
    x = esp_warp_max(x);
    if (threadIdx.x % ESP_WARP == 0)
        room[threadIdx.x / ESP_WARP] = x;
    __syncthreads();
    x = room[0];
    for (int i = 1; i < (int)blockDim.x / ESP_WARP; i++)
        x = room[i] > x ? room[i] : x;
    __syncthreads();
    return x;
}

/* Step 1. Copies the first w->held values to shared memory. Returns the largest value of the
 * walk, or infinity if a value is NaN. */
static __device__ inline float esp_softmax_top(const struct esp_walk *w, float *room)
{
    float top = -INFINITY;
    for (int i = w->begin + 4 * threadIdx.x; i < w->end; i += 4 * blockDim.x) {
        const float4 four = *reinterpret_cast<const float4 *>(w->row + i);
        const float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4 && i + j < w->end; j++)
            top = value[j] <= top ? top : value[j] == value[j] ? value[j] : INFINITY;
        if (i < w->held)
            esp_walk_store(w, i, four);
    }
    return esp_block_max(top, room);
}

/* Step 2. Returns the selection of the `top_k` largest logits. */
static __device__ inline struct esp_selection esp_softmax_best(int top_k)
{
    const struct esp_selection s = {(uint64_t)top_k, 0.0, 0.0f};
    return s;
}

/* Step 3. Replaces each value by e^((value - top) factor), or by 0 if its rank is above `cut`.
 */
static __device__ inline void esp_softmax_raise(const struct esp_walk *w, float top,
                                                float factor, uint64_t cut)
{
    for (int i = w->begin + 4 * threadIdx.x; i < w->end; i += 4 * blockDim.x) {
        float4 four = esp_walk_load(w, i);
        float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4; j++)
            value[j] =
                i + j < w->end && (cut == ESP_NO_RANK || esp_rank(value[j], i + j) <= cut)
                    ? esp_exponential((value[j] - top) * factor)
                    : 0.0f;
        esp_walk_store(w, i, make_float4(value[0], value[1], value[2], value[3]));
    }
    __syncthreads();
}

/* Step 4. Returns the selection of top-p among n exponentials. Exponentials of at most s.least
 * are never selected: their sum is less than half of the probability that top-p drops. */
static __device__ inline struct esp_selection esp_softmax_mass(double top_p, double total,
                                                               int n)
{
    struct esp_selection s;
    s.least = (float)(0.5 * (1.0 - top_p) * total / n);
    s.weigh = scalbn(1.0, 60 - ilogb(total));
    s.want = (uint64_t)ceil(top_p * total * s.weigh);
    s.want = s.want > 0 ? s.want : 1;
    return s;
}

/* Step 5. Zeroes the values with a rank above `cut`, and the values that step 4 ignored. */
static __device__ inline void esp_softmax_lower(const struct esp_walk *w, float least,
                                                uint64_t cut)
{
    for (int i = w->begin + 4 * threadIdx.x; i < w->end; i += 4 * blockDim.x) {
        float4 four = esp_walk_load(w, i);
        float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4; j++)
            if (!(value[j] > least) || esp_rank(value[j], i + j) > cut)
                value[j] = 0.0f;
        esp_walk_store(w, i, make_float4(value[0], value[1], value[2], value[3]));
    }
    __syncthreads();
}

/* Step 6. Divides the values by the total, and writes the results to the row. Some of the
 * values are in shared memory. */
static __device__ inline void esp_softmax_scale(const struct esp_walk *w, double total)
{
    const float inverse = (float)(1.0 / total);
    for (int i = w->begin + 4 * threadIdx.x; i < w->end; i += 4 * blockDim.x) {
        const float4 four = esp_walk_load(w, i);
        *reinterpret_cast<float4 *>(w->row + i) =
            make_float4(four.x * inverse, four.y * inverse, four.z * inverse, four.w * inverse);
    }
}

/* ------------------------------------------------------------------ softmax_parts.cu */

/* Returns whether each of `count` rows of n values is divided into parts, for several blocks.
 * This depends only on the device and these two numbers. */
bool esp_cuda_softmax_splits(const struct esp_cuda_backend *b, int n, int count);
void esp_cuda_softmax_parts(struct esp_cuda_backend *b, const struct esp_cuda_job_given &given);
/* Computes softmax in the graph of a draft step. The kernels read their job from the pass. */
void esp_cuda_softmax_parts(struct esp_cuda_backend *b, const struct esp_cuda_job_of_pass &pass,
                            int n, int rows);

#endif
