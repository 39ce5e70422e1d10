/* rows.cu - matrices of rows over the vocabulary on the device: their memory, the checks of
 * arguments, and the transfer of arguments and results.
 *
 * Arguments are written to pinned memory. Kernels read a few bytes of them there, over the bus;
 * larger ones are copied to the device first. Kernels write results to pinned memory. So a call
 * is one launch, and one wait if it gives values. softmax() does not wait, so its arguments
 * stay there until the stream is known to be idle.
 *
 * Checks and results are those of cpu/rows.c, see rows.h.
 */
#include "kernels/cuda/rows.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

enum {
    PADDING = 32,          /* floats: rows begin at multiples of 128 bytes */
    READ_IN_PLACE = 256,   /* bytes of arguments that are read over the bus, not copied */
    TRANSFER_ROW = 640,    /* bytes: the 64 largest of a row, and some arguments */
    TRANSFER_REST = 65536, /* bytes that do not depend on the number of rows */
    TOP_K_PIECE = 1 << 20, /* bytes of results of a large top_k at a time */
};

static struct esp_cuda_rows *own(struct esp_rows *rows)
{
    return reinterpret_cast<struct esp_cuda_rows *>(rows);
}

static float *row(struct esp_rows *rows, int which)
{
    return own(rows)->data + (size_t)which * own(rows)->stride;
}

static size_t padded(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* ------------------------------------------------------------------ memory */

static void close_transfer(struct esp_cuda_transfer *t)
{
    esp_cuda_fine(cudaFreeHost(t->host));
    esp_cuda_fine(cudaFree(t->device));
    memset(t, 0, sizeof *t);
}

static int open_transfer(struct esp_cuda_backend *b, struct esp_cuda_transfer *t, size_t bytes)
{
    struct esp_cuda_transfer fresh = {NULL, NULL, bytes, 0};
    cudaError_t result = cudaMallocHost(reinterpret_cast<void **>(&fresh.host), bytes);
    if (result == cudaSuccess)
        result = cudaMalloc(reinterpret_cast<void **>(&fresh.device), bytes);
    if (result != cudaSuccess) {
        close_transfer(&fresh);
        return esp_cuda_failed(b, "memory for arguments and results", result);
    }
    close_transfer(t);
    *t = fresh;
    return ESP_OK;
}

static size_t stride_of(int vocabulary)
{
    return ((size_t)vocabulary + PADDING - 1) / PADDING * PADDING;
}

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
    return (size_t)capacity * stride_of(vocabulary) * sizeof(float) +
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
    return open_transfer(b, &r->transfer, transfer_bytes(capacity));
}

int esp_cuda_rows_open(struct esp_rows **rows, struct esp_backend *backend, int capacity,
                       int vocabulary, char *err, size_t errlen)
{
    struct esp_cuda_backend *b = reinterpret_cast<struct esp_cuda_backend *>(backend);
    *rows = NULL;
    if (capacity < 1 || vocabulary < 1 || vocabulary > ESP_VOCABULARY_MOST)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%d rows over a vocabulary of %d: both must be at least 1, the "
                        "vocabulary at most %d on this backend",
                        capacity, vocabulary, ESP_VOCABULARY_MOST);
    struct esp_cuda_rows *r = static_cast<struct esp_cuda_rows *>(calloc(1, sizeof *r));
    int status = ESP_E_MEMORY;
    if (r) {
        esp_cuda_enter(backend);
        r->base.backend = backend;
        r->base.capacity = capacity;
        r->base.vocabulary = vocabulary;
        r->stride = stride_of(vocabulary);
        r->work_bytes = esp_cuda_top_k_work(vocabulary);
        status = allocate(b, r);
    }
    if (status < 0) {
        esp_cuda_rows_close(r ? &r->base : NULL);
        return esp_fail(err, errlen, status,
                        "no memory for %d rows over a vocabulary of %d (%s); try a smaller "
                        "tree or --backend cpu",
                        capacity, vocabulary, r ? b->failure : "the host has too little");
    }
    *rows = &r->base;
    return ESP_OK;
}

void esp_cuda_rows_close(struct esp_rows *rows)
{
    if (!rows)
        return;
    struct esp_cuda_rows *r = own(rows);
    esp_cuda_enter(rows->backend);
    esp_cuda_of(rows)->answers = 0;
    esp_cuda_fine(cudaStreamSynchronize(esp_cuda_of(rows)->stream));
    esp_cuda_fine(cudaFree(r->data));
    esp_cuda_fine(cudaFree(r->scratch));
    close_transfer(&r->transfer);
    free(r);
}

/* ------------------------------------------------------------------ arguments, results */

/* Waits until the stream is idle, and copies the answers to the callers' memory. */
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
    own(rows)->transfer.used = 0;
    return ESP_OK;
}

