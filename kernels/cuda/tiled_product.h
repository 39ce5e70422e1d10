/* tiled_product.h - shared by the matrix products of matmul.cu and blocks.cu. Its functions
 * choose a kernel, and turn the sums of the warps of a block into the result.
 *
 * A block computes `high` tiles of 16 outputs for `groups` times 8 rows. The columns of the
 * weights are divided among its warps. Each warp writes its sums to shared memory. Then the
 * sums of all warps are added in the order of the warps.
 */
#ifndef ESP_CUDA_TILED_PRODUCT_H
#define ESP_CUDA_TILED_PRODUCT_H

#include "kernels/cuda/experts.h"

enum {
    ESP_PRODUCT_WARPS = 8,
    ESP_PRODUCT_THREADS = ESP_PRODUCT_WARPS * ESP_WARP,
    ESP_PRODUCT_ROWS = 8 /* rows in a group */
};

/* ------------------------------------------------------------------ functions for kernels */

/* Returns how many bytes of shared memory the sums of all warps of a block take, for `height`
 * outputs and `width` rows. */
static constexpr size_t esp_cuda_sums_bytes(int height, int width)
{
    return (size_t)ESP_PRODUCT_WARPS * height * width * sizeof(float);
}

/* Returns a number `turn` that permutes the pairs of rows of an output in shared memory: pair p
 * is stored at index p ^ turn. In one access, half a warp writes 4 outputs by 4 pairs, or reads
 * 16 outputs by 1 pair or 8 outputs by 2 pairs, with 8 bytes for each. Because of the
 * permutation, each of these accesses uses 32 different banks. `pairs` must be 4, 8 or a
 * multiple of 16. */
static __device__ __forceinline__ int esp_cuda_turn(int output, int pairs)
{
    const int high = pairs >= 16 ? output & 3 : pairs == 8 ? output >> 1 & 1 : 0;
    return high << 2 | (output >> 2 & 1) << 1 | (output >> 3 & 1);
}

/* Writes the sums of a warp to `parts`, of shape (ESP_PRODUCT_WARPS, 16 HIGH, 4 GROUPS). */
template <int HIGH, int GROUPS>
static __device__ __forceinline__ void esp_cuda_leave_sums(float2 *parts,
                                                           const float sum[HIGH][GROUPS][4])
{
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int height = ESP_CUDA_TILE * HIGH, pairs = ESP_PRODUCT_ROWS / 2 * GROUPS;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int group = lane / 4 + 8 * i, turn = esp_cuda_turn(group, pairs);
        float2 *to = parts + (warp * height + group) * pairs;
#pragma unroll
        for (int h = 0; h < HIGH; h++)
#pragma unroll
            for (int j = 0; j < GROUPS; j++)
                esp_shared_put(to + h * ESP_CUDA_TILE * pairs + ((4 * j + lane % 4) ^ turn),
                               make_float2(sum[h][j][2 * i], sum[h][j][2 * i + 1]));
    }
}

/* Returns the sums over all warps for one output and for both rows of a pair. */
static __device__ __forceinline__ float2 esp_cuda_collect(const float2 *parts, int height,
                                                          int pairs, int output, int pair)
{
    const float2 *from = parts + output * pairs + (pair ^ esp_cuda_turn(output, pairs));
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int warp = 0; warp < ESP_PRODUCT_WARPS; warp++) {
        const float2 of = esp_shared_get(from + warp * height * pairs);
        sum.x += of.x;
        sum.y += of.y;
    }
    return sum;
}

/* Writes one number of the result, for the epilogues STORE, ADD and LOGITS. Returns the number
 * that was written; for ADD this is the sum. */
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

/* Fills the columns of the logits after the model's vocabulary with -1e30. All blocks call
 * this, but only the last block in the x dimension of the grid writes. */
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

/* Describes a variant of a product's kernel. `width` and `height` are the numbers of rows and
 * outputs that one of its blocks computes. `bytes` is the shared memory that a block needs. */
template <typename A> struct esp_cuda_variant {
    void (*kernel)(struct esp_cuda_arrays, A);
    int width, height;
    size_t bytes;
    int flight; /* bytes of weights that a block has in flight */
    /* Bytes of the next tile's weights that a persistent block has in flight while it finishes
     * a tile. 0 means that a block is not persistent and computes one tile. */
    int ahead;
    /* The following members are only used for predictions. */
    int end_cycles; /* for how many cycles a block uses shared memory after its loop */
    /* Instructions of a warp per KB of weights (from tests/cuda/sass.py): `issue` for a block
     * with all its tiles of 16 outputs, `issue_lower` for a block with one tile fewer. 0 means
     * that instructions are never the limit. */
    int issue, issue_lower;
};

