/* transfer.cu - copies the arguments of calls on rows to the device, and copies the results of
 * these calls to the host.
 *
 * Arguments are written to pinned memory. Kernels read small arguments from this memory, over
 * the bus; larger arguments are first copied to the device. Kernels write results to pinned
 * memory. So a call needs one launch, and one wait if it returns values. softmax() does not
 * wait, so its arguments stay in pinned memory until the stream is known to be idle.
 */
#include "kernels/cuda/rows.h"

#include <cstring>

enum { READ_IN_PLACE = 256 }; /* arguments of up to this many bytes are not copied */

void esp_cuda_transfer_close(struct esp_cuda_transfer *t)
{
    esp_cuda_fine(cudaFreeHost(t->host));
    esp_cuda_fine(cudaFree(t->device));
    memset(t, 0, sizeof *t);
}

int esp_cuda_transfer_open(struct esp_cuda_backend *b, struct esp_cuda_transfer *t,
                           size_t bytes)
{
    struct esp_cuda_transfer fresh = {NULL, NULL, bytes, 0};
    cudaError_t result = cudaMallocHost(reinterpret_cast<void **>(&fresh.host), bytes);
    if (result == cudaSuccess)
        result = cudaMalloc(reinterpret_cast<void **>(&fresh.device), bytes);
    if (result != cudaSuccess) {
        esp_cuda_transfer_close(&fresh);
        return esp_cuda_failed(b, "allocating memory for arguments and results", result);
    }
    esp_cuda_transfer_close(t);
    *t = fresh;
    return ESP_OK;
}

/* ------------------------------------------------------------------ requests */

int esp_cuda_refuse(struct esp_rows *rows)
{
    return esp_cuda_end(esp_cuda_of(rows), ESP_E_ARGUMENT);
}

/* ------------------------------------------------------------------ a call */

/* Waits until the stream is idle, and copies the results to the callers' memory. */
static int settle(struct esp_rows *rows)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const int answers = b->answers;
    b->answers = 0;
    ESP_CUDA(b, cudaStreamSynchronize(b->stream));
    for (int i = 0; i < answers; i++) {
        memcpy(b->answer[i].to, b->answer[i].from, b->answer[i].bytes);
        b->answer[i].rows->transfer.used = 0;
    }
    esp_cuda_rows_of(rows)->transfer.used = 0;
    return ESP_OK;
}

int esp_cuda_finish(struct esp_rows *rows, int status, enum esp_delivery when)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    if (status == ESP_OK && when == ESP_LATER)
        return ESP_OK;
    if (status == ESP_OK)
        status = settle(rows);
    b->answers = 0;
    const int numeric = *b->numeric;
    *b->numeric = 0;
    return status < 0 ? status : numeric ? ESP_E_NUMERIC : ESP_OK;
}

int esp_cuda_begin(struct esp_rows *rows, size_t bytes)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    struct esp_cuda_transfer *t = &esp_cuda_rows_of(rows)->transfer;
    esp_cuda_enter(rows->backend);
    if (bytes <= t->bytes - t->used && b->answers <= ESP_CUDA_ANSWERS - 2)
        return ESP_OK;
    int status = settle(rows);
    return status < 0 || bytes <= t->bytes ? status : esp_cuda_transfer_open(b, t, bytes);
}

int esp_cuda_ask(struct esp_rows *rows, const int32_t *which, int count, size_t bytes,
                 const int32_t **asked)
{
    *asked = NULL;
    if (!esp_rows_exist(rows, which, count))
        return esp_cuda_refuse(rows);
    if (count == 0)
        return ESP_OK;
    const int32_t *put = NULL;
    int status = esp_cuda_begin(rows, esp_cuda_room<int32_t>(count) + bytes);
    if (status == ESP_OK)
        status = esp_cuda_put(rows, which, count, &put);
    *asked = status == ESP_OK ? put : NULL;
    return status;
}

void *esp_cuda_take_pinned(struct esp_rows *rows, size_t bytes)
{
    struct esp_cuda_transfer *t = &esp_cuda_rows_of(rows)->transfer;
    char *at = t->host + t->used;
    t->used += esp_cuda_room<char>(bytes);
    return at;
}

void *esp_cuda_promise_bytes(struct esp_rows *rows, void *to, size_t bytes)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    void *from = esp_cuda_take_pinned(rows, bytes);
    if (to)
        b->answer[b->answers++] = {esp_cuda_rows_of(rows), to, from, bytes};
    return from;
}

int esp_cuda_put_bytes(struct esp_rows *rows, const void *from, size_t bytes, const void **to)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_transfer *t = &esp_cuda_rows_of(rows)->transfer;
    char *copy = t->device + t->used;
    void *pinned = esp_cuda_take_pinned(rows, bytes);
    *to = pinned;
    if (bytes == 0)
        return ESP_OK;
    memcpy(pinned, from, bytes);
    if (bytes <= READ_IN_PLACE)
        return ESP_OK;
    ESP_CUDA(b, cudaMemcpyAsync(copy, pinned, bytes, cudaMemcpyHostToDevice, b->stream));
    *to = copy;
    return ESP_OK;
}
