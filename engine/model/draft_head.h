/* draft_head.h - draft heads in the formats that the authors of EAGLE publish
 * (github.com/SafeAILab/EAGLE), and EAGLE-3 heads and MTP layers as the library speculators
 * writes them (github.com/vllm-project/speculators); README.md describes the folders.
 *
 * The MTP layer of a model ("multi-token prediction": DeepSeek-AI, "DeepSeek-V3", 2024, section
 * 2.2) is a head in the files of its target. It was trained together with the target to predict
 * the token after the next one. It drafts several tokens by reading its own hidden states.
 *
 * A head is an esp_model with a description that reads hidden states (enum esp_reads). If the
 * head lacks an embedding or an LM head, that of its target is used.
 */
#ifndef ESP_DRAFT_HEAD_H
#define ESP_DRAFT_HEAD_H

#include "engine/model/architecture.h"
#include "engine/model/stored.h"

/* Returns the kind of draft head in a folder, judging by its tensors; ESP_READS_TOKENS for a
 * whole model. */
enum esp_reads esp_draft_head_kind(const struct esp_stored_set *files);

/* Returns the family with the tensor names of a head. */
const struct esp_family *esp_draft_head_family(const struct esp_stored_set *files);

/* In a folder of speculators, config.json contains the configuration of the decoder layer.
 * Replaces the configuration with this one, and adds the members that describe the head. Sets
 * model->head if the folder has an MTP layer. Returns ESP_E_UNSUPPORTED for a kind of head that
 * is not supported. */
int esp_draft_head_unwrap(struct esp_model *model, struct esp_json *json);

/* Renames the tensors of an MTP layer in a folder of speculators: they get the names that they
 * have in the files of a target. Other sets of tensors do not change. */
int esp_draft_head_names(struct esp_stored_set *set, char *err, size_t errlen);

/* Completes the configuration of a head from its tensors: its widths, and which biases and norms
 * it has. Sets the members of `head` that say which states it reads. */
int esp_draft_head_config(struct esp_model *head, struct esp_config *config,
                          enum esp_reads reads, const struct esp_architecture *architecture,
                          const struct esp_json *json);

/* Returns the family of the MTP layer if these files have one, otherwise NULL. */
const struct esp_family *esp_mtp_family(const struct esp_stored_set *files,
                                        const struct esp_architecture *architecture);
/* Replaces a model's configuration by that of its MTP layer. ESP_E_UNSUPPORTED: there are
 * several layers, or the layer's embedding is missing. */
int esp_mtp_config(struct esp_config *config, const struct esp_json *json,
                   const struct esp_stored_set *files);

/* Reads the list of tokens that get logits. The tensors must be bound already. The model owns
 * the list. */
int esp_draft_head_outputs(struct esp_model *head, char *err, size_t errlen);

/* Joins a head to its target: checks that they fit, and takes missing tensors from the target.
 * The target must outlive the head. Returns 0, or ESP_E_MISMATCH if they do not fit. */
int esp_draft_head_join(struct esp_model *head, const struct esp_model *target, char *err,
                        size_t errlen);

/* Returns a request for the target's hidden states that a head reads; the caller sets `to` and
 * `row`. */
struct esp_states esp_draft_head_states(const struct esp_model *head,
                                        const struct esp_model *target);

/* For drafted tokens, a head reads this state of its own instead of the target's state. */
int esp_draft_head_fed_back(const struct esp_model *head);

#endif
