/* divided.h - a pass over weights that are divided among ranks (kernels/ranks).
 *
 * All ranks run the same pass. Each computes its own outputs of a matrix, by the operations by
 * which one process would, and then the ranks gather. So all bits are those of one process, for
 * any number of ranks and any plan. Without ranks these functions do nothing.
 */
#ifndef ESP_CPU_DIVIDED_H
#define ESP_CPU_DIVIDED_H

#include "kernels/cpu/pass.h"

/* Does this rank compute only some outputs of this kind? */
static inline bool esp_cpu_divides(const struct esp_cpu_pass *p, enum esp_rank_kind kind)
{
    return esp_rank_plan_divides(p->w->plan, kind);
}

/* Has some rank failed, or has this one lost the others? */
bool esp_cpu_ranks_failed(const struct esp_cpu_pass *p);

/* Copies rank 0's rows of the residual stream to all. */
void esp_cpu_share_embedding(struct esp_cpu_pass *p);

/* Does this rank have layer p->layer, or a part of it? */
bool esp_cpu_has_layer(const struct esp_cpu_pass *p);
/* Ranks with whole layers: does this one have layer p->layer? The rows of the residual stream,
 * which are with rank *holder, go to the rank that has it. */
bool esp_cpu_takes_layer(struct esp_cpu_pass *p, int *holder);
/* Rank 0 gets a copy of these rows. */
void esp_cpu_show_rows(struct esp_cpu_pass *p, int holder);

/* Completes `count` rows (count, width) of heads, of which each rank has those of its key/value
 * heads. heads: in all. */
void esp_cpu_gather_heads(struct esp_cpu_pass *p, float *rows, size_t width, int heads,
                          int count);
/* Completes p->rows rows of the outputs of matrices of a kind: rows which[0], which[1], .. of
 * (.., stride); which = NULL: the first ones. */
void esp_cpu_gather_columns(struct esp_cpu_pass *p, enum esp_rank_kind kind, float *rows,
                            size_t stride, const int32_t *which);
/* p->rows vectors are complete. */
void esp_cpu_prepare_all(struct esp_cpu_pass *p, const struct esp_vectors *v);
/* Completes the wanted rows of logits in rank 0. part: this rank's, rows of `stride` numbers; in
 * rank 0 the logits themselves. */
void esp_cpu_gather_logits(struct esp_cpu_pass *p, float *part, size_t stride);

#endif