/* The end of a call that gives values: with ESP_NOW, waits for them and returns ESP_E_NUMERIC
 * if a value was not a number. */
static int finish(struct esp_rows *rows, int status, enum esp_delivery when)
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

/* The start of every call on rows: makes room for its arguments and results. */
static int begin(struct esp_rows *rows, size_t bytes)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    struct esp_cuda_transfer *t = &own(rows)->transfer;
    esp_cuda_enter(rows->backend);
    if (bytes <= t->bytes - t->used && b->answers <= ESP_CUDA_ANSWERS - 2)
        return ESP_OK;
    int status = settle(rows);
    return status < 0 || bytes <= t->bytes ? status : open_transfer(b, t, bytes);
}

/* Takes pinned memory for results; begin() made the room. */
template <typename T> static T *take(struct esp_rows *rows, size_t count)
{
    struct esp_cuda_transfer *t = &own(rows)->transfer;
    char *at = t->host + t->used;
    t->used += padded(count * sizeof(T));
    return reinterpret_cast<T *>(at);
}

/* Takes pinned memory for an answer, which settle() copies to `to`. */
template <typename T> static T *promise(struct esp_rows *rows, size_t count, T *to)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    T *from = take<T>(rows, count);
    if (to)
        b->answer[b->answers++] = {own(rows), to, from, count * sizeof(T)};
    return from;
}

/* Copies arguments to where kernels read them. */
template <typename T>
static int put(struct esp_rows *rows, const T *from, size_t count, const T **to)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_transfer *t = &own(rows)->transfer;
    const size_t at = t->used, bytes = count * sizeof(T);
    T *pinned = take<T>(rows, count);
    *to = pinned;
    if (bytes == 0)
        return ESP_OK;
    memcpy(pinned, from, bytes);
    if (bytes <= READ_IN_PLACE)
        return ESP_OK;
    *to = reinterpret_cast<const T *>(t->device + at);
    ESP_CUDA(b,
             cudaMemcpyAsync(t->device + at, pinned, bytes, cudaMemcpyHostToDevice, b->stream));
    return ESP_OK;
}

/* A call with wrong arguments fails like any other: all answers that are due are discarded. */
static int refuse(struct esp_rows *rows)
{
    return esp_cuda_end(esp_cuda_of(rows), ESP_E_ARGUMENT);
}

static bool rows_exist(const struct esp_rows *rows, const int32_t *which, int count)
{
    if (count < 0)
        return false;
    for (int i = 0; i < count; i++)
        if (which[i] < 0 || which[i] >= rows->capacity)
            return false;
    return true;
}

/* ------------------------------------------------------------------ one answer per row */

int esp_cuda_argmax(struct esp_rows *rows, const int32_t *which, int count, int32_t *ids,
                    enum esp_delivery when)
{
    const size_t bytes = count > 0 ? padded((size_t)count * sizeof *ids) : 0;
    const int32_t *asked = NULL;
    if (!rows_exist(rows, which, count))
        return refuse(rows);
    if (count == 0)
        return ESP_OK;
    int status = begin(rows, 2 * bytes);
    if (status == ESP_OK)
        status = put(rows, which, (size_t)count, &asked);
    if (status < 0)
        return status;
    int32_t *found = promise(rows, (size_t)count, ids);
    return finish(rows, esp_cuda_launch_argmax(own(rows), asked, count, found), when);
}

static int top_k_piece(struct esp_rows *rows, const int32_t *which, int count, int k,
                       int32_t *ids, float *values, enum esp_delivery when)
{
    const size_t all = (size_t)count * (size_t)k;
    const int32_t *asked = NULL;
    int status = begin(rows, padded((size_t)count * sizeof *which) + padded(all * sizeof *ids) +
                                 padded(all * sizeof *values));
    if (status == ESP_OK)
        status = put(rows, which, (size_t)count, &asked);
    if (status < 0)
        return status;
    int32_t *best = promise(rows, all, ids);
    float *value = promise(rows, all, values);
    return finish(rows, esp_cuda_launch_top_k(own(rows), asked, count, k, best, value), when);
}

int esp_cuda_top_k(struct esp_rows *rows, const int32_t *which, int count, int k, int32_t *ids,
                   float *values, enum esp_delivery when)
{
    if (k < 1 || k > rows->vocabulary || !rows_exist(rows, which, count))
        return refuse(rows);
    const int usual = rows->capacity > count ? rows->capacity : count;
    const int fit = TOP_K_PIECE / (k * (int)(sizeof *ids + sizeof *values));
    const int most = k <= 64 ? usual : fit > 1 ? fit : 1;
    int status = ESP_OK;
    for (int done = 0, now; done < count && status == ESP_OK; done += now) {
        const size_t at = (size_t)done * (size_t)k;
        now = count - done < most ? count - done : most;
        status = top_k_piece(rows, which + done, now, k, ids + at, values + at, when);
    }
    return status;
}

