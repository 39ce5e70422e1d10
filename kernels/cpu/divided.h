/* divided.h - functions for a pass over weights that are divided among ranks (kernels/ranks).
 *
 * All ranks run the same pass. Each rank computes its own outputs of every matrix with the same
 * operations as a single process. Then the ranks exchange their outputs, so that each rank has
 * all outputs. The result is therefore bit-identical for any number of ranks and any plan.
 * Without ranks these functions do nothing.
 */
#ifndef ESP_CPU_DIVIDED_H
#define ESP_CPU_DIVIDED_H

#include "kernels/cpu/pass.h"

/* Returns whether this rank computes only some of the outputs of matrices of this kind. */
static inline bool esp_cpu_divides(const struct esp_cpu_pass *p, enum esp_rank_kind kind)
{
    return esp_rank_plan_divides(p->w->plan, kind);
}

/* Returns whether a rank has failed or is no longer reachable. */
bool esp_cpu_ranks_failed(const struct esp_cpu_pass *p);

/* Copies rank 0's rows of the residual stream to all ranks. */
void esp_cpu_share_embedding(struct esp_cpu_pass *p);

/* Returns whether this rank has layer p->layer or a part of it. */
bool esp_cpu_has_layer(const struct esp_cpu_pass *p);
/* For ranks with whole layers: returns whether this rank has layer p->layer. Moves the rows of
 * the residual stream from rank *holder to the rank with that layer, and sets *holder to the
 * number of that rank. */
bool esp_cpu_takes_layer(struct esp_cpu_pass *p, int *holder);
/* Copies the rows of the residual stream from rank `holder` to rank 0. */
void esp_cpu_show_rows(struct esp_cpu_pass *p, int holder);

/* Gathers `count` rows with the outputs of all heads (count, width). Each rank has computed the
 * query heads that belong to its key/value heads. `heads` is the number of query heads of all
 * ranks together. */
void esp_cpu_gather_heads(struct esp_cpu_pass *p, float *rows, size_t width, int heads,
                          int count);
/* Gathers the outputs of the matrices of a kind for p->rows rows. The outputs are in rows
 * which[0], which[1], ... of `rows` (.., stride), or in its first rows if `which` is NULL. */
void esp_cpu_gather_columns(struct esp_cpu_pass *p, enum esp_rank_kind kind, float *rows,
                            size_t stride, const int32_t *which);
/* Prepares p->rows complete vectors for a product. */
void esp_cpu_prepare_all(struct esp_cpu_pass *p, const struct esp_vectors *v);
/* Gathers the wanted rows of logits in rank 0. `part` contains this rank's logits, in rows of
 * `stride` values. In rank 0, `part` is the matrix of the final logits. */
void esp_cpu_gather_logits(struct esp_cpu_pass *p, float *part, size_t stride);

#endif
