/* keep.cu - compaction of the cache: moves the accepted rows of a tree together, so that they
 * directly follow the rows of the text.
 *
 * Row which[i] becomes row first + i, where `which` is ascending and which[i] >= first + i. Row
 * first + i can be overwritten, because it is not moved later. A thread moves its own 16
 * bytes of a head for all i, in order. So there are no races, and one launch moves the keys and
 * values of all layers and heads.
 */
#include "kernels/cuda/cuda.h"

#include <cstring>

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

static int keep(struct esp_cuda_cache *c, int first, const int32_t *which, int count)
{
    char *slot = NULL;
    int status = esp_cuda_take_slot(c, &slot);
    if (status < 0)
        return status;
    const size_t at = (char *)c->keep_rows - c->pass_device;
    memcpy(slot + at, which, (size_t)count * sizeof *which);
    status = esp_cuda_send_slot(c, at, (size_t)count * sizeof *which);
    if (status < 0)
        return status;
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const int heads = esp_model_desc_attentions(d) * d->kv_heads;
    const int words = (int)(c->head_width / 8); /* 16-byte words in a head's row */
    const unsigned blocks = (unsigned)(((size_t)heads * words + THREADS - 1) / THREADS);
    if (c->states.layers > 0)
        esp_cuda_keep_inputs(c, first, count);
    if (heads == 0)
        return esp_cuda_launch_status(esp_cuda_backend_of(c), "compaction of the cache");
    ESP_LAUNCH(keep_kernel, dim3(blocks, 2), dim3(THREADS), 0, esp_cuda_backend_of(c)->stream,
               (uint4 *)c->k, (uint4 *)c->v, c->keep_rows, first, count, heads, (size_t)c->rows,
               words);
    return esp_cuda_launch_status(esp_cuda_backend_of(c), "compaction of the cache");
}

int esp_cuda_keep(struct esp_cache *cache, int first, const int32_t *which, int count)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    if (count > c->max_batch || !esp_keep_fits(c->rows, first, which, count))
        return esp_cuda_end(esp_cuda_backend_of(c), ESP_E_ARGUMENT);
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (status == ESP_OK && count > 0)
            status = keep(r, first, which, count);
    }
    return status;
}
