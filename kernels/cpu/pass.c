/* pass.c - functions that the steps of a pass share; see pass.h. */
#include "kernels/cpu/pass.h"

enum { VALUES_WORTH_THREADS = 16384 };

void esp_cpu_run_step(struct esp_cpu_pass *p, int units, esp_pool_part *run, void *step)
{
    struct esp_pool *pool = ((struct esp_cpu_backend *)p->w->base.backend)->pool;
    if (units == 0) /* other ranks compute this whole step */
        return;
    p->parts = esp_pool_parts(pool, units, p->threads);
    esp_pool_run(pool, p->parts, run, step);
}

struct rows_step {
    const struct esp_cpu_pass *p;
    int rows;
    esp_cpu_row_step *run;
    void *step;
};

static void rows_part(void *arg, int part, int thread)
{
    const struct rows_step *all = arg;
    int begin, end;
    (void)thread;
    esp_cpu_share(all->rows, part, all->p->parts, &begin, &end);
    for (int row = begin; row < end; row++)
        all->run(all->step, row);
}

void esp_cpu_run_rows(struct esp_cpu_pass *p, int rows, size_t width, esp_cpu_row_step *run,
                      void *step)
{
    struct rows_step all = {p, rows, run, step};
    bool small = (size_t)rows * width < VALUES_WORTH_THREADS;
    esp_cpu_run_step(p, small ? 1 : rows, rows_part, &all);
}

void esp_cpu_prepare(const struct esp_cpu_pass *p, const struct esp_vectors *v, int row,
                     int begin, int end)
{
    if (p->w->split)
        p->isa->split(v, row, begin, end);
    if (p->w->cut)
        p->isa->cut(v, row, begin, (int)esp_cpu_pad(end, ESP_CUT_COLUMNS));
}
