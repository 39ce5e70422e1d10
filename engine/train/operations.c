/* operations.c - the operations of training, divided among threads; see operations.h.
 *
 * A product is divided by rows or columns of its result, a sum over rows by columns, and
 * everything else by rows or elements: no sum is ever divided.
 */
#include "engine/train/operations.h"

#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

enum { VALUES_TOGETHER = 4096, LEAST_ROWS = 48, LEAST_COLUMNS = 64 };

struct esp_workers {
    struct esp_backend *backend; /* for its instruction set and its pool */
    const struct esp_cpu_gradients *gradients;
    struct esp_pool *pool;
    int threads;
    float **scratch; /* (threads) */
    size_t floats;   /* of each */
};

int esp_workers_open(struct esp_workers **workers, int threads, char *err, size_t errlen)
{
    struct esp_workers *w = calloc(1, sizeof *w);
    *workers = w;
    if (!w)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to train");
    int status = esp_backend_cpu.open(&w->backend, threads, err, errlen);
    if (status < 0) {
        free(w);
        *workers = NULL;
        return status;
    }
    const struct esp_cpu_backend *cpu = (const struct esp_cpu_backend *)w->backend;
    w->gradients = cpu->isa->gradients;
    w->pool = cpu->pool;
    w->threads = cpu->threads;
    w->scratch = calloc((size_t)w->threads, sizeof *w->scratch);
    if (!w->scratch || esp_workers_reserve(w, ESP_WORKER_SCRATCH) < 0) {
        esp_workers_close(w);
        *workers = NULL;
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to train");
    }
    return ESP_OK;
}

void esp_workers_close(struct esp_workers *w)
{
    if (!w)
        return;
    for (int i = 0; w->scratch && i < w->threads; i++)
        esp_cpu_free(w->scratch[i]);
    free(w->scratch);
    w->backend->ops->close(w->backend);
    free(w);
}

const struct esp_cpu_gradients *esp_workers_gradients(const struct esp_workers *w)
{
    return w->gradients;
}

int esp_workers_reserve(struct esp_workers *w, size_t floats)
{
    if (floats <= w->floats)
        return ESP_OK;
    for (int i = 0; i < w->threads; i++) {
        float *more = esp_cpu_alloc(floats, sizeof *more);
        if (!more)
            return ESP_E_MEMORY;
        esp_cpu_free(w->scratch[i]);
        w->scratch[i] = more;
    }
    w->floats = floats;
    return ESP_OK;
}

/* ------------------------------------------------------------------ sharing */

struct sharing {
    struct esp_workers *w;
    int count, parts;
    void (*run)(void *arg, int begin, int end, float *scratch);
    void (*each)(void *arg, int task, float *scratch);
    void *arg;
};

static void share_part(void *arg, int part, int thread)
{
    const struct sharing *s = arg;
    int begin, end;
    esp_cpu_share(s->count, part, s->parts, &begin, &end);
    if (begin < end)
        s->run(s->arg, begin, end, s->w->scratch[thread]);
}

void esp_workers_share(struct esp_workers *w, int count,
                       void (*run)(void *arg, int begin, int end, float *scratch), void *arg)
{
    struct sharing s = {w, count, esp_cpu_parts(count, w->threads), run, NULL, arg};
    if (count > 0)
        esp_pool_run(w->pool, s.parts, share_part, &s);
}

static void each_part(void *arg, int part, int thread)
{
    const struct sharing *s = arg;
    for (int task = part; task < s->count; task += s->parts)
        s->each(s->arg, task, s->w->scratch[thread]);
}

void esp_workers_each(struct esp_workers *w, int count,
                      void (*run)(void *arg, int task, float *scratch), void *arg)
{
    struct sharing s = {w,    count, count < ESP_POOL_MAX_PARTS ? count : ESP_POOL_MAX_PARTS,
                        NULL, run,   arg};
    if (count > 0)
        esp_pool_run(w->pool, s.parts, each_part, &s);
}

