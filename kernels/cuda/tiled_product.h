/* tiled_product.h - what the products of matmul.cu and blocks.cu share: the choice of a
 * kernel, and how the sums of a block's warps become the result.
 *
 * A block computes `high` tiles of 16 outputs for `groups` times 8 rows. The columns of the
 * weights are divided among its warps. Each warp writes its sums to shared memory, and they
 * are added in the order of the warps.
 */
#ifndef ESP_CUDA_TILED_PRODUCT_H
#define ESP_CUDA_TILED_PRODUCT_H

#include "kernels/cuda/experts.h"

enum {
    ESP_PRODUCT_WARPS = 8,
    ESP_PRODUCT_THREADS = ESP_PRODUCT_WARPS * ESP_WARP,
    ESP_PRODUCT_ROWS = 8 /* rows in a group */
};

/* ------------------------------------------------------------------ in a kernel */

/* Writes the sums of a warp to `parts` (ESP_PRODUCT_WARPS, 16 HIGH, 8 GROUPS). */
template <int HIGH, int GROUPS>
static __device__ __forceinline__ void esp_cuda_leave_sums(float *parts,
                                                           const float sum[HIGH][GROUPS][4])
{
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int height = ESP_CUDA_TILE * HIGH, width = ESP_PRODUCT_ROWS * GROUPS;
    float *to = parts + (warp * height + lane / 4) * width + 2 * (lane % 4);
#pragma unroll
    for (int h = 0; h < HIGH; h++)
#pragma unroll
        for (int j = 0; j < GROUPS; j++)
            esp_mma_store(to + h * ESP_CUDA_TILE * width + ESP_PRODUCT_ROWS * j, width,
                          sum[h][j]);
}

/* The sum over the warps for one output and row of the block. */
static __device__ __forceinline__ float esp_cuda_collect(const float *parts, int height,
                                                         int width, int output, int row)
{
    float sum = 0.0f;
    for (int warp = 0; warp < ESP_PRODUCT_WARPS; warp++)
        sum += parts[(warp * height + output) * width + row];
    return sum;
}

/* Writes one number of the result, for STORE, ADD or LOGITS. Returns the number, which for ADD
 * is the sum. */
static __device__ __forceinline__ float esp_cuda_put_output(const struct esp_cuda_arrays &at,
                                                            enum esp_cuda_epilogue epilogue,
                                                            float *to, size_t stride,
                                                            size_t row, int output, float y)
{
    if (epilogue == ESP_CUDA_STORE) {
        to[row * stride + output] = y;
    } else if (epilogue == ESP_CUDA_ADD) {
        y += to[row * stride + output];
        to[row * stride + output] = y;
    } else if (output < at.pass->logits_vocabulary) {
        at.pass->logits[at.wanted_at[row] * at.pass->logits_stride + output] = y;
    }
    return y;
}

/* In the last block, fills the columns of the logits beyond the model's vocabulary. */
static __device__ __forceinline__ void esp_cuda_fill_logits(const struct esp_cuda_arrays &at,
                                                            const struct esp_cuda_span &s,
                                                            int outputs)
{
    for (int row = s.first; blockIdx.x == gridDim.x - 1 && row < s.end; row++) {
        float *logits = at.pass->logits + at.wanted_at[row] * at.pass->logits_stride;
        for (int i = outputs + (int)threadIdx.x; i < at.pass->logits_vocabulary;
             i += ESP_PRODUCT_THREADS)
            logits[i] = -1e30f;
    }
}

/* ------------------------------------------------------------------ launching */

/* A kernel, how many rows (width) and outputs (height) its blocks take, and the bytes of
 * shared memory that they need. */
template <typename A> struct esp_cuda_variant {
    void (*kernel)(struct esp_cuda_arrays, A);
    int width, height;
    size_t bytes;
};

/* Chooses the narrowest variant that takes `rows` rows at once, or else the widest. If several
 * variants that take all rows at once have this width, the highest that still occupies the
 * whole device with `outputs` outputs is chosen. Variants are sorted by width, then by height.
 * Those that need more shared memory than a block may have are ignored. */
template <typename A>
static const struct esp_cuda_variant<A> *
esp_cuda_choose_variant(const struct esp_cuda_backend *backend,
                        const struct esp_cuda_variant<A> *all, int count, int rows,
                        int outputs) {
    const struct esp_cuda_variant<A> *best = all;
    for (const struct esp_cuda_variant<A> *v = all + 1; v < all + count; v++)
        if (v->bytes <= backend->shared_limit &&
            (best->width < rows
                 ? v->width > best->width
                 : v->width == best->width && outputs >= v->height * backend->multiprocessors))
            best = v;
    return best;
}

template <typename A>
static void esp_cuda_launch_product(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                                    const struct esp_cuda_variant<A> *v, const A &a, int rows)
{
    const int spans =
        p->tile > 0 ? esp_cuda_tiles_of(c, rows, p->tile) : (rows + v->width - 1) / v->width;
    ESP_LAUNCH(v->kernel, dim3((p->w->rows + v->height - 1) / v->height, spans),
               dim3(ESP_PRODUCT_THREADS), v->bytes, esp_cuda_backend_of(c)->stream, c->at, a);
}

#endif
