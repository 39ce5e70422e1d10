/* gguf_describe.h - the keys of the GGUF file that a model becomes. */
#ifndef ESP_GGUF_DESCRIBE_H
#define ESP_GGUF_DESCRIBE_H

#include "engine/model/architecture.h"
#include "engine/model/gguf_write.h"

/* Adds all keys but those of the quantisation. A GGUF file's own are kept as they are; those of
 * a folder are made from config.json, tokenizer.json and what else lies there. *factors, of
 * rotary / 2 numbers, becomes what rope_freqs.weight has to hold, or NULL; the caller frees it.
 */
int esp_gguf_describe(struct esp_gguf_header *header, float **factors,
                      const struct esp_model *model,
                      const struct esp_architecture *architecture, char *err, size_t errlen);

#endif
