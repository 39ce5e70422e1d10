/* rope.cu - has two kernels. One writes the keys and values of a large pass to the cache,
 * because many blocks read them. The other computes the factors of an RMSNorm over all heads of
 * a row (OLMo 2). In all other cases, the attention kernels call the functions of rope.h
 * themselves. */
#include "kernels/cuda/rope.h"

enum { WARPS = 4, THREADS = WARPS * ESP_WARP };

/* Computes the factors of norms over all heads. Grid: (rows, queries or keys). */
static __global__ void together_kernel(struct esp_cuda_arrays at, struct esp_cuda_heads a,
                                       float *together)
{
    ESP_SHARED(float, room); /* (WARPS) */
    const int row = blockIdx.x, is_key = blockIdx.y;
    if (row >= at.pass->rows)
        return;
    const float *x =
        a.qkv + (size_t)row * a.qkv_width + (is_key ? (size_t)a.heads * a.head_dim : 0);
    const int n = (is_key ? a.kv_heads : a.heads) * a.head_dim;
    float sum = 0.0f;
    for (int d = threadIdx.x; d < n; d += THREADS)
        sum = fmaf(x[d], x[d], sum);
    sum = esp_block_sum(sum, room);
    if (threadIdx.x == 0)
        together[2 * row + is_key] = 1.0f / sqrtf(sum / (float)n + a.epsilon);
}

/* Writes keys and values to the cache; a warp writes one key/value head of one row. */
template <typename T>
static __global__ void append_kernel(struct esp_cuda_arrays at, struct esp_cuda_heads a, T *k,
                                     T *v, int cache_rows, int width)
{
    esp_begin_early();
    const int row = blockIdx.x, head = blockIdx.y * WARPS + threadIdx.x / ESP_WARP;
    if (row >= at.pass->rows || head >= a.kv_heads)
        return;
    const size_t to = ((size_t)head * cache_rows + at.pass->first + row) * width;
    esp_cuda_write_key(a, row, head, k + to, v + to, width);
}

struct esp_cuda_heads esp_cuda_heads_of(const struct esp_cuda_cache *c,
                                        const struct esp_cuda_layer *held, int layer)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const struct esp_layer *described = &d->layer[layer];
    const enum esp_rotation rotation = described->rotation;
    return {c->inputs,
            c->inputs_width,
            rotation == ESP_ROTATION_LOCAL ? c->local_rotation : c->rotation,
            c->max_batch,
            held->query_norm,
            held->key_norm,
            c->together,
            held->query_norm && described->query_norm.rows != d->head_dim,
            held->key_norm && described->key_norm.rows != d->head_dim,
            d->heads,
            d->kv_heads,
            d->head_dim,
            rotation == ESP_ROTATION_NONE ? 0 : d->rotary / 2,
            d->attention_scale != 0 ? d->attention_scale : 1.0f / sqrtf((float)d->head_dim),
            d->norm_epsilon};
}

template <typename T>
void esp_cuda_rope(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                   int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    cudaStream_t stream = esp_cuda_backend_of(c)->stream;
    const size_t at_layer = (size_t)held->place * d->kv_heads * c->rows * c->head_width;
    const struct esp_cuda_heads a = esp_cuda_heads_of(c, held, layer);
    if (a.query_together || a.key_together)
        ESP_LAUNCH(together_kernel, dim3(rows, 2), dim3(THREADS), WARPS * sizeof(float), stream,
                   c->at, a, c->together);
    if (!esp_cuda_fresh(rows))
        ESP_LAUNCH_EARLY(esp_cuda_early(c), (append_kernel<T>),
                         dim3(rows, (d->kv_heads + WARPS - 1) / WARPS), dim3(THREADS), 0,
                         stream, c->at, a, (T *)c->k + at_layer, (T *)c->v + at_layer, c->rows,
                         (int)c->head_width);
}

template void esp_cuda_rope<esp_bf16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                      int, int);
template void esp_cuda_rope<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                     int, int);
