/* matmul.cu - our own product y = W x + bias for few rows of x, whose time is that of reading
 * W.
 *
 * Tensor cores multiply a tile of 16 outputs by 8 inputs of the reduction and 8 rows of x.
 * Which inputs those are is free as long as W and x agree, so lane (group, t) takes 8
 * neighbouring ones, columns 8t..8t+7 of a step of 32, in one 16-byte load from row-major
 * memory, and feeds them to two instructions. Nothing is repacked, and cuBLASLt can use the
 * same weights.
 *
 * A block owns 16 outputs; its 8 warps take every eighth step of the reduction and their sums
 * are added in the order of the warps. That order depends on the width of W alone: a row of the
 * result has the same bits in a batch of one or of a thousand. Rows of x past the batch (up to
 * the next multiple of 8) are computed and dropped; they cannot touch the others.
 */
#include "kernels/cuda/activation.h"
#include "kernels/cuda/experts.h"

enum { WARPS = 8, THREADS = WARPS * ESP_WARP, STEP = 32, AHEAD = 4, COLUMNS = 8 };

template <typename T> struct matmul_args {
    const T *w;
    size_t w_stride;
    const float *bias;
    int outputs, steps;
    const T *x;
    size_t x_stride;
    enum esp_cuda_epilogue epilogue;
    enum esp_activation activation;
    struct esp_clamp clamp;
    float *y;
    size_t y_stride;
    T *out;
    size_t out_stride;
    struct esp_cuda_mixture mixture;
};

/* The sum over the warps of output `row`, column `column` of the block's tile. */
static __device__ __forceinline__ float collect(const float *parts, int width, int row,
                                                int column)
{
    float sum = 0.0f;
    for (int warp = 0; warp < WARPS; warp++)
        sum += parts[(warp * ESP_CUDA_TILE + row) * width + column];
    return sum;
}

/* Writes the block's outputs for its rows. */
template <typename T>
static __device__ void finish_tile(const struct esp_cuda_arrays &at,
                                   const struct matmul_args<T> &a, const float *parts,
                                   const struct esp_cuda_span &s, const float *bias, int width)
{
    const int tile = blockIdx.x * ESP_CUDA_TILE;
    const bool gated = a.epilogue == ESP_CUDA_GATED;
    const int height = gated ? ESP_CUDA_TILE / 2 : ESP_CUDA_TILE;
    for (int i = threadIdx.x; i < height * width; i += THREADS) {
        const int row = i % height, column = i / height, output = tile + row;
        if (s.first + column >= s.end || output >= a.outputs)
            continue;
        const size_t at_row = s.first + column;
        float y = collect(parts, width, row, column) + (bias ? bias[output] : 0.0f);
        if (gated) {
            float up = collect(parts, width, row + height, column) +
                       (bias ? bias[output + height] : 0.0f);
            a.out[at_row * a.out_stride + tile / 2 + row] =
                esp_from_float<T>(esp_activated(a.activation, a.clamp, y, up));
        } else if (a.epilogue == ESP_CUDA_ACTIVATED) {
            a.out[at_row * a.out_stride + output] =
                esp_from_float<T>(esp_activated(a.activation, a.clamp, y, 1.0f));
        } else if (a.epilogue == ESP_CUDA_STORE) {
            a.y[at_row * a.y_stride + output] = y;
        } else if (a.epilogue == ESP_CUDA_ADD) {
            a.y[at_row * a.y_stride + output] += y;
        } else if (output < at.pass->logits_vocabulary) {
            at.pass->logits[at.wanted_at[at_row] * at.pass->logits_stride + output] = y;
        }
    }
}

/* Columns of the logits that the model does not have. */
template <typename T>
static __device__ void fill_logits(const struct esp_cuda_arrays &at,
                                   const struct matmul_args<T> &a, int first, int width,
                                   int rows)
{
    for (int column = 0; column < width && first + column < rows; column++) {
        float *row = at.pass->logits + at.wanted_at[first + column] * at.pass->logits_stride;
        for (int i = a.outputs + (int)threadIdx.x; i < at.pass->logits_vocabulary; i += THREADS)
            row[i] = -1e30f;
    }
}

