/* safetensors.h - reads the weights of a model folder in the safetensors format.
 *
 * Reads model.safetensors, or the shards that model.safetensors.index.json names, or, where
 * there is neither, pytorch_model.bin (torch_file.h), in which draft heads are published.
 *
 * The format (https://huggingface.co/docs/safetensors): a length (8 bytes, little-endian), that
 * many bytes of JSON, then the data, which the tensors fill without gaps or overlaps.
 */
#ifndef ESP_SAFETENSORS_H
#define ESP_SAFETENSORS_H

#include "engine/model/stored.h"

/* Opens the folder's files; close the set with esp_stored_close(). */
int esp_safetensors_open(struct esp_stored_set **set, const char *folder, char *err,
                         size_t errlen);
/* The same for a single file of that folder; with a name of NULL it is esp_safetensors_open().
 */
int esp_safetensors_open_file(struct esp_stored_set **set, const char *folder, const char *name,
                              char *err, size_t errlen);

#endif
