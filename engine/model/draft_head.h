/* draft_head.h - draft heads in the forms that the authors of EAGLE publish
 * (github.com/SafeAILab/EAGLE); README.md describes the folders.
 *
 * A head is an esp_model whose description reads hidden states (enum esp_reads). What it has
 * not of its own, an embedding or an LM head, is its target's.
 */
#ifndef ESP_DRAFT_HEAD_H
#define ESP_DRAFT_HEAD_H

#include "engine/model/architecture.h"
#include "engine/model/stored.h"

/* What the tensors of a folder are: ESP_READS_TOKENS for a whole model. */
enum esp_reads esp_draft_head_kind(const struct esp_stored_set *files);

/* Tensor names of a kind of head. */
const struct esp_family *esp_draft_head_family(enum esp_reads reads);

/* Completes what config.json says of a head of this kind: widths, and which biases there are
 * (the files tell; config.json does not). */
int esp_draft_head_config(struct esp_config *config, enum esp_reads reads,
                          const struct esp_architecture *architecture,
                          const struct esp_json *json, const struct esp_stored_set *files,
                          char *err, size_t errlen);

/* Reads which tokens get logits, once the tensors are bound. The model owns the list. */
int esp_draft_head_outputs(struct esp_model *head, char *err, size_t errlen);

/* Makes a head that of a target: checks that they go together, and fills in what is the
 * target's. The target must outlive the head. ESP_E_MISMATCH and one sentence if they do not.
 */
int esp_draft_head_join(struct esp_model *head, const struct esp_model *target, char *err,
                        size_t errlen);

/* Which hidden states of its target a head reads; `to` and `row` are left for the caller. */
struct esp_states esp_draft_head_states(const struct esp_model *head,
                                        const struct esp_model *target);

#endif