static bool softmax_makes_sense(const struct esp_sampling *sampling)
{
    return sampling->temperature > 0.0 && std::isfinite(sampling->temperature) &&
           sampling->top_p >= 0.0 && sampling->top_k >= 0;
}

int esp_cuda_softmax(struct esp_rows *rows, const int32_t *which, int count,
                     const struct esp_sampling *sampling)
{
    const int32_t *asked = NULL;
    if (!softmax_makes_sense(sampling) || !rows_exist(rows, which, count))
        return refuse(rows);
    if (count == 0)
        return ESP_OK;
    int status = begin(rows, padded((size_t)count * sizeof *which));
    if (status == ESP_OK)
        status = put(rows, which, (size_t)count, &asked);
    return status < 0 ? status : esp_cuda_launch_softmax(own(rows), asked, count, sampling);
}

bool esp_cuda_step_fits(const struct esp_rows *logits, const struct esp_model_desc *desc,
                        const struct esp_step *step, int rows)
{
    return logits->vocabulary == desc->vocabulary && softmax_makes_sense(&step->sampling) &&
           esp_cuda_top_k_at_once(logits->vocabulary, step->k) >= rows;
}

int esp_cuda_step_begin(struct esp_rows *rows, const struct esp_step *step, int count,
                        struct esp_cuda_step *made)
{
    const size_t all = (size_t)count * (size_t)step->k;
    int status = begin(rows, padded(all * sizeof *step->ids) + padded(all * sizeof *step->values));
    if (status < 0)
        return status;
    made->factor = esp_cuda_softmax_factor(step->sampling.temperature);
    made->top_k = step->sampling.top_k;
    made->top_p = step->sampling.top_p;
    made->k = step->k;
    made->ids = promise(rows, all, step->ids);
    made->values = promise(rows, all, step->values);
    made->scratch = own(rows)->scratch;
    return ESP_OK;
}

int esp_cuda_step_end(struct esp_rows *rows, enum esp_delivery when)
{
    return finish(rows, ESP_OK, when);
}

int esp_cuda_gather(struct esp_rows *rows, const int32_t *which, const int32_t *tokens,
                    int count, double *values, enum esp_delivery when)
{
    const int32_t *asked = NULL, *of = NULL;
    if (!rows_exist(rows, which, count))
        return refuse(rows);
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= rows->vocabulary)
            return refuse(rows);
    if (count == 0)
        return ESP_OK;
    const size_t all = (size_t)count;
    int status = begin(rows, 2 * padded(all * sizeof *which) + padded(all * sizeof *values));
    if (status == ESP_OK)
        status = put(rows, which, all, &asked);
    if (status == ESP_OK)
        status = put(rows, tokens, all, &of);
    if (status < 0)
        return status;
    double *found = promise(rows, all, values);
    return finish(rows, esp_cuda_launch_gather(own(rows), asked, of, count, found), when);
}

/* ------------------------------------------------------------------ distributions */

int esp_cuda_sample(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                    int draws, const int32_t *excluded, int per, int32_t *tokens,
                    double *values, enum esp_delivery when)
{
    const int32_t *asked = NULL, *without = NULL;
    const double *at = NULL;
    if (per < 0 || draws < 1 || draws > ESP_MAX_DRAWS || !rows_exist(rows, which, count))
        return refuse(rows);
    const size_t drawn = (size_t)count * (size_t)draws, gone = (size_t)count * (size_t)per;
    for (size_t i = 0; i < drawn; i++)
        if (!(u[i] >= 0.0 && u[i] < 1.0))
            return refuse(rows);
    for (size_t i = 0; i < gone; i++)
        if (excluded[i] >= rows->vocabulary)
            return refuse(rows);
    if (count == 0)
        return ESP_OK;
    int status = begin(rows, padded((size_t)count * sizeof *which) + 2 * padded(drawn * sizeof *u) +
                                 padded(drawn * sizeof *tokens) + padded(gone * sizeof *excluded));
    if (status == ESP_OK)
        status = put(rows, which, (size_t)count, &asked);
    if (status == ESP_OK)
        status = put(rows, u, drawn, &at);
    if (status == ESP_OK)
        status = put(rows, excluded, gone, &without);
    if (status < 0)
        return status;
    int32_t *token = promise(rows, drawn, tokens);
    double *value = promise(rows, drawn, values);
    status =
        esp_cuda_launch_sample(own(rows), asked, at, count, draws, without, per, token, value);
    return finish(rows, status, when);
}

/* Whether both rows and, if there is a `to`, its row exist and have the same vocabulary. */
static bool fit(const struct esp_rows *p, int p_row, const struct esp_rows *q, int q_row,
                const struct esp_rows *to, int to_row)
{
    return rows_exist(p, &p_row, 1) && rows_exist(q, &q_row, 1) &&
           p->vocabulary == q->vocabulary &&
           (!to || (to->vocabulary == p->vocabulary && rows_exist(to, &to_row, 1)));
}