template <typename T, int GROUPS>
static __global__ void __launch_bounds__(THREADS)
    matmul_kernel(struct esp_cuda_arrays at, struct matmul_args<T> a)
{
    ESP_SHARED(float, parts); /* (WARPS, 16, width) */
    const int width = COLUMNS * GROUPS;
    const bool logits = a.epilogue == ESP_CUDA_LOGITS;
    const struct esp_cuda_span s = esp_cuda_span_of(at, a.mixture, logits, width);
    if (s.first >= s.end)
        return;
    const size_t height = (size_t)(a.outputs + ESP_CUDA_TILE - 1) / ESP_CUDA_TILE * ESP_CUDA_TILE;
    const T *w = a.w + s.expert * height * a.w_stride;
    const float *bias = a.bias ? a.bias + s.expert * height : NULL;
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int group = lane / 4, t = lane % 4;
    const T *above = w + (size_t)(blockIdx.x * ESP_CUDA_TILE + group) * a.w_stride + 8 * t;
    const T *below = above + 8 * a.w_stride;
    const T *x[GROUPS];
    float sum[GROUPS][4] = {};
#pragma unroll
    for (int j = 0; j < GROUPS; j++)
        x[j] = a.x + esp_cuda_row_of(s, s.first + COLUMNS * j + group) * a.x_stride + 8 * t;

    for (int step = warp; step < a.steps; step += AHEAD * WARPS) {
        esp_eight<T> wa[AHEAD], wb[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (step + i * WARPS < a.steps) {
                wa[i] = esp_load_eight_once(above + (size_t)(step + i * WARPS) * STEP);
                wb[i] = esp_load_eight_once(below + (size_t)(step + i * WARPS) * STEP);
            }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (step + i * WARPS >= a.steps)
                break;
#pragma unroll
            for (int j = 0; j < GROUPS; j++) {
                const esp_eight<T> b =
                    esp_load_eight(x[j] + (size_t)(step + i * WARPS) * STEP);
                esp_mma(sum[j], wa[i].pair[0], wb[i].pair[0], wa[i].pair[1], wb[i].pair[1],
                        b.pair[0], b.pair[1], T());
                esp_mma(sum[j], wa[i].pair[2], wb[i].pair[2], wa[i].pair[3], wb[i].pair[3],
                        b.pair[2], b.pair[3], T());
            }
        }
    }
    float *mine = parts + (warp * ESP_CUDA_TILE + group) * width + 2 * t;
    for (int j = 0; j < GROUPS; j++)
        esp_mma_store(mine + COLUMNS * j, width, sum[j]);
    __syncthreads();
    finish_tile(at, a, parts, s, bias, width);
    if (logits && blockIdx.x == gridDim.x - 1)
        fill_logits(at, a, s.first, width, s.end);
}

template <typename T, int GROUPS>
static void launch(struct esp_cuda_cache *c, const struct matmul_args<T> &a, int rows, int tile)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const int width = COLUMNS * GROUPS;
    const int high = tile > 0 ? esp_cuda_tiles_of(c, rows, tile) : (rows + width - 1) / width;
    const dim3 grid((a.outputs + ESP_CUDA_TILE - 1) / ESP_CUDA_TILE, high);
    ESP_LAUNCH((matmul_kernel<T, GROUPS>), grid, dim3(THREADS),
               WARPS * ESP_CUDA_TILE * width * sizeof(float), stream, c->at, a);
}

