/* rows.cu - manages matrices of logits or probabilities on the device, which have a column for
 * each token. Allocates their memory, runs draft steps, and copies whole rows. Every other
 * operation on rows has its own file; see rows.h. */
#include "kernels/cuda/rows.h"

#include <cstdlib>
#include <cstring>

enum {
    TRANSFER_ROW = 640,    /* bytes for each row: its 64 largest values, and some arguments */
    TRANSFER_REST = 65536, /* bytes that do not depend on the number of rows */
};

/* ------------------------------------------------------------------ memory */

static size_t scratch_bytes(int vocabulary)
{
    return sizeof(struct esp_cuda_scratch) + esp_cuda_top_k_work(vocabulary);
}

static size_t transfer_bytes(int capacity)
{
    return (size_t)capacity * TRANSFER_ROW + TRANSFER_REST;
}

size_t esp_cuda_rows_need(int capacity, int vocabulary)
{
    return (size_t)capacity * esp_cuda_pad(vocabulary, ESP_CUDA_PAD) * sizeof(float) +
           scratch_bytes(vocabulary) + transfer_bytes(capacity);
}

static int allocate(struct esp_cuda_backend *b, struct esp_cuda_rows *r)
{
    const int capacity = r->base.capacity, vocabulary = r->base.vocabulary;
    const size_t bytes = (size_t)capacity * r->stride * sizeof(float);
    ESP_CUDA(b, cudaMalloc(reinterpret_cast<void **>(&r->data), bytes));
    ESP_CUDA(b, cudaMemsetAsync(r->data, 0, bytes, b->stream));
    ESP_CUDA(b, cudaMalloc(reinterpret_cast<void **>(&r->scratch), scratch_bytes(vocabulary)));
    ESP_CUDA(b, cudaMemsetAsync(r->scratch, 0, sizeof *r->scratch, b->stream));
    return esp_cuda_transfer_open(b, &r->transfer, transfer_bytes(capacity));
}

int esp_cuda_rows_open(struct esp_rows **rows, struct esp_backend *backend, int capacity,
                       int vocabulary, char *err, size_t errlen)
{
    struct esp_cuda_backend *b = reinterpret_cast<struct esp_cuda_backend *>(backend);
    *rows = NULL;
    if (capacity < 1 || vocabulary < 1 || vocabulary > ESP_VOCABULARY_MOST)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "cannot open %d rows over a vocabulary of %d tokens: both numbers must "
                        "be at least 1, and --backend cuda supports at most %d tokens",
                        capacity, vocabulary, ESP_VOCABULARY_MOST);
    struct esp_cuda_rows *r = static_cast<struct esp_cuda_rows *>(calloc(1, sizeof *r));
    int status = ESP_E_MEMORY;
    if (r) {
        esp_cuda_enter(backend);
        r->base.backend = backend;
        r->base.capacity = capacity;
        r->base.vocabulary = vocabulary;
        r->stride = esp_cuda_pad(vocabulary, ESP_CUDA_PAD);
        r->work_bytes = esp_cuda_top_k_work(vocabulary);
        status = allocate(b, r);
    }
    if (status < 0) {
        esp_cuda_rows_close(r ? &r->base : NULL);
        return esp_fail(err, errlen, status,
                        "not enough memory for %d rows over a vocabulary of %d tokens (%s); "
                        "try a smaller tree or --backend cpu",
                        capacity, vocabulary, r ? b->failure : "the computer has too little");
    }
    *rows = &r->base;
    return ESP_OK;
}

void esp_cuda_rows_close(struct esp_rows *rows)
{
    if (!rows)
        return;
    struct esp_cuda_rows *r = esp_cuda_rows_of(rows);
    esp_cuda_enter(rows->backend);
    esp_cuda_of(rows)->answers = 0;
    esp_cuda_fine(cudaStreamSynchronize(esp_cuda_of(rows)->stream));
    esp_cuda_fine(cudaFree(r->data));
    esp_cuda_fine(cudaFree(r->scratch));
    esp_cuda_transfer_close(&r->transfer);
    free(r);
}

/* ------------------------------------------------------------------ draft steps */

bool esp_cuda_step_fits(const struct esp_rows *logits, const struct esp_model_desc *desc,
                        const struct esp_step *step, int rows)
{
    return logits->vocabulary == esp_model_desc_tokens(desc) &&
           esp_sampling_fits(&step->sampling) &&
           esp_cuda_top_k_at_once(logits->vocabulary, step->k) >= rows;
}

int esp_cuda_step_begin(struct esp_rows *rows, const struct esp_step *step, int count,
                        struct esp_cuda_step *made)
{
    const size_t all = (size_t)count * (size_t)step->k;
    int status = esp_cuda_begin(rows, esp_cuda_room<int32_t>(all) + esp_cuda_room<float>(all));
    if (status < 0)
        return status;
    made->factor = esp_cuda_softmax_factor(step->sampling.temperature);
    made->top_k = step->sampling.top_k;
    made->top_p = step->sampling.top_p;
    made->k = step->k;
    made->ids = esp_cuda_promise(rows, all, step->ids);
    made->values = esp_cuda_promise(rows, all, step->values);
    made->scratch = esp_cuda_rows_of(rows)->scratch;
    return ESP_OK;
}

/* ------------------------------------------------------------------ whole rows */

/* Begins a call that copies row `which`. */
static int begin_copy(struct esp_rows *rows, int which)
{
    if (!esp_rows_exist(rows, &which, 1))
        return esp_cuda_refuse(rows);
    return esp_cuda_begin(rows, esp_cuda_room<float>(rows->vocabulary));
}

/* Reads a row. Like the results of all calls, the row is first copied to pinned memory. So a
 * copy that is still queued after a failure does not write to the caller's memory. */
int esp_cuda_read_row(struct esp_rows *rows, int which, float *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const size_t count = (size_t)rows->vocabulary;
    int status = begin_copy(rows, which);
    if (status < 0)
        return status;
    float *found = esp_cuda_promise(rows, count, values);
    ESP_CUDA(b, cudaMemcpyAsync(found, esp_cuda_row(rows, which), count * sizeof *found,
                                cudaMemcpyDeviceToHost, b->stream));
    return esp_cuda_finish(rows, ESP_OK, ESP_NOW);
}

int esp_cuda_write_row(struct esp_rows *rows, int which, const float *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const size_t count = (size_t)rows->vocabulary;
    int status = begin_copy(rows, which);
    if (status < 0)
        return status;
    float *pinned = static_cast<float *>(esp_cuda_take_pinned(rows, count * sizeof *values));
    memcpy(pinned, values, count * sizeof *values);
    ESP_CUDA(b, cudaMemcpyAsync(esp_cuda_row(rows, which), pinned, count * sizeof *pinned,
                                cudaMemcpyHostToDevice, b->stream));
    return ESP_OK;
}
