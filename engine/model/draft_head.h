/* draft_head.h - opens draft heads. It supports the formats of the authors of EAGLE
 * (github.com/SafeAILab/EAGLE), and the EAGLE-3 heads and MTP layers of the library speculators
 * (github.com/vllm-project/speculators). README.md describes the folders.
 *
 * The MTP layer of a model ("multi-token prediction": DeepSeek-AI, "DeepSeek-V3", 2024, section
 * 2.2) is a head in the files of its target. It was trained together with the target to predict
 * the token after the next token. It drafts several tokens by reading its own hidden states.
 *
 * A head is an esp_model that reads hidden states of its target (enum esp_reads). If the head
 * lacks an embedding or an LM head, it uses the target's embedding or LM head.
 */
#ifndef ESP_DRAFT_HEAD_H
#define ESP_DRAFT_HEAD_H

#include "engine/model/architecture.h"
#include "engine/model/stored.h"

/* Returns the kind of draft head that has these tensors, or ESP_READS_TOKENS if they belong to
 * a whole model. */
enum esp_reads esp_draft_head_kind(const struct esp_stored_set *files);

/* Returns the family that has the tensor names of this kind of draft head. */
const struct esp_family *esp_draft_head_family(const struct esp_stored_set *files);

/* In a folder of the library speculators, config.json contains a second configuration, for
 * the decoder layer. Replaces json->root by the inner configuration, and adds to it the outer
 * members that describe the head. Sets model->head if the folder has an MTP layer. Does nothing
 * for other folders. Returns ESP_E_UNSUPPORTED for a kind of head that is not supported. */
int esp_draft_head_unwrap(struct esp_model *model, struct esp_json *json);

/* If `set` has an MTP layer with the tensor names of the library speculators, changes these
 * names to the names in the files of a target. Does not change any other set. */
int esp_draft_head_names(struct esp_stored_set *set, char *err, size_t errlen);

/* Completes the configuration of a head from its tensors: its widths, and which biases and
 * norms it has. Sets the members of `head` that say which states it reads. */
int esp_draft_head_config(struct esp_model *head, struct esp_config *config,
                          enum esp_reads reads, const struct esp_architecture *architecture,
                          const struct esp_json *json);

/* Returns the family of the MTP layer if these files have one, otherwise NULL. */
const struct esp_family *esp_mtp_family(const struct esp_stored_set *files,
                                        const struct esp_architecture *architecture);
/* Turns the configuration of a model into the configuration of its MTP layer. Returns
 * ESP_E_UNSUPPORTED if the model has several MTP layers, or if the MTP layer's embedding is
 * missing. */
int esp_mtp_config(struct esp_config *config, const struct esp_json *json,
                   const struct esp_stored_set *files);

/* Reads which tokens get logits from a draft head with a reduced vocabulary. The tensors must
 * be bound already. The model owns the list. */
int esp_draft_head_outputs(struct esp_model *head, char *err, size_t errlen);

/* Joins a head to its target: checks that they fit, and takes missing tensors from the target.
 * The target must outlive the head. Returns 0, or ESP_E_MISMATCH if they do not fit. */
int esp_draft_head_join(struct esp_model *head, const struct esp_model *target, char *err,
                        size_t errlen);

/* Returns a request for the target's hidden states that a head reads. The caller sets the
 * members `to` and `row` of the request. */
struct esp_states esp_draft_head_states(const struct esp_model *head,
                                        const struct esp_model *target);

/* For a drafted token, the target has no state, so a head reads one of its own states. Returns
 * which of its states this is. */
int esp_draft_head_fed_back(const struct esp_model *head);

#endif
