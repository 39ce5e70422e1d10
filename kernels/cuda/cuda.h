/* cuda.h - what the files of the CUDA backend share.
 *
 * plugin.cu opens a device and holds the table of operations, weights.cu copies a model to it,
 * cache.cu holds keys and values and plans memory, forward.cu runs a batch through the model by
 * the launchers below, rows.cu answers questions about logits. One operation per .cu file: the
 * kernel and its launcher, nothing of CUDA outside. The structs begin with the public ones of
 * kernels.h, so that a pointer to one is a pointer to the other.
 *
 * Everything a backend does goes through its one stream, in order. Calls that return values to
 * the host synchronise once, at their end; forward(), keep() and softmax() do not wait. A value
 * that is not a number is therefore reported by the next call that returns values.
 */
#ifndef ESP_CUDA_H
#define ESP_CUDA_H

#include "cuda/device.h"

extern "C" {
#include "error.h"
#include "kernels.h"
}

struct esp_cuda_backend {
    struct esp_backend base;
    bool exact; /* the same order of every sum for any number of rows */
    int multiprocessors;
    size_t shared_limit; /* bytes of shared memory a block may ask for */
    cudaStream_t stream;
    cublasLtHandle_t lt;
    void *workspace; /* (workspace_bytes) of cuBLASLt */
    size_t workspace_bytes;
    char device[160];
    char failure[256]; /* the sentence about the last call that failed, or "" */
};

/* Runs a CUDA call inside a function that returns a status: a failure is remembered in the
 * backend's `failure` and returned as ESP_E_DEVICE (ESP_E_MEMORY if memory ran out). */
#define ESP_CUDA(backend, call)                                                                \
    do {                                                                                       \
        cudaError_t esp_cuda_result = (call);                                                  \
        if (esp_cuda_result != cudaSuccess)                                                    \
            return esp_cuda_failed((backend), #call, esp_cuda_result);                         \
    } while (0)

/* After a launch: did it start? */
#define ESP_CUDA_LAUNCHED(backend, what)                                                       \
    do {                                                                                       \
        cudaError_t esp_cuda_result = cudaGetLastError();                                      \
        if (esp_cuda_result != cudaSuccess)                                                    \
            return esp_cuda_failed((backend), what, esp_cuda_result);                          \
    } while (0)

int esp_cuda_failed(struct esp_cuda_backend *backend, const char *call, cudaError_t result);

/* ------------------------------------------------------------------ rows */

/* What one call sends to the device and gets back: a pinned block and its twin there, laid out
 * by rows.cu. Made with the rows; grows only if a caller asks for more entries than its rows
 * ever had. */
struct esp_cuda_transfer {
    char *host, *device; /* (bytes) */
    size_t bytes;
};

struct esp_cuda_rows {
    struct esp_rows base;
    size_t stride; /* vocabulary, padded to 32 */
    float *data;   /* (capacity, stride) on the device */
    void *scratch; /* device scratch of softmax and top_k, see rows.cu */
    int *numeric;  /* on the device: set to 1 by whoever meets a value that is not a number */
    struct esp_cuda_transfer transfer;
};

static inline struct esp_cuda_backend *esp_cuda_of(const struct esp_rows *rows)
{
    return reinterpret_cast<struct esp_cuda_backend *>(rows->backend);
}

int esp_cuda_rows_open(struct esp_rows **rows, struct esp_backend *backend, int capacity,
                       int vocabulary, char *err, size_t errlen);
void esp_cuda_rows_close(struct esp_rows *rows);
size_t esp_cuda_rows_need(int capacity, int vocabulary); /* bytes on the device */
int esp_cuda_argmax(struct esp_rows *rows, const int32_t *which, int count, int32_t *ids);
int esp_cuda_top_k(struct esp_rows *rows, const int32_t *which, int count, int k, int32_t *ids,
                   float *values);
int esp_cuda_softmax(struct esp_rows *rows, const int32_t *which, int count,
                     const struct esp_sampling *sampling);
int esp_cuda_gather(struct esp_rows *rows, const int32_t *which, const int32_t *tokens,
                    int count, double *values);
int esp_cuda_sample(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                    const int32_t *excluded, int per, int32_t *tokens, double *values);
int esp_cuda_combine(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                     const struct esp_combination *f, struct esp_rows *to, int to_row,
                     double *sum);
int esp_cuda_remove(struct esp_rows *rows, int row, int32_t token, double *left);
int esp_cuda_ratio_masses(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                          double *p_mass, double *q_mass);
int esp_cuda_ratio_residual(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                            const double *factor, struct esp_rows *to, int to_row, double *sum);
int esp_cuda_read_row(struct esp_rows *rows, int which, float *values);
int esp_cuda_write_row(struct esp_rows *rows, int which, const float *values);

#endif