template <typename T>
void esp_cuda_matmul(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows)
{
    const struct esp_model_desc *d = esp_cuda_weights_of(&c->base)->desc;
    const struct matmul_args<T> a = {
        (const T *)p->w->data, p->w->stride, p->w->bias, p->w->rows, (int)(p->w->stride / STEP),
            (const T *)p->x, p->x_stride, p->epilogue,
            d->activation, d->clamp, p->y, p->y_stride,
            (T *)p->out, p->out_stride, esp_cuda_mixture_of(c, p)
    };
    const int together = p->tile > 0 ? p->tile : rows;
    if (together <= COLUMNS)
        launch<T, 1>(c, a, rows, p->tile);
    else if (together <= 2 * COLUMNS)
        launch<T, 2>(c, a, rows, p->tile);
    else if (together <= 4 * COLUMNS)
        launch<T, 4>(c, a, rows, p->tile);
    else
        launch<T, 8>(c, a, rows, p->tile);
}

/* ------------------------------------------------------------------ after cuBLASLt */

/* The same as finish_tile, for a product that is already in memory. With STORE and ADD only the
 * bias is still to be added; with LOGITS also the columns that the model does not have. */
template <typename T>
static __global__ void finish_kernel(struct esp_cuda_arrays at, struct matmul_args<T> a,
                                     const float *product, size_t product_stride)
{
    const int i = blockIdx.y * THREADS + threadIdx.x, half = ESP_CUDA_TILE / 2;
    const size_t row = blockIdx.x;
    if (row >= (size_t)(a.epilogue == ESP_CUDA_LOGITS ? at.pass->wanted : at.pass->rows))
        return;
    if (a.epilogue == ESP_CUDA_GATED) {
        const int gate = i / half * ESP_CUDA_TILE + i % half, up = gate + half;
        const float *y = product + row * product_stride;
        if (up < a.outputs)
            a.out[row * a.out_stride + i] = esp_from_float<T>(
                esp_activated(a.activation, a.clamp, y[gate] + (a.bias ? a.bias[gate] : 0.0f),
                              y[up] + (a.bias ? a.bias[up] : 0.0f)));
    } else if (a.epilogue == ESP_CUDA_ACTIVATED) {
        if (i < a.outputs)
            a.out[row * a.out_stride + i] = esp_from_float<T>(esp_activated(
                a.activation, a.clamp, product[row * product_stride + i] + (a.bias ? a.bias[i] : 0.0f),
                1.0f));
    } else if (a.epilogue == ESP_CUDA_LOGITS) {
        float *logits = at.pass->logits + at.wanted_at[row] * at.pass->logits_stride;
        if (i >= a.outputs && i < at.pass->logits_vocabulary)
            logits[i] = -1e30f;
        else if (i < at.pass->logits_vocabulary && a.bias)
            logits[i] += a.bias[i];
    } else if (i < a.outputs && a.bias) {
        a.y[row * a.y_stride + i] += a.bias[i];
    }
}

template <typename T>
void esp_cuda_finish(struct esp_cuda_cache *c, const struct esp_cuda_product *p,
                     const float *product, size_t product_stride, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const struct esp_model_desc *d = w->desc;
    const struct matmul_args<T> a = {
        (const T *)p->w->data, p->w->stride, p->w->bias, p->w->rows, 0, NULL, 0, p->epilogue,
            d->activation, d->clamp, p->y, p->y_stride,
            (T *)p->out, p->out_stride, {NULL, NULL, NULL}
    };
    const size_t width = p->epilogue == ESP_CUDA_LOGITS ? p->columns : (size_t)p->w->rows;
    ESP_LAUNCH((finish_kernel<T>), dim3(rows, (unsigned)((width + THREADS - 1) / THREADS)),
               dim3(THREADS), 0, stream, c->at, a, product, product_stride);
}

template void esp_cuda_matmul<esp_bf16>(struct esp_cuda_cache *,
                                        const struct esp_cuda_product *, int);
template void esp_cuda_matmul<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_product *,
                                       int);
template void esp_cuda_finish<esp_bf16>(struct esp_cuda_cache *,
                                        const struct esp_cuda_product *, const float *, size_t,
                                        int);
template void esp_cuda_finish<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_product *,
                                       const float *, size_t, int);
