/* pass.h - shared by the steps of a pass; see forward.c. */
#ifndef ESP_CPU_PASS_H
#define ESP_CPU_PASS_H

#include "kernels/batch.h"
#include "kernels/cpu/cpu.h"

/* One batch on its way through the model. */
struct esp_cpu_pass {
    const struct esp_cpu_weights *w;
    const struct esp_model_desc *d;
    struct esp_cpu_cache *c;
    const struct esp_cpu_isa *isa;
    const struct esp_batch *batch;
    int threads;
    int wanted; /* number of rows whose logits are wanted */
    int last;   /* number of rows computed through the whole last layer */

    /* Of the current step. */
    int parts;
    int layer;
    int rows;             /* number of rows with which the pass continues */
    const int32_t *going; /* their numbers in the batch; NULL means all rows */
};

typedef void esp_cpu_row_step(void *step, int row);

/* Runs a step of `units` pieces, each enough work for a thread, in pass->parts parts. */
void esp_cpu_run_step(struct esp_cpu_pass *p, int units, esp_pool_part *run, void *step);
/* Runs a step for each of `rows` rows of `width` values, with little work per value. */
void esp_cpu_run_rows(struct esp_cpu_pass *p, int rows, size_t width, esp_cpu_row_step *run,
                      void *step);

/* Call this when columns begin..end-1 of a vector are complete: splits or quantises them as
 * products need it. They must be whole blocks of ESP_CUT_COLUMNS columns, or all columns. */
void esp_cpu_prepare(const struct esp_cpu_pass *p, const struct esp_vectors *v, int row,
                     int begin, int end);

/* Returns whether there is a gap between the sinks and the window of this row. */
static inline bool esp_cpu_has_gap(const struct esp_cpu_pass *p, int row)
{
    const struct esp_window *w = p->batch->window;
    return w && p->batch->positions[row] >= w->sinks + w->recent;
}

/* Returns the row number of the angles that all rows with a gap use for the sinks. */
static inline int esp_cpu_row_for_sinks(const struct esp_cpu_pass *p)
{
    return p->c->max_batch;
}

/* Returns the index in `cosine` and `sine` of a row's first angle, for one of the two sets of
 * frequencies. */
static inline size_t esp_cpu_angles(const struct esp_cpu_pass *p, int row, int set)
{
    return ((size_t)set * (size_t)(p->c->max_batch + 1) + (size_t)row) *
           ((size_t)p->d->rotary / 2);
}

#endif
