/* gather.cu - reads single values of rows: the probabilities of the tokens of a tree. */
#include "kernels/cuda/rows.h"

enum { THREADS = 128 };

static __global__ void gather(const float *data, size_t stride, const int32_t *which,
                              const int32_t *tokens, int count, double *values)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        values[i] = data[(size_t)which[i] * stride + tokens[i]];
}

int esp_cuda_launch_gather(struct esp_cuda_rows *r, const int32_t *which, const int32_t *tokens,
                           int count, double *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(&r->base);
    const int blocks = (count + THREADS - 1) / THREADS;
    ESP_LAUNCH(gather, blocks, THREADS, 0, b->stream, r->data, r->stride, which, tokens, count,
               values);
    ESP_CUDA_LAUNCHED(b, "gather");
    return ESP_OK;
}
