/* rows.c - matrices of rows over the vocabulary, and the operations on them.
 *
 * Arguments are checked here; the functions of struct esp_cpu_isa do the arithmetic on one
 * row. Rows are distributed over the threads; a row is never split.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/system.h"
#include "kernels/row_checks.h"
#include "kernels/status.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_WORTH_THREADS = 32768 };

static const struct esp_cpu_backend *backend_of(const struct esp_rows *rows)
{
    return (const struct esp_cpu_backend *)rows->backend;
}

static const struct esp_cpu_isa *isa_of(const struct esp_rows *rows)
{
    return backend_of(rows)->isa;
}

int esp_cpu_rows_open(struct esp_rows **rows, struct esp_backend *backend, int capacity,
                      int vocabulary, char *err, size_t errlen)
{
    *rows = NULL;
    if (capacity < 1 || vocabulary < 1 || vocabulary > INT32_MAX / 2)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%d rows over a vocabulary of %d: both must be at least 1", capacity,
                        vocabulary);
    struct esp_cpu_rows *r = calloc(1, sizeof *r);
    if (r) {
        r->base = (struct esp_rows){backend, capacity, vocabulary};
        r->stride = esp_cpu_pad(vocabulary, ESP_PANEL);
        r->data = esp_cpu_alloc((size_t)capacity * r->stride, sizeof *r->data);
        r->scratch = esp_cpu_alloc((size_t)backend_of(&r->base)->threads * 2 * r->stride,
                                   sizeof(int32_t));
    }
    if (!r || !r->data || !r->scratch) {
        if (r)
            esp_cpu_rows_close(&r->base);
        return esp_fail(err, errlen, ESP_E_MEMORY,
                        "not enough memory for %d rows over a vocabulary of %d", capacity,
                        vocabulary);
    }
    *rows = &r->base;
    return 0;
}

size_t esp_cpu_rows_need(int capacity, int vocabulary)
{
    const size_t all = (size_t)capacity + 2 * (size_t)esp_cores_all();
    return all * esp_cpu_pad(vocabulary, ESP_PANEL) * sizeof(float);
}

void esp_cpu_rows_close(struct esp_rows *rows)
{
    struct esp_cpu_rows *r = (struct esp_cpu_rows *)rows;
    if (!r)
        return;
    esp_cpu_free(r->data);
    esp_cpu_free(r->scratch);
    free(r);
}

/* ------------------------------------------------------- operations with one result per row */

/* Says what to compute: softmax if `sampling` is set, or else top_k if k > 0, or else
 * argmax. */
struct request {
    struct esp_rows *rows;
    const int32_t *which;
    int count, k;
    int32_t *ids;
    float *values;
    const struct esp_sampling *sampling;
    int parts;
    atomic_int status;
};

static int answer(const struct request *q, int i, int thread)
{
    const struct esp_cpu_isa *isa = isa_of(q->rows);
    const struct esp_cpu_rows *r = (const struct esp_cpu_rows *)q->rows;
    float *x = esp_cpu_row(q->rows, q->which[i]);
    int n = q->rows->vocabulary;
    if (q->sampling)
        return isa->softmax(x, n, q->sampling,
                            (int32_t *)r->scratch + (size_t)thread * 2 * r->stride);
    if (q->k == 0)
        return isa->argmax(x, n, &q->ids[i]);
    size_t at = (size_t)i * (size_t)q->k;
    return isa->top_k(x, n, q->k, q->ids + at, q->values + at);
}

static void answer_part(void *arg, int part, int thread)
{
    struct request *q = arg;
    int begin, end;
    esp_cpu_share(q->count, part, q->parts, &begin, &end);
    for (int i = begin; i < end; i++) {
        int status = answer(q, i, thread);
        if (status < 0)
            atomic_store(&q->status, status);
    }
}

static int answer_all(struct request *q)
{
    const struct esp_cpu_backend *cpu = backend_of(q->rows);
    bool small = (int64_t)q->count * q->rows->vocabulary < VALUES_WORTH_THREADS;
    if (!esp_rows_exist(q->rows, q->which, q->count))
        return ESP_E_ARGUMENT;
    q->parts = esp_pool_parts(cpu->pool, q->count, small ? 1 : cpu->threads);
    esp_pool_run(cpu->pool, q->parts, answer_part, q);
    return atomic_load(&q->status);
}

/* The CPU computes immediately, so all values are available when a call returns, whatever
 * `when` says. */

int esp_cpu_argmax(struct esp_rows *rows, const int32_t *which, int count, int32_t *ids,
                   enum esp_delivery when)
{
    (void)when;
    struct request q = {.rows = rows, .which = which, .count = count, .ids = ids};
    return answer_all(&q);
}

