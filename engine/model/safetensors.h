/* safetensors.h - reads the weights of a model folder in the safetensors format.
 *
 * Reads model.safetensors, or the files that model.safetensors.index.json lists. If neither
 * exists, reads pytorch_model.bin (torch_file.h), the format of published draft heads.
 *
 * A safetensors file (https://huggingface.co/docs/safetensors) has a length (8 bytes,
 * little-endian), that many bytes of JSON, and the data. The tensors fill the data without gaps
 * or overlaps.
 */
#ifndef ESP_SAFETENSORS_H
#define ESP_SAFETENSORS_H

#include "engine/model/stored.h"

/* Opens the file `name` in the folder. If `name` is NULL, opens all weight files of the model.
 * Close the set with esp_stored_close(). */
int esp_safetensors_open(struct esp_stored_set **set, const char *folder, const char *name,
                         char *err, size_t errlen);

#endif
