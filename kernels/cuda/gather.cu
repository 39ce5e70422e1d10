/* gather.cu - reads single values from rows, such as the probabilities of a tree's tokens. */
#include "kernels/cuda/rows.h"

enum { THREADS = 128 };

static __global__ void gather(const float *data, size_t stride, const int32_t *which,
                              const int32_t *tokens, int count, double *values)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        values[i] = data[(size_t)which[i] * stride + tokens[i]];
}

int esp_cuda_gather(struct esp_rows *rows, const int32_t *which, const int32_t *tokens,
                    int count, double *values, enum esp_delivery when)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_rows *r = esp_cuda_rows_of(rows);
    const int32_t *asked, *of = NULL;
    if (!esp_tokens_exist(rows, tokens, count))
        return esp_cuda_refuse(rows);
    int status =
        esp_cuda_ask(rows, which, count,
                     esp_cuda_room<int32_t>(count) + esp_cuda_room<double>(count), &asked);
    if (!asked)
        return status;
    status = esp_cuda_put(rows, tokens, count, &of);
    if (status < 0)
        return status;
    double *found = esp_cuda_promise(rows, count, values);
    ESP_LAUNCH(gather, (count + THREADS - 1) / THREADS, THREADS, 0, b->stream, r->data,
               r->stride, asked, of, count, found);
    return esp_cuda_finish(rows, esp_cuda_launch_status(b, "gather"), when);
}
