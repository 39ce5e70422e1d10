/* gguf_describe.h - makes the keys for writing a model as a GGUF file. */
#ifndef ESP_GGUF_DESCRIBE_H
#define ESP_GGUF_DESCRIBE_H

#include "engine/model/architecture.h"
#include "engine/model/gguf_write.h"

/* Adds all keys except the keys about quantisation. If the model is a GGUF file, its keys are
 * copied. If it is a folder, the keys are made from config.json, tokenizer.json and its other
 * files. `mtp` says whether the new file will have the model's MTP layer. Sets *factors
 * to the contents of rope_freqs.weight (rotary / 2), or to NULL; the caller frees it. */
int esp_gguf_describe(struct esp_gguf_header *header, float **factors,
                      const struct esp_model *model,
                      const struct esp_architecture *architecture, bool mtp, char *err,
                      size_t errlen);

#endif