int esp_cpu_top_k(struct esp_rows *rows, const int32_t *which, int count, int k, int32_t *ids,
                  float *values, enum esp_delivery when)
{
    (void)when;
    struct request q = {rows, which, count, k, ids, values, NULL, 0, 0};
    return k < 1 || k > rows->vocabulary ? ESP_E_ARGUMENT : answer_all(&q);
}

int esp_cpu_softmax(struct esp_rows *rows, const int32_t *which, int count,
                    const struct esp_sampling *sampling)
{
    struct request q = {.rows = rows, .which = which, .count = count, .sampling = sampling};
    return esp_sampling_fits(sampling) ? answer_all(&q) : ESP_E_ARGUMENT;
}

int esp_cpu_gather(struct esp_rows *rows, const int32_t *which, const int32_t *tokens,
                   int count, double *values, enum esp_delivery when)
{
    (void)when;
    if (!esp_rows_exist(rows, which, count) || !esp_tokens_exist(rows, tokens, count))
        return ESP_E_ARGUMENT;
    for (int i = 0; i < count; i++)
        values[i] = esp_cpu_row(rows, which[i])[tokens[i]];
    return 0;
}

/* ------------------------------------------------------------------ distributions */

/* Draws tokens from row x. Changes the row, and restores it afterwards. */
static void draw(const struct esp_rows *rows, float *x, const double *u, int draws,
                 const int32_t *excluded, int per, int32_t *tokens, double *values)
{
    for (int i = 0; i < draws; i++) {
        isa_of(rows)->sample(x, rows->vocabulary, u[i], excluded, per, &tokens[i], &values[i],
                             ((const struct esp_cpu_rows *)rows)->scratch);
        if (tokens[i] >= 0)
            x[tokens[i]] = 0.0f;
    }
    for (int i = 0; i < draws; i++)
        if (tokens[i] >= 0)
            x[tokens[i]] = (float)values[i];
}

int esp_cpu_sample(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                   int draws, const int32_t *excluded, int per, int32_t *tokens, double *values,
                   enum esp_delivery when)
{
    (void)when;
    if (!esp_rows_exist(rows, which, count) ||
        !esp_draws_fit(rows, u, count, draws, excluded, per))
        return ESP_E_ARGUMENT;
    for (int i = 0; i < count; i++)
        draw(rows, esp_cpu_row(rows, which[i]), u + i * draws, draws,
             per > 0 ? excluded + i * per : NULL, per, tokens + i * draws, values + i * draws);
    return 0;
}

int esp_cpu_combine(struct esp_rows *p, int p_row, struct esp_rows *q, int q_row,
                    const struct esp_combination *f, struct esp_rows *to, int to_row,
                    double *sum)
{
    if (!esp_rows_fit(p, p_row, q, q_row, to, to_row))
        return ESP_E_ARGUMENT;
    float *out = to ? esp_cpu_row(to, to_row) : NULL;
    double total =
        isa_of(p)->combine(out, esp_cpu_row(p, p_row), esp_cpu_row(q, q_row), p->vocabulary, f);
    if (sum)
        *sum = total;
    return 0;
}

int esp_cpu_remove(struct esp_rows *rows, int which, int32_t token, double *left)
{
    if (!esp_rows_exist(rows, &which, 1) || !esp_tokens_exist(rows, &token, 1))
        return ESP_E_ARGUMENT;
    double before = isa_of(rows)->remove(esp_cpu_row(rows, which), rows->vocabulary, token);
    if (left)
        *left = before;
    return 0;
}

int esp_cpu_temper(struct esp_rows *rows, const int32_t *which, int count, double power,
                   double *mean_log, double *power_sum, enum esp_delivery when)
{
    (void)when;
    if (!esp_rows_exist(rows, which, count) || !(power > 0.0) || !isfinite(power))
        return ESP_E_ARGUMENT;
    for (int i = 0; i < count; i++)
        isa_of(rows)->temper(esp_cpu_row(rows, which[i]), rows->vocabulary, power, &mean_log[i],
                             &power_sum[i]);
    return 0;
}

int esp_cpu_read_row(struct esp_rows *rows, int which, float *values)
{
    if (!esp_rows_exist(rows, &which, 1))
        return ESP_E_ARGUMENT;
    memcpy(values, esp_cpu_row(rows, which), (size_t)rows->vocabulary * sizeof *values);
    return 0;
}

int esp_cpu_write_row(struct esp_rows *rows, int which, const float *values)
{
    if (!esp_rows_exist(rows, &which, 1))
        return ESP_E_ARGUMENT;
    memcpy(esp_cpu_row(rows, which), values, (size_t)rows->vocabulary * sizeof *values);
    return 0;
}