int esp_cuda_combine(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                     const struct esp_combination *f, struct esp_rows *to, int to_row,
                     double *sum)
{
    if (!fit(p, p_row, q, q_row, to, to_row))
        return refuse(p);
    int status = begin(p, padded(sizeof *sum));
    if (status < 0)
        return status;
    double *found = promise(p, 1, sum);
    status = esp_cuda_launch_combine(own(p), row(p, p_row), row(q, q_row), f,
                                     to ? row(to, to_row) : NULL, found);
    return sum ? finish(p, status, ESP_NOW) : status;
}

int esp_cuda_remove(struct esp_rows *rows, int which, int32_t token, double *left)
{
    if (!rows_exist(rows, &which, 1) || token < 0 || token >= rows->vocabulary)
        return refuse(rows);
    int status = begin(rows, padded(sizeof *left));
    if (status < 0)
        return status;
    double *found = promise(rows, 1, left);
    status = esp_cuda_launch_remove(own(rows), row(rows, which), token, found);
    return left ? finish(rows, status, ESP_NOW) : status;
}

int esp_cuda_temper(struct esp_rows *rows, const int32_t *which, int count, double power,
                    double *mean_log, double *power_sum, enum esp_delivery when)
{
    const int32_t *asked = NULL;
    if (!rows_exist(rows, which, count) || !(power > 0.0) || !isfinite(power))
        return refuse(rows);
    if (count == 0)
        return ESP_OK;
    int status = begin(rows, padded(count * sizeof *which) + 2 * padded(count * sizeof *mean_log));
    if (status == ESP_OK)
        status = put(rows, which, count, &asked);
    if (status < 0)
        return status;
    double *means = promise(rows, count, mean_log), *sums = promise(rows, count, power_sum);
    return finish(rows, esp_cuda_launch_temper(own(rows), asked, count, power, means, sums),
                  when);
}

int esp_cuda_ratio_masses(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                          double *p_mass, double *q_mass)
{
    const size_t bytes = ESP_RATIO_CLASSES * sizeof(double);
    if (!fit(p, p_row, q, q_row, NULL, 0))
        return refuse(p);
    int status = begin(p, 2 * bytes);
    if (status < 0)
        return status;
    double *of_p = promise(p, ESP_RATIO_CLASSES, p_mass),
           *of_q = promise(p, ESP_RATIO_CLASSES, q_mass);
    return finish(p, esp_cuda_launch_masses(own(p), row(p, p_row), row(q, q_row), of_p, of_q),
                  ESP_NOW);
}

int esp_cuda_ratio_residual(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                            const double *factor, struct esp_rows *to, int to_row, double *sum)
{
    const double *factors = NULL;
    if (!fit(p, p_row, q, q_row, to, to_row))
        return refuse(p);
    int status = begin(p, ESP_RATIO_CLASSES * sizeof *factor + padded(sizeof *sum));
    if (status == ESP_OK)
        status = put(p, factor, ESP_RATIO_CLASSES, &factors);
    if (status < 0)
        return status;
    double *found = promise(p, 1, sum);
    status = esp_cuda_launch_residual(own(p), row(p, p_row), row(q, q_row), factors,
                                      to ? row(to, to_row) : NULL, found);
    return sum ? finish(p, status, ESP_NOW) : status;
}

/* ------------------------------------------------------------------ whole rows */

/* The row goes through pinned memory like all answers, so that a copy that is still queued
 * after a failure does not write to the caller's memory. */
int esp_cuda_read_row(struct esp_rows *rows, int which, float *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const size_t count = (size_t)rows->vocabulary;
    if (!rows_exist(rows, &which, 1))
        return refuse(rows);
    int status = begin(rows, padded(count * sizeof *values));
    if (status < 0)
        return status;
    float *found = promise(rows, count, values);
    ESP_CUDA(b, cudaMemcpyAsync(found, row(rows, which), count * sizeof *found,
                                cudaMemcpyDeviceToHost, b->stream));
    return finish(rows, ESP_OK, ESP_NOW);
}

int esp_cuda_write_row(struct esp_rows *rows, int which, const float *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const size_t count = (size_t)rows->vocabulary;
    if (!rows_exist(rows, &which, 1))
        return refuse(rows);
    int status = begin(rows, padded(count * sizeof *values));
    if (status < 0)
        return status;
    float *pinned = take<float>(rows, count);
    memcpy(pinned, values, count * sizeof *values);
    ESP_CUDA(b, cudaMemcpyAsync(row(rows, which), pinned, count * sizeof *pinned,
                                cudaMemcpyHostToDevice, b->stream));
    return ESP_OK;
}
