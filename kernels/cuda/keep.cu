/* keep.cu - compaction: the accepted rows of a tree are moved together behind the text.
 *
 * Row which[i] becomes row first + i, where which ascends and which[i] >= first + i. So row
 * first + i may have been read for an earlier i, but is never still needed for a later one. A
 * thread does all i in order for its own 16 bytes of a head, so there are no races, and one
 * launch does all layers, heads, keys and values.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 128 };

static __global__ void keep_kernel(uint4 *k, uint4 *v, const int32_t *which, int first,
                                   int count, int heads, size_t cache_rows, int words)
{
    const size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const size_t head = thread / words, word = thread % words;
    if (head >= (size_t)heads)
        return;
    uint4 *rows = (blockIdx.y == 0 ? k : v) + head * cache_rows * words + word;
    for (int i = 0; i < count; i++)
        if (which[i] != first + i)
            rows[(size_t)(first + i) * words] = rows[(size_t)which[i] * words];
}

void esp_cuda_launch_keep(struct esp_cuda_cache *c, int first, int count)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const int heads = w->desc->layers * w->desc->kv_heads;
    const int words = (int)(c->head_width / 8); /* of 16 bytes in a head's row */
    const unsigned blocks = (unsigned)(((size_t)heads * words + THREADS - 1) / THREADS);
    ESP_LAUNCH(keep_kernel, dim3(blocks, 2), dim3(THREADS), 0, stream, (uint4 *)c->k,
               (uint4 *)c->v, c->keep_rows, first, count, heads, (size_t)c->rows, words);
}
