/* pass.h - the struct and the functions that the steps of a pass share; see forward.c. */
#ifndef ESP_CPU_PASS_H
#define ESP_CPU_PASS_H

#include "kernels/batch.h"
#include "kernels/cpu/cpu.h"

/* Describes a pass, which computes one batch through the model. */
struct esp_cpu_pass {
    const struct esp_cpu_weights *w;
    const struct esp_model_desc *d;
    struct esp_cpu_cache *c;
    const struct esp_cpu_isa *isa;
    const struct esp_batch *batch;
    int threads;
    int wanted; /* number of rows whose logits are wanted */
    int last;   /* number of rows that need the whole last layer */

    /* The following members describe the current step. */
    int parts;
    int layer;
    int rows;             /* number of rows with which the pass continues */
    const int32_t *going; /* indices of these rows in the batch; NULL means all rows */
};

typedef void esp_cpu_row_step(void *step, int row);

/* Sets pass->parts and runs a step in that many parts. The step consists of `units` pieces,
 * each of which is enough work for a thread. */
void esp_cpu_run_step(struct esp_cpu_pass *p, int units, esp_pool_part *run, void *step);
/* Runs a step for each of `rows` rows of `width` values, with little work per value. */
void esp_cpu_run_rows(struct esp_cpu_pass *p, int rows, size_t width, esp_cpu_row_step *run,
                      void *step);

/* Must be called when columns begin..end-1 of a vector are complete. Splits or quantises them
 * if products need that. The columns must be whole blocks of ESP_CUT_COLUMNS, or all columns.
 */
void esp_cpu_prepare(const struct esp_cpu_pass *p, const struct esp_vectors *v, int row,
                     int begin, int end);

/* Returns whether there is a gap between the sinks and the window of this row. */
static inline bool esp_cpu_has_gap(const struct esp_cpu_pass *p, int row)
{
    const struct esp_window *w = p->batch->window;
    return w && p->batch->positions[row] >= w->sinks + w->recent;
}

/* Returns the row of angles (`cosine`, `sine`) that all rows with a gap use for the sinks. */
static inline int esp_cpu_row_for_sinks(const struct esp_cpu_pass *p)
{
    return p->c->max_batch;
}

/* Returns the index in `cosine` and `sine` of the first angle of a row, for one of the two sets
 * of frequencies. */
static inline size_t esp_cpu_angles(const struct esp_cpu_pass *p, int row, int set)
{
    return ((size_t)set * (size_t)(p->c->max_batch + 1) + (size_t)row) *
           ((size_t)p->d->rotary / 2);
}

#endif
