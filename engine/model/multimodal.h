/* multimodal.h - the text part of a model folder that also holds a model of pictures.
 *
 * Such a folder is that of a language model with another one around it: its config.json has
 * that of the text part as text_config, and its tensors are called language_model.NAME (or
 * model.language_model.NAME behind which lies the name without "model."). The vision tower and
 * what projects its output are ignored. Text without pictures is computed as by the text part
 * alone.
 */
#ifndef ESP_MULTIMODAL_H
#define ESP_MULTIMODAL_H

#include "engine/model/json.h"
#include "engine/model/stored.h"

/* Makes json->root the configuration of the text part, if model_type is that of a model whose
 * text part is computed as a model of its own. */
int esp_multimodal_config(struct esp_json *json, char *err, size_t errlen);

/* Gives the tensors of the text part the names that they have in a model of its own and leaves
 * out the others, which *ignored counts. Nothing happens to a set without a text part. */
int esp_multimodal_tensors(struct esp_stored_set *set, int *ignored, char *err, size_t errlen);

#endif