/* Returns how many cycles it takes to write the sums of `high` tiles for `width` rows to shared
 * memory and to read them again. Writing 64 numbers takes two cycles, and reading them takes
 * two cycles, too. */
static constexpr int esp_cuda_end_cycles(int high, int width)
{
    return ESP_PRODUCT_WARPS * high * width;
}

/* Chooses the narrowest variant whose width is at least `rows`. If there is none, chooses the
 * widest variant. Among several variants of this width, a later variant replaces an earlier one
 * if better(later, earlier). Variants are sorted by width, then by height, then by stages.
 * Ignores variants that need more shared memory than a block can have. */
template <typename A, typename Better>
static const struct esp_cuda_variant<A> *
esp_cuda_choose_variant(const struct esp_cuda_backend *backend,
                        const struct esp_cuda_variant<A> *all, int count, int rows,
                        const Better &better) {
    const struct esp_cuda_variant<A> *best = all;
    for (const struct esp_cuda_variant<A> *v = all + 1; v < all + count; v++)
        if (v->bytes <= backend->shared_limit &&
            (best->width < rows ? v->width > best->width
                                : v->width == best->width && better(v, best)))
            best = v;
    return best;
}

/* Returns the size of the second dimension of the grid: the number of groups of `width` rows
 * or, with experts, the number of tiles of pairs (experts.h). */
static inline int
esp_cuda_spans_of(const struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows,
                  int width)
{
    return p->tile > 0 ? esp_cuda_tiles_of(c, rows, p->tile) : (rows + width - 1) / width;
}

/* Returns the cost of products with a grid of `blocks` by `spans` blocks. The matrices have
 * `matrix` bytes and `tiles` tiles of 16 outputs. */
template <typename A>
static struct esp_cuda_cost esp_cuda_cost_of(const struct esp_cuda_product *p,
                                             const struct esp_cuda_variant<A> *v, double matrix,
                                             int tiles, int blocks, int spans, int rows)
{
    /* bytes per activation */
    const double value = esp_dtype_quantised(p->w->dtype) ? 2.25 : 2.0;
    const int of_span = rows < v->width ? rows : v->width;
    const int high = v->height / ESP_CUDA_TILE, lower = high > 1 ? high - 1 : 1;
    /* full: number of blocks that compute `high` tiles; the other blocks compute one tile
     * fewer */
    const int more = tiles - lower * blocks, full = more > 0 ? more : 0;
    struct esp_cuda_cost cost = {};
    cost.memory = p->tile > 0 ? spans * matrix : matrix;
    cost.cache =
        spans * matrix - cost.memory + (double)blocks * spans * of_span * p->w->stride * value;
    cost.flight = v->flight;
    cost.ahead = v->ahead;
    cost.blocks = (double)blocks * spans;
    cost.issue =
        ((double)full * high * v->issue + (double)(tiles - full * high) * v->issue_lower) *
        matrix / tiles / 1024 / blocks;
    if (v->width > 1) /* one_row.cu uses no tensor cores */
        cost.products = (double)tiles / blocks * ESP_CUDA_TILE * v->width * p->w->stride;
    cost.end_cycles = v->end_cycles;
    cost.waits = 2;
    return cost;
}

/* Launches the kernel with a grid of `blocks` by `spans` blocks for `count` products. Their
 * matrices have the same number of columns and read the same activations. */
template <typename A>
static void esp_cuda_launch_product(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                                    int count, const struct esp_cuda_variant<A> *v, const A &a,
                                    int blocks, int spans, int rows)
{
    const struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const bool persistent = v->ahead > 0 && blocks > backend->multiprocessors;
    double matrix = 0;
    int tiles = 0;
    for (int i = 0; i < count; i++) {
        matrix += (double)esp_cuda_matrix_bytes(p[i].w);
        tiles += (p[i].w->rows + ESP_CUDA_TILE - 1) / ESP_CUDA_TILE;
    }
    const struct esp_cuda_cost cost =
        esp_cuda_cost_of(p, v, matrix, tiles, blocks, spans, rows);
    esp_cuda_costs(esp_cuda_backend_of(c), &cost);
    ESP_LAUNCH_EARLY(esp_cuda_early(c), v->kernel,
                     dim3(persistent ? backend->multiprocessors : blocks, spans),
                     dim3(ESP_PRODUCT_THREADS), v->bytes, backend->stream, c->at, a);
}

#endif
