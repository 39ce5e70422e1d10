/* operations.c - runs the operations of training on several threads; see operations.h.
 *
 * A product is divided among threads by rows or columns of its result. A sum over rows is
 * divided by columns, and all other work by rows. Therefore no sum is divided among threads.
 */
#include "engine/train/operations.h"

#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

enum { LEAST_ROWS = 48, LEAST_COLUMNS = 64 };

struct esp_workers {
    struct esp_backend *backend; /* used for its instruction set and its thread pool */
    const struct esp_cpu_gradients *gradients;
    struct esp_pool *pool;
    int threads;
    float **scratch; /* (threads) */
    size_t floats;   /* number of floats in each scratch buffer */
};

int esp_workers_open(struct esp_workers **workers, int threads, char *err, size_t errlen)
{
    struct esp_workers *w = *workers = calloc(1, sizeof *w);
    int status = w ? esp_backend_cpu.open(&w->backend, threads, err, errlen) : ESP_E_MEMORY;
    if (status == ESP_OK) {
        const struct esp_cpu_backend *cpu = (const struct esp_cpu_backend *)w->backend;
        w->gradients = cpu->isa->gradients;
        w->pool = cpu->pool;
        w->threads = cpu->threads;
        w->scratch = calloc((size_t)w->threads, sizeof *w->scratch);
        if (w->scratch && esp_workers_reserve(w, ESP_WORKER_SCRATCH) == ESP_OK)
            return ESP_OK;
    }
    if (!w || w->backend)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to train");
    esp_workers_close(w);
    *workers = NULL;
    return status;
}

void esp_workers_close(struct esp_workers *w)
{
    if (!w)
        return;
    for (int i = 0; w->scratch && i < w->threads; i++)
        esp_cpu_free(w->scratch[i]);
    free(w->scratch);
    if (w->backend)
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
    struct sharing s = {w, count, esp_pool_parts(w->pool, count, w->threads), run, NULL, arg};
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
    int piece; /* number of rows or columns that a thread gets at a time */
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

/* Divides the result among the threads along its longer side, because every thread packs the
 * whole matrix that belongs to the shorter side. */
static void multiply(struct esp_workers *w, const struct esp_gemm *g)
{
    struct product p = {w, g, g->m >= g->n, g->m >= g->n ? LEAST_ROWS : LEAST_COLUMNS};
    const int whole = p.by_rows ? g->m : g->n;
    esp_workers_share(w, (whole + p.piece - 1) / p.piece, gemm_part, &p);
}

/* Lists the data that the threads work on. Each operation uses some of these members. */
struct operands {
    const struct esp_cpu_gradients *gradients;
    float *out, *more;
    const float *x, *y, *weight, *bias;
    float *factor;
    int rows;
    size_t n; /* number of values in a row */
    float epsilon;
};

static void set_bias(void *arg, int begin, int end, float *scratch)
{
    const struct operands *o = arg;
    (void)scratch;
    for (size_t i = (size_t)begin; i < (size_t)end; i++)
        o->gradients->add(o->out + i * o->n, o->bias, o->n);
}

void esp_linear(struct esp_workers *w, float *y, const float *x, const float *weight,
                const float *bias, int rows, int in, int out, bool add)
{
    const size_t wide = (size_t)in;
    const struct esp_gemm g = {rows, out, in, x, wide, 1, weight, 1, wide, y, (size_t)out, add};
    multiply(w, &g);
    struct operands o = {w->gradients, .out = y, .bias = bias, .n = (size_t)out};
    if (bias)
        esp_workers_share(w, rows, set_bias, &o);
}

static void columns_part(void *arg, int begin, int end, float *scratch)
{
    const struct operands *o = arg;
    (void)scratch;
    o->gradients->column_sums(o->out, o->y, o->rows, (int)o->n, begin, end);
}

void esp_linear_back(struct esp_workers *w, float *dx, float *dw, float *db, const float *dy,
                     const float *x, const float *weight, int rows, int in, int out, bool add)
{
    const size_t i = (size_t)in, o = (size_t)out;
    const struct esp_gemm by_x = {rows, in, out, dy, o, 1, weight, i, 1, dx, i, add};
    const struct esp_gemm by_w = {out, in, rows, dy, 1, o, x, i, 1, dw, i, true};
    struct operands sums = {w->gradients, .out = db, .y = dy, .rows = rows, .n = o};
    if (dx)
        multiply(w, &by_x);
    if (dw)
        multiply(w, &by_w);
    if (db)
        esp_workers_share(w, out, columns_part, &sums);
}

/* ------------------------------------------------------------------ rows */

static void norm_part(void *arg, int begin, int end, float *scratch)
{
    const struct operands *o = arg;
    (void)scratch;
    for (size_t i = (size_t)begin; i < (size_t)end; i++)
        o->factor[i] = o->gradients->rmsnorm(o->out + i * o->n, o->x + i * o->n, o->weight,
                                             (int)o->n, o->epsilon);
}

void esp_rmsnorm(struct esp_workers *w, float *out, float *factor, const float *x,
                 const float *weight, int rows, int n, float epsilon)
{
    struct operands o = {w->gradients,      .out = out,       .x = x,
                         .weight = weight,  .factor = factor, .n = (size_t)n,
                         .epsilon = epsilon};
    esp_workers_share(w, rows, norm_part, &o);
}

static void norm_dx_part(void *arg, int begin, int end, float *scratch)
{
    const struct operands *o = arg;
    (void)scratch;
    for (size_t i = (size_t)begin; i < (size_t)end; i++)
        o->gradients->rmsnorm_backward(o->out + i * o->n, o->x + i * o->n, o->weight,
                                       o->y + i * o->n, (int)o->n, o->factor[i]);
}

static void norm_dw_part(void *arg, int begin, int end, float *scratch)
{
    const struct operands *o = arg;
    (void)scratch;
    o->gradients->rmsnorm_weight(o->more, o->x, o->y, o->factor, o->rows, (int)o->n, begin,
                                 end);
}

void esp_rmsnorm_backward(struct esp_workers *w, float *dx, float *dw, const float *x,
                          const float *weight, const float *dy, float *factor, int rows, int n)
{
    struct operands o = {w->gradients, dx, dw, x, dy, weight, NULL, factor, rows, (size_t)n, 0};
    esp_workers_share(w, n, norm_dw_part, &o);
    esp_workers_share(w, rows, norm_dx_part, &o);
}