/* ------------------------------------------------------------------ products */

struct product {
    const struct esp_workers *w;
    const struct esp_gemm *g;
    bool by_rows;
    int piece; /* rows or columns that stay together */
};

static void gemm_part(void *arg, int begin, int end, float *scratch)
{
    const struct product *p = arg;
    struct esp_gemm g = *p->g;
    const int whole = p->by_rows ? g.m : g.n;
    begin *= p->piece;
    end = end * p->piece < whole ? end * p->piece : whole;
    if (p->by_rows) {
        g.a += (size_t)begin * g.a_row;
        g.c += (size_t)begin * g.c_row;
        g.m = end - begin;
    } else {
        g.b += (size_t)begin * g.b_column;
        g.c += begin;
        g.n = end - begin;
    }
    p->w->gradients->gemm(&g, scratch);
}

/* Divides the longer side of the result: every thread packs the other, smaller matrix. */
void esp_gemm(struct esp_workers *w, const struct esp_gemm *g)
{
    struct product p = {w, g, g->m >= g->n, g->m >= g->n ? LEAST_ROWS : LEAST_COLUMNS};
    const int whole = p.by_rows ? g->m : g->n;
    esp_workers_share(w, (whole + p.piece - 1) / p.piece, gemm_part, &p);
}

struct rows {
    const struct esp_workers *w;
    float *out, *more;
    const float *x, *y, *weight, *bias;
    float *factor;
    const float *known_factor;
    int rows, n;
    float epsilon;
};

static void set_bias(void *arg, int begin, int end, float *scratch)
{
    const struct rows *r = arg;
    (void)scratch;
    for (int i = begin; i < end; i++)
        r->w->gradients->add(r->out + (size_t)i * (size_t)r->n, r->bias, (size_t)r->n);
}

void esp_linear(struct esp_workers *w, float *y, const float *x, const float *weight,
                const float *bias, int rows, int in, int out, bool add)
{
    const size_t wide = (size_t)in;
    const struct esp_gemm g = {rows, out, in, x, wide, 1, weight, 1, wide, y, (size_t)out, add};
    esp_gemm(w, &g);
    struct rows r = {.w = w, .out = y, .bias = bias, .n = out};
    if (bias)
        esp_workers_share(w, rows, set_bias, &r);
}

void esp_linear_dx(struct esp_workers *w, float *dx, const float *dy, const float *weight,
                   int rows, int in, int out, bool add)
{
    const struct esp_gemm g = {rows,   in,         out, dy, (size_t)out, 1,
                               weight, (size_t)in, 1,   dx, (size_t)in,  add};
    esp_gemm(w, &g);
}

static void columns_part(void *arg, int begin, int end, float *scratch)
{
    const struct rows *r = arg;
    (void)scratch;
    r->w->gradients->column_sums(r->out, r->y, r->rows, r->n, begin, end);
}

void esp_linear_dw(struct esp_workers *w, float *dw, float *db, const float *dy, const float *x,
                   int rows, int in, int out)
{
    const struct esp_gemm g = {out, in,         rows, dy, 1,          (size_t)out,
                               x,   (size_t)in, 1,    dw, (size_t)in, true};
    esp_gemm(w, &g);
    struct rows r = {.w = w, .out = db, .y = dy, .rows = rows, .n = out};
    if (db)
        esp_workers_share(w, out, columns_part, &r);
}

/* ------------------------------------------------------------------ rows */

static void norm_part(void *arg, int begin, int end, float *scratch)
{
    const struct rows *r = arg;
    const size_t n = (size_t)r->n;
    (void)scratch;
    for (size_t i = (size_t)begin; i < (size_t)end; i++)
        r->factor[i] =
            r->w->gradients->rmsnorm(r->out + i * n, r->x + i * n, r->weight, r->n, r->epsilon);
}

