/* norm.cu - RMSNorm and LayerNorm of rows of the residual stream, rounded to 16 bits; and
 * hidden states, which are handed out where a norm reads them.
 *
 * There is one block per row, always of the same size, so that the order of a row's sums does
 * not depend on the batch. The variance is computed from the differences to the mean, in a
 * second pass over the row, which is still in the first-level cache.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

struct norm_args {
    const float *x, *weight, *bias; /* x: (rows, stride); weight = NULL: the identity */
    size_t stride;
    int n;
    float epsilon;
    bool centre; /* LayerNorm */
};

/* A row, normalised. Every thread of the block makes it. */
struct normed {
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

template <typename X>
static __device__ struct normed normalise(const X *x, const struct norm_args &a, float *room)
{
    struct normed row = {x, a.weight, a.bias, 0.0f, 1.0f};
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

/* Writes a row to out, with zeros in the columns n..width-1. */
template <typename T>
static __device__ void write(const struct normed &row, int n, int width, T *out)
{
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[i] = esp_from_float<T>(i < n ? row[i] : 0.0f);
}

/* Copies the state of batch row `row` to where state `state` is asked for. */
template <typename V>
static __device__ void hand_out(const struct esp_cuda_arrays &at, int state, int row,
                                const V &values, int n)
{
    for (int slot = 0; slot < at.pass->states; slot++) {
        if (at.pass->state[slot] != state || at.states_row[row] < 0)
            continue;
        float *to = at.pass->states_to + (size_t)at.states_row[row] * at.pass->states_stride +
                    (size_t)slot * n;
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            to[i] = values[i];
    }
}

template <typename T>
static __global__ void norm_kernel(struct esp_cuda_arrays at, struct norm_args a, int state,
                                   T *out)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    const float *x = a.x + (size_t)row * a.stride;
    write(normalise(x, a, room), a.n, (int)a.stride, out + (size_t)row * a.stride);
    hand_out(at, state, row, x, a.n);
}

template <typename T>
static __global__ void norm_final_kernel(struct esp_cuda_arrays at, struct norm_args a,
                                         int layers, T *out)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x;
    if (row < at.pass->wanted)
        write(normalise(a.x + (size_t)at.wanted[row] * a.stride, a, room), a.n, (int)a.stride,
              out + (size_t)row * a.stride);
    if (at.pass->states == 0 || row >= at.pass->rows)
        return;
    const float *x = a.x + (size_t)row * a.stride;
    hand_out(at, layers, row, x, a.n);
    hand_out(at, ESP_STATE_NORMED, row, normalise(x, a, room), a.n);
}

/* What the attention of EAGLE-3 reads (Li et al. 2025, section 3.1). */
template <typename T>
static __global__ void join_kernel(struct esp_cuda_arrays at, struct norm_args of_embedding,
                                   struct norm_args of_input, T *joined, size_t width)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x, n = of_input.n;
    if (row >= at.pass->rows)
        return;
    const float *token = of_embedding.x + (size_t)row * of_embedding.stride;
    const float *x = of_input.x + (size_t)row * of_input.stride;
    T *out = joined + (size_t)row * width;
    write(normalise(token, of_embedding, room), n, n, out);
    write(normalise(x, of_input, room), n, (int)width - n, out + n);
    hand_out(at, 0, row, x, n);
}

static struct norm_args args_of(const struct esp_cuda_cache *c, const float *weight,
                                const float *bias)
{
    const struct esp_model_desc *d = esp_cuda_weights_of(&c->base)->desc;
    return {
        c->x, weight, bias, c->hidden, d->hidden, d->norm_epsilon, d->norm == ESP_NORM_LAYER};
}

static cudaStream_t stream_of(const struct esp_cuda_cache *c)
{
    return ((struct esp_cuda_backend *)c->base.weights->backend)->stream;
}

static const size_t ROOM = THREADS / ESP_WARP * sizeof(float);

template <typename T>
void esp_cuda_norm(struct esp_cuda_cache *c, void *out, const float *weight, const float *bias,
                   int state, int rows)
{
    ESP_LAUNCH((norm_kernel<T>), dim3(rows), dim3(THREADS), ROOM, stream_of(c), c->at,
               args_of(c, weight, bias), state, (T *)out);
}

template <typename T> void esp_cuda_norm_final(struct esp_cuda_cache *c, void *out, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    ESP_LAUNCH((norm_final_kernel<T>), dim3(rows), dim3(THREADS), ROOM, stream_of(c), c->at,
               args_of(c, w->norm_final, w->norm_final_bias), w->desc->layers, (T *)out);
}

template <typename T> void esp_cuda_join(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    struct norm_args of_embedding = args_of(c, w->layer[0].norm1, NULL);
    of_embedding.x = c->embedded;
    ESP_LAUNCH((join_kernel<T>), dim3(rows), dim3(THREADS), ROOM, stream_of(c), c->at,
               of_embedding, args_of(c, w->norm_input, NULL), (T *)c->joined, c->joined_width);
}

template void esp_cuda_norm<float>(struct esp_cuda_cache *, void *, const float *,
                                   const float *, int, int);
template void esp_cuda_norm_final<float>(struct esp_cuda_cache *, void *, int);
template void esp_cuda_join<float>(struct esp_cuda_cache *, int);
template void esp_cuda_norm<esp_bf16>(struct esp_cuda_cache *, void *, const float *,
                                      const float *, int, int);
template void esp_cuda_norm_final<esp_bf16>(struct esp_cuda_cache *, void *, int);
template void esp_cuda_join<esp_bf16>(struct esp_cuda_cache *, int);
template void esp_cuda_norm<esp_f16>(struct esp_cuda_cache *, void *, const float *,
                                     const float *, int, int);
template void esp_cuda_norm_final<esp_f16>(struct esp_cuda_cache *, void *, int);
template void esp_cuda_join<esp_f16>(struct esp_cuda_cache *, int);
