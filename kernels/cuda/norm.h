/* norm.h - computes RMSNorm and LayerNorm of the residual stream. The kernels that compute
 * norms also output the hidden states that a pass returns.
 *
 * A norm is computed in one of two forms. The model and the mode decide which form is used:
 *   whole   One block computes the norm of a row. norm.cu has a kernel for this; in add.cu, the
 *           block that has just added to the row computes it.
 *   halves  This form is for an RMSNorm before a product in bf16. The product that adds to x
 *           also writes x * weight, rounded, and the sum of squares of every 16 columns. The
 *           product that reads these results multiplies its sums by 1 / root mean square of the
 *           row. Every block computes this factor itself. So no row has to be complete before
 *           it is multiplied. This form is not possible in fp16, because numbers that are not
 *           normalised may overflow. It is also not possible for LayerNorm, which
 *           subtracts the mean first.
 * Both forms add in the same order for any number of rows.
 */
#ifndef ESP_CUDA_NORM_H
#define ESP_CUDA_NORM_H

#include "kernels/cuda/blocks.h"

/* If the pass outputs hidden state `state` of batch row `row`, writes `value` to column i of
 * this state. n: number of columns of a state. */
static __device__ __forceinline__ void esp_cuda_hand_out(const struct esp_cuda_arrays &at,
                                                         int state, int row, int i, int n,
                                                         float value)
{
    for (int slot = 0; slot < at.pass->states; slot++)
        if (at.pass->state[slot] == state && at.states_row[row] >= 0)
            at.pass->states_to[(size_t)at.states_row[row] * at.pass->states_stride +
                               (size_t)slot * n + i] = value;
}

/* ------------------------------------------------------------------ whole norms */

struct esp_cuda_norm_args {
    const float *weight, *bias; /* weight = NULL means the identity */
    size_t stride;              /* distance between two rows of x and of the result */
    int n;
    float epsilon;
    bool centre;               /* true for LayerNorm */
    int state;                 /* index of the hidden state in x, or ESP_CUDA_NO_STATE */
    struct esp_cuda_cuts cuts; /* receives the quantised result, for quantised weights */
};

struct esp_cuda_norm_args esp_cuda_norm_args_of(const struct esp_cuda_cache *c,
                                                const struct esp_cuda_norm *norm);

/* Holds a row, its mean and the factor of its norm. operator[] returns normalised values. */
struct esp_cuda_normed {
    const float *x;
    const float *weight, *bias;
    float mean, scale;

    __device__ __forceinline__ float operator[](int i) const
    {
        if (!weight)
            return x[i];
        return fmaf((x[i] - mean) * scale, weight[i], bias ? bias[i] : 0.0f);
    }
};

/* Computes the mean and the factor of a row. Every thread of the block must call this. For
 * LayerNorm, the variance is computed from the differences from the mean in a second loop over
 * the row, which is then still in the first-level cache. */
static __device__ __forceinline__ struct esp_cuda_normed
esp_cuda_normalise(const float *x, const struct esp_cuda_norm_args &a, float *room)
{
    struct esp_cuda_normed row = {x, a.weight, a.bias, 0.0f, 1.0f};
    float sum = 0.0f;
    if (!a.weight)
        return row;
    if (a.centre) {
        for (int i = threadIdx.x; i < a.n; i += blockDim.x)
            row.mean += x[i];
        row.mean = esp_block_sum(row.mean, room) / (float)a.n;
    }
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
        const float difference = x[i] - row.mean;
        sum = fmaf(difference, difference, sum);
    }
    row.scale = 1.0f / sqrtf(esp_block_sum(sum, room) / (float)a.n + a.epsilon);
    return row;
}

/* Writes the norm of x, which is row `row` of the pass, to `out`, and zeros to its padding.
 * Also outputs the hidden state. Thread i of the block only reads columns i, i + blockDim.x,
 * ... of x. */
template <typename T>
static __device__ __forceinline__ void
esp_cuda_write_norm(const struct esp_cuda_arrays &at, const struct esp_cuda_norm_args &a,
                    int row, const float *x, T *out, float *room)
{
    const struct esp_cuda_normed normed = esp_cuda_normalise(x, a, room);
    for (int i = threadIdx.x; i < (int)a.stride; i += blockDim.x) {
        const float value = i < a.n ? normed[i] : 0.0f;
        out[i] = esp_from_float<T>(value);
        if (i < a.n)
            esp_cuda_hand_out(at, a.state, row, i, a.n, x[i]);
        if (a.cuts.blocks > 0)
            esp_cuda_cut_block(a.cuts, row, i / ESP_BLOCK_COLUMNS, value);
    }
}

/* ------------------------------------------------------------------ norms in halves */

/* Describes the sums of squares that the first half of a norm writes. */
struct esp_cuda_squares {
    float *sum; /* (rows, tiles) sums over 16 columns; NULL if no norm is computed in halves */
    int tiles, n;
    float epsilon;
};

struct esp_cuda_squares esp_cuda_squares_of(const struct esp_cuda_cache *c);

/* Computes the first half of a norm for column i of a row. x is the value of the residual
 * stream in this column, after everything has been added to it. All lanes of a warp must call
 * this, and 16 consecutive lanes process the columns of a tile. `there` is false if a lane has
 * no column. */
template <typename T>
static __device__ __forceinline__ void
esp_cuda_begin_norm(const struct esp_cuda_arrays &at, const struct esp_cuda_norm_args &a,
                    const struct esp_cuda_squares &squares, int row, int i, float x, bool there,
                    T *out)
{
    float sum = there ? __fmul_rn(x, x) : 0.0f;
    for (int step = ESP_CUDA_TILE / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(ESP_ALL_LANES, sum, step);
    if (!there)
        return;
    out[row * a.stride + i] = esp_from_float<T>(x * a.weight[i]);
    if (i % ESP_CUDA_TILE == 0)
        squares.sum[(size_t)row * squares.tiles + i / ESP_CUDA_TILE] = sum;
    esp_cuda_hand_out(at, a.state, row, i, a.n, x);
}

/* Computes the second half of a norm: the factors of up to ROWS rows. Only the factors of the
 * first `count` rows are needed. All lanes of a warp must call this. The sums of all rows are
 * read at the same time, so the warp waits for memory once instead of once per row. */
template <int ROWS>
static __device__ __forceinline__ void
esp_cuda_norm_factors(const struct esp_cuda_squares &squares, const int row[ROWS], int count,
                      float factor[ROWS])
{
    float sum[ROWS] = {};
#pragma unroll(ROWS > 2 ? 1 : 4)
    for (int i = threadIdx.x % ESP_WARP; i < squares.tiles; i += ESP_WARP)
#pragma unroll
        for (int j = 0; j < ROWS; j++)
            if (j < count)
                sum[j] += squares.sum[(size_t)row[j] * squares.tiles + i];
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        factor[j] = 1.0f / sqrtf(esp_warp_sum(sum[j]) / (float)squares.n + squares.epsilon);
}

static __device__ __forceinline__ float
esp_cuda_norm_factor(const struct esp_cuda_squares &squares, int row)
{
    float factor;
    esp_cuda_norm_factors<1>(squares, &row, 1, &factor);
    return factor;
}

#endif
