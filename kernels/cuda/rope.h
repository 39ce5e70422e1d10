/* rope.h - computes the queries, keys and values of attention from the output of the matrix
 * product, which is in c->inputs (struct esp_cuda_cache).
 *
 * Heads of queries and keys are normalised (RMSNorm) if the model has weights for that norm.
 * Then their pairs of dimensions (i, i + rotary/2) are rotated by the angle position *
 * inverse_frequency[i] ("RoFormer", Su et al. 2021, section 3.2.2). Dimensions `rotary` and
 * above do not change. In layers without rotation, no dimension changes. Queries are also
 * scaled by 1/sqrt(head_dim), or by the model's own factor.
 *
 * A warp computes a head. The attention kernels and rope.cu, which writes the keys of a large
 * pass, call the same functions, so their results are bit-identical.
 */
#ifndef ESP_CUDA_ROPE_H
#define ESP_CUDA_ROPE_H

#include "kernels/cuda/cuda.h"

struct esp_cuda_heads {
    const float *qkv; /* (rows, qkv_width) queries, keys and values of all heads */
    size_t qkv_width;
    /* (rows + 1, half) cosines and sines. The last row, `sinks_row`, is for queries that attend
     * to the attention sinks of a window. */
    const float2 *rotation;
    int sinks_row;
    /* The weights of the norms: (head_dim), or (heads, head_dim) if all heads are normalised
     * together. NULL if there is no norm. */
    const float *query_norm, *key_norm;
    /* (rows, 2) the factors of the norms of queries and keys, if all heads are normalised
     * together. */
    const float *together;
    bool query_together, key_together;
    int heads, kv_heads, head_dim, half;
    float scale, epsilon;
};

/* Returns the arguments for the heads of layer `layer`. */
struct esp_cuda_heads esp_cuda_heads_of(const struct esp_cuda_cache *c,
                                        const struct esp_cuda_layer *held, int layer);

/* Describes a head of a row, and its norm. operator[] returns a value of the head, which is
 * normalised if there is a norm. */
struct esp_cuda_head {
    const float *x, *weight;
    float scale;

    __device__ __forceinline__ float operator[](int d) const
    {
        return weight ? x[d] * scale * weight[d] : x[d];
    }
};

/* For each i < N, finds the head with index number[i] among the queries or keys of row[i]. All
 * lanes of a warp must call this. */
template <int N>
static __device__ __forceinline__ void
esp_cuda_find_heads(const struct esp_cuda_heads &a, const int row[N], const int number[N],
                    bool is_key, struct esp_cuda_head head[N])
{
    const bool together = is_key ? a.key_together : a.query_together;
    float sum[N] = {};
#pragma unroll
    for (int i = 0; i < N; i++) {
        head[i].x = a.qkv + (size_t)row[i] * a.qkv_width +
                    (size_t)((is_key ? a.heads : 0) + number[i]) * a.head_dim;
        head[i].weight = is_key ? a.key_norm : a.query_norm;
        head[i].scale = 1.0f;
        if (head[i].weight && together) {
            head[i].weight += (size_t)number[i] * a.head_dim;
            head[i].scale = a.together[2 * row[i] + is_key];
        }
    }
    if (!head[0].weight || together)
        return;
    for (int d = threadIdx.x % ESP_WARP; d < a.head_dim; d += ESP_WARP)
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[i] = fmaf(head[i].x[d], head[i].x[d], sum[i]);
#pragma unroll
    for (int i = 0; i < N; i++)
        head[i].scale = 1.0f / sqrtf(esp_warp_sum(sum[i]) / (float)a.head_dim + a.epsilon);
}

/* Returns dimension d of a head after the rotation. `turn` has `half` cosines and sines. */
static __device__ __forceinline__ float esp_cuda_rotated(const struct esp_cuda_head &head,
                                                         int d, int half, const float2 *turn)
{
    if (d >= 2 * half)
        return head[d];
    const float2 by = turn[d < half ? d : d - half];
    if (d < half)
        return fmaf(head[d], by.x, -(head[d + half] * by.y));
    return fmaf(head[d], by.x, head[d - half] * by.y);
}

/* For each i < N, writes query number[i] of row[i] to the array to[i]. Numbers after the end of
 * the head, up to `width`, become zero. If there[i] is false, all numbers become zero. All
 * lanes of a warp must call this. If `for_sinks` is true, rotates the queries by the position
 * that they have for the sinks (struct esp_window). */
template <int N, typename T>
static __device__ __forceinline__ void
esp_cuda_write_queries(const struct esp_cuda_heads &a, const int row[N], const int number[N],
                       const bool there[N], bool for_sinks, T *const to[N], int width)
{
    struct esp_cuda_head head[N];
    esp_cuda_find_heads<N>(a, row, number, false, head);
    for (int d = threadIdx.x % ESP_WARP; d < width; d += ESP_WARP) {
        float value[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float2 *turn =
                a.rotation + (size_t)(for_sinks ? a.sinks_row : row[i]) * a.half;
            value[i] = d < a.head_dim && there[i]
                           ? esp_cuda_rotated(head[i], d, a.half, turn) * a.scale
                           : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            to[i][d] = esp_from_float<T>(value[i]);
    }
}

/* Writes one query, in the same way as esp_cuda_write_queries(). */
template <typename T>
static __device__ void esp_cuda_write_query(const struct esp_cuda_heads &a, int row, int number,
                                            bool for_sinks, T *to, int width)
{
    const bool there = true;
    esp_cuda_write_queries<1>(a, &row, &number, &there, for_sinks, &to, width);
}

/* Writes the key and the value of one key/value head of a row to the arrays `key` and `value`.
 * Numbers after the end of the head, up to `width`, become zero. All lanes of a warp must call
 * this. */
template <typename T>
static __device__ void esp_cuda_write_key(const struct esp_cuda_heads &a, int row, int number,
                                          T *key, T *value, int width)
{
    struct esp_cuda_head head;
    esp_cuda_find_heads<1>(a, &row, &number, true, &head);
    const float2 *turn = a.rotation + (size_t)row * a.half;
    const float *v = a.qkv + (size_t)row * a.qkv_width +
                     (size_t)(a.heads + a.kv_heads + number) * a.head_dim;
    for (int d = threadIdx.x % ESP_WARP; d < width; d += ESP_WARP) {
        const bool inside = d < a.head_dim;
        key[d] = esp_from_float<T>(inside ? esp_cuda_rotated(head, d, a.half, turn) : 0.0f);
        value[d] = esp_from_float<T>(inside ? v[d] : 0.0f);
    }
}

#endif
