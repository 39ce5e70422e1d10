/* pass.h - what the steps of a pass share; see forward.c. */
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
    int wanted; /* rows with logits */
    int last;   /* rows that go through the whole last layer */

    /* Of the step that is running: */
    int parts;
    int layer;
    int rows;             /* that go on */
    const int32_t *going; /* their numbers in the batch; NULL: all */
};

/* What a thread does of a step: its part `part` of pass->parts. */
typedef void esp_cpu_part(void *step, int part, int thread);

/* Runs a step of `units` pieces that are worth a thread each. */
void esp_cpu_run_step(struct esp_cpu_pass *p, int units, esp_cpu_part *run, void *step);
/* The same for rows of `width` values each, on which little is done. */
void esp_cpu_run_rows(struct esp_cpu_pass *p, int rows, size_t width, esp_cpu_part *run,
                      void *step);

/* Columns begin..end-1 of a vector, multiples of ESP_CUT_COLUMNS or all of them, are done. */
void esp_cpu_prepare(const struct esp_cpu_pass *p, const struct esp_vectors *v, int row,
                     int begin, int end);

/* Does the window leave a gap in what this row sees? */
static inline bool esp_cpu_has_gap(const struct esp_cpu_pass *p, int row)
{
    const struct esp_window *w = p->batch->window;
    return w && p->batch->positions[row] >= w->sinks + w->recent;
}

/* Where the angles are of the rows that have a gap, as the sinks see them. */
static inline int esp_cpu_row_for_sinks(const struct esp_cpu_pass *p)
{
    return p->c->max_batch;
}

/* The first angle of a row in cosine and sine, by one of the two sets of frequencies. */
static inline size_t esp_cpu_angles(const struct esp_cpu_pass *p, int row, int set)
{
    return ((size_t)set * (size_t)(p->c->max_batch + 1) + (size_t)row) *
           ((size_t)p->d->rotary / 2);
}

#endif
