/* rope.cu - rotary position embedding (RoPE) of queries and keys, RMSNorm of their heads before
 * it in models that have that, and appending of keys and values to the cache.
 *
 * Pairs (i, i + rotary/2) of a head are rotated by position * inverse_frequency[i]; dimensions
 * from `rotary` on do not change, and none do in layers without rotation. Queries are also
 * scaled by 1/sqrt(head_dim), or by the model's own factor, and stay in single precision. Batch
 * row i becomes cache row first + i.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 128 };

struct rope_args {
    const float *qkv, *inverse_frequency;
    size_t qkv_width, head_width;
    const float *query_norm, *key_norm; /* or NULL */
    bool query_together, key_together;  /* they normalise all heads together */
    int heads, kv_heads, head_dim, half, cache_rows;
    float scale, rotary_scale, epsilon;
    float *q, *for_sinks;
};

/* A head, normalised if the model has weights for that. */
struct head {
    const float *x, *weight;
    float scale;

    __device__ __forceinline__ float operator[](int d) const
    {
        return weight ? x[d] * scale * weight[d] : x[d];
    }
};

/* Head `number` of `heads` at x. together: all are normalised together, weight is (heads,
 * head_dim); else (head_dim). Every thread of the block must call this. */
static __device__ __forceinline__ struct head normalised(const float *x, int number, int heads,
                                                         int head_dim, const float *weight,
                                                         bool together, float epsilon,
                                                         float *room)
{
    const int offset = number * head_dim, n = together ? heads * head_dim : head_dim;
    struct head head = {x + offset, weight, 1.0f};
    float sum = 0.0f;
    if (!weight)
        return head;
    if (together)
        head.weight += offset;
    else
        x += offset;
    for (int d = threadIdx.x; d < n; d += blockDim.x)
        sum = fmaf(x[d], x[d], sum);
    head.scale = 1.0f / sqrtf(esp_block_sum(sum, room) / (float)n + epsilon);
    return head;
}

/* A position by which heads are rotated. The product of a float is off by 1e-3 at position
 * 10,000, as it is for everybody who computes RoPE in floats; in a text without end it would
 * grow further. Positions behind a window that is full are multiplied as doubles (`far`). */
struct place {
    int position;
    bool far;
};

/* Dimension d of a head after the rotation. */
static __device__ __forceinline__ float rotated(const struct head &head, int d,
                                                const struct rope_args &a, struct place place)
{
    const int half = a.half;
    if (d >= 2 * half)
        return head[d];
    const int pair = d < half ? d : d - half;
    float cosine, sine;
    if (place.far) {
        const double angle = (double)place.position * (double)a.inverse_frequency[pair];
        cosine = (float)cos(angle);
        sine = (float)sin(angle);
    } else {
        const float angle = (float)place.position * a.inverse_frequency[pair];
        cosine = cosf(angle);
        sine = sinf(angle);
    }
    cosine *= a.rotary_scale;
    sine *= a.rotary_scale;
    if (d < half)
        return fmaf(head[pair], cosine, -(head[pair + half] * sine));
    return fmaf(head[pair + half], cosine, head[pair] * sine);
}

/* Block (row, head): heads count queries, then keys, then values. */
template <typename T>
static __global__ void rope_kernel(struct esp_cuda_arrays at, struct rope_args a, T *k, T *v)
{
    ESP_SHARED(float, room); /* (warps) */
    const int row = blockIdx.x, head = blockIdx.y;
    if (row >= at.pass->rows)
        return;
    const bool is_query = head < a.heads, is_key = !is_query && head < a.heads + a.kv_heads;
    const float *x = a.qkv + (size_t)row * a.qkv_width;
    const struct head from =
        is_query ? normalised(x, head, a.heads, a.head_dim, a.query_norm, a.query_together,
                              a.epsilon, room)
                 : normalised(x + (size_t)a.heads * a.head_dim, head - a.heads, a.kv_heads,
                              a.head_dim, is_key ? a.key_norm : NULL, a.key_together, a.epsilon,
                              room);
    const size_t cache_row = (size_t)at.pass->first + row;
    const bool gap = esp_cuda_has_gap(at, row);
    const struct place place = {at.positions[row], gap};
    const struct place for_sinks = {at.pass->sinks + at.pass->recent - 1, false};
    for (int d = threadIdx.x; d < (int)a.head_width; d += blockDim.x) {
        const bool inside = d < a.head_dim;
        if (is_query) {
            const size_t to = ((size_t)row * a.heads + head) * a.head_width + d;
            a.q[to] = (inside ? rotated(from, d, a, place) : 0.0f) * a.scale;
            if (gap)
                a.for_sinks[to] = (inside ? rotated(from, d, a, for_sinks) : 0.0f) * a.scale;
        } else if (is_key) {
            const size_t at_head = (size_t)(head - a.heads) * a.cache_rows + cache_row;
            float value = inside ? rotated(from, d, a, place) : 0.0f;
            k[at_head * a.head_width + d] = esp_from_float<T>(value);
        } else {
            const size_t at_head =
                (size_t)(head - a.heads - a.kv_heads) * a.cache_rows + cache_row;
            v[at_head * a.head_width + d] = esp_from_float<T>(inside ? from[d] : 0.0f);
        }
    }
}

template <typename T>
void esp_cuda_rope(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                   int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    const struct esp_model_desc *d = w->desc;
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const size_t at_layer = (size_t)layer * d->kv_heads * c->rows * c->head_width;
    const struct esp_layer *described = &d->layer[layer];
    const enum esp_rotation rotation = described->rotation;
    struct rope_args a = {
        c->qkv,
        rotation == ESP_ROTATION_LOCAL ? w->local_inverse_frequency : w->inverse_frequency,
        c->qkv_width,
        c->head_width,
        held->query_norm,
        held->key_norm,
        described->query_norm.rows != d->head_dim,
        described->key_norm.rows != d->head_dim,
        d->heads,
        d->kv_heads,
        d->head_dim,
        rotation == ESP_ROTATION_NONE ? 0 : d->rotary / 2,
        c->rows,
        d->attention_scale != 0 ? d->attention_scale : 1.0f / sqrtf((float)d->head_dim),
        d->rotary_scale != 0 ? d->rotary_scale : 1.0f,
        d->norm_epsilon,
        c->q,
        c->for_sinks};
    ESP_LAUNCH((rope_kernel<T>), dim3(rows, d->heads + 2 * d->kv_heads), dim3(THREADS),
               THREADS / ESP_WARP * sizeof(float), stream, c->at, a, (T *)c->k + at_layer,
               (T *)c->v + at_layer);
}

template void esp_cuda_rope<esp_bf16>(struct esp_cuda_cache *, const struct esp_cuda_layer *, int,
                                      int);
template void esp_cuda_rope<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_layer *, int,
                                      int);
