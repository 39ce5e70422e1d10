/* rope.h - computes the queries, keys and values of attention from the output of their
 * product, c->qkv.
 *
 * Heads of queries and keys are normalised (RMSNorm) if the model has weights for that. Then
 * their pairs (i, i + rotary/2) are rotated by position * inverse_frequency[i] ("RoFormer", Su
 * et al. 2021, section 3.2.2). Dimensions from `rotary` on do not change; in layers without
 * rotation no dimensions change. Queries are also scaled by 1/sqrt(head_dim), or by the
 * model's own factor.
 *
 * A warp computes a head, always in the same way. So the results of the attention kernels and
 * of rope.cu, which writes the keys of a large pass, are bit-identical.
 */
#ifndef ESP_CUDA_ROPE_H
#define ESP_CUDA_ROPE_H

#include "kernels/cuda/cuda.h"

struct esp_cuda_heads {
    const float *qkv; /* (rows, qkv_width) queries, keys and values of all heads */
    size_t qkv_width;
    /* (rows + 1, half) cosines and sines; the last row, number `sinks_row`, is for queries
     * that see the sinks of a window. */
    const float2 *rotation;
    int sinks_row;
    /* (head_dim), or (heads, head_dim) if all heads are normalised together; NULL: no norm. */
    const float *query_norm, *key_norm;
    /* (rows, 2) factors of queries and keys, if all heads are normalised together. */
    const float *together;
    bool query_together, key_together;
    int heads, kv_heads, head_dim, half;
    float scale, epsilon;
};

/* The arguments for the heads of layer `layer`. */
struct esp_cuda_heads esp_cuda_heads_of(const struct esp_cuda_cache *c,
                                        const struct esp_cuda_layer *held, int layer);

/* A head, and the norm to be applied to it if the model has weights for that. */
struct esp_cuda_head {
    const float *x, *weight;
    float scale;

    __device__ __forceinline__ float operator[](int d) const
    {
        return weight ? x[d] * scale * weight[d] : x[d];
    }
};

/* Head `number` of the queries or keys of a row. All lanes of a warp call this. */
static __device__ __forceinline__ struct esp_cuda_head
esp_cuda_head_of(const struct esp_cuda_heads &a, int row, int number, bool is_key)
{
    const float *weight = is_key ? a.key_norm : a.query_norm;
    struct esp_cuda_head head = {a.qkv + (size_t)row * a.qkv_width +
                                     (size_t)((is_key ? a.heads : 0) + number) * a.head_dim,
                                 weight, 1.0f};
    if (!weight)
        return head;
    if (is_key ? a.key_together : a.query_together) {
        head.weight += (size_t)number * a.head_dim;
        head.scale = a.together[2 * row + is_key];
        return head;
    }
    float sum = 0.0f;
    for (int d = threadIdx.x % ESP_WARP; d < a.head_dim; d += ESP_WARP)
        sum = fmaf(head.x[d], head.x[d], sum);
    head.scale = 1.0f / sqrtf(esp_warp_sum(sum) / (float)a.head_dim + a.epsilon);
    return head;
}

/* Dimension d of a head after the rotation; turn: (half) cosines and sines. */
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

/* Writes a query of row `row` to `to` (width), with zeros after the head; called by a warp.
 * for_sinks: the query with which the sinks are seen. */
template <typename T>
static __device__ void esp_cuda_write_query(const struct esp_cuda_heads &a, int row, int number,
                                            bool for_sinks, T *to, int width)
{
    const struct esp_cuda_head head = esp_cuda_head_of(a, row, number, false);
    const float2 *turn = a.rotation + (size_t)(for_sinks ? a.sinks_row : row) * a.half;
    for (int d = threadIdx.x % ESP_WARP; d < width; d += ESP_WARP)
        to[d] = esp_from_float<T>(
            d < a.head_dim ? esp_cuda_rotated(head, d, a.half, turn) * a.scale : 0.0f);
}

/* Writes key and value of a row and a key/value head to `key` and `value` (width), with zeros
 * after the head; called by a warp. */
template <typename T>
static __device__ void esp_cuda_write_key(const struct esp_cuda_heads &a, int row, int number,
                                          T *key, T *value, int width)
{
    const struct esp_cuda_head head = esp_cuda_head_of(a, row, number, true);
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