void esp_rmsnorm(struct esp_workers *w, float *out, float *factor, const float *x,
                 const float *weight, int rows, int n, float epsilon)
{
    struct rows r = {.w = w,
                     .out = out,
                     .factor = factor,
                     .x = x,
                     .weight = weight,
                     .rows = rows,
                     .n = n,
                     .epsilon = epsilon};
    esp_workers_share(w, rows, norm_part, &r);
}

static void norm_dx_part(void *arg, int begin, int end, float *scratch)
{
    const struct rows *r = arg;
    const size_t n = (size_t)r->n;
    (void)scratch;
    for (size_t i = (size_t)begin; i < (size_t)end; i++)
        r->w->gradients->rmsnorm_backward(r->out + i * n, r->x + i * n, r->weight, r->y + i * n,
                                          r->n, r->known_factor[i]);
}

static void norm_dw_part(void *arg, int begin, int end, float *scratch)
{
    const struct rows *r = arg;
    (void)scratch;
    r->w->gradients->rmsnorm_weight(r->more, r->x, r->y, r->known_factor, r->rows, r->n, begin,
                                    end);
}

void esp_rmsnorm_backward(struct esp_workers *w, float *dx, float *dw, const float *x,
                          const float *weight, const float *dy, const float *factor, int rows,
                          int n)
{
    struct rows r = {.w = w,
                     .out = dx,
                     .more = dw,
                     .x = x,
                     .y = dy,
                     .weight = weight,
                     .known_factor = factor,
                     .rows = rows,
                     .n = n};
    esp_workers_share(w, n, norm_dw_part, &r);
    esp_workers_share(w, rows, norm_dx_part, &r);
}

/* ------------------------------------------------------------------ elements */

struct elements {
    const struct esp_workers *w;
    float *x, *y;
    const float *a, *b;
    size_t n;
};

static size_t first_of(const struct elements *e, int begin)
{
    const size_t at = (size_t)begin * VALUES_TOGETHER;
    return at < e->n ? at : e->n;
}

static void swiglu_part(void *arg, int begin, int end, float *scratch)
{
    const struct elements *e = arg;
    const size_t from = first_of(e, begin), to = first_of(e, end);
    (void)scratch;
    e->w->gradients->swiglu(e->x + from, e->a + from, e->b + from, (int)(to - from));
}

static void swiglu_backward_part(void *arg, int begin, int end, float *scratch)
{
    const struct elements *e = arg;
    const size_t from = first_of(e, begin), to = first_of(e, end);
    (void)scratch;
    e->w->gradients->swiglu_backward(e->x + from, e->y + from, e->a + from, (int)(to - from));
}

static void add_part(void *arg, int begin, int end, float *scratch)
{
    const struct elements *e = arg;
    const size_t from = first_of(e, begin), to = first_of(e, end);
    (void)scratch;
    e->w->gradients->add(e->x + from, e->a + from, to - from);
}

static void on_elements(struct esp_workers *w, struct elements *e,
                        void (*run)(void *arg, int begin, int end, float *scratch))
{
    esp_workers_share(w, (int)((e->n + VALUES_TOGETHER - 1) / VALUES_TOGETHER), run, e);
}

void esp_swiglu(struct esp_workers *w, float *out, const float *gate, const float *up, size_t n)
{
    struct elements e = {.w = w, .x = out, .a = gate, .b = up, .n = n};
    on_elements(w, &e, swiglu_part);
}

void esp_swiglu_backward(struct esp_workers *w, float *gate, float *up, const float *d_out,
                         size_t n)
{
    struct elements e = {.w = w, .x = gate, .y = up, .a = d_out, .n = n};
    on_elements(w, &e, swiglu_backward_part);
}

void esp_add(struct esp_workers *w, float *x, const float *y, size_t n)
{
    struct elements e = {.w = w, .x = x, .a = y, .n = n};
    on_elements(w, &e, add_part);
}
