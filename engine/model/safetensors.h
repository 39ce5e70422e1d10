/* safetensors.h - reads the weights of a model folder in the safetensors format.
 *
 * Reads model.safetensors, or the shards in model.safetensors.index.json. If neither exists,
 * reads pytorch_model.bin (torch_file.h), the format of published draft heads.
 *
 * The format (https://huggingface.co/docs/safetensors): a length (8 bytes, little-endian), that
 * many bytes of JSON, then the data. The tensors fill the data without gaps or overlaps.
 */
#ifndef ESP_SAFETENSORS_H
#define ESP_SAFETENSORS_H

#include "engine/model/stored.h"

/* Opens one file of the folder, or with name = NULL those of its model; close the set with
 * esp_stored_close(). */
int esp_safetensors_open(struct esp_stored_set **set, const char *folder, const char *name,
                         char *err, size_t errlen);

#endif
