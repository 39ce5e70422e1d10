/* multimodal.h - finds the language model in the folder of a vision-language model.
 *
 * Such a folder wraps a language model: the member text_config of its config.json is the
 * language model's config.json. The tensors are called language_model.NAME, or
 * model.language_model.NAME (where NAME lacks "model."). The vision tower and its projector are
 * ignored. For text without pictures, the language model alone gives the same result.
 */
#ifndef ESP_MULTIMODAL_H
#define ESP_MULTIMODAL_H

#include "engine/model/json.h"
#include "engine/model/stored.h"

/* Replaces json->root by the configuration of the language model, if model_type is a supported
 * vision-language model. */
int esp_multimodal_config(struct esp_json *json);

/* Completes the configuration of a language model that was inside another configuration. The
 * transformers library omits values that equal the defaults of this model_type. This function
 * adds the omitted values. */
void esp_multimodal_fill_in(cJSON *inner);

/* Renames the tensors of the language model to the names that they have in the folder of a
 * language model. Removes the other tensors and sets *ignored to their number. Leaves a set
 * without a language model as it is. */
int esp_multimodal_tensors(struct esp_stored_set *set, int *ignored, char *err, size_t errlen);

#endif
