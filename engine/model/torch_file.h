/* torch_file.h - the tensors of pytorch_model.bin, as written by torch.save(state_dict).
 *
 * The file is a zip archive without compression (zip.h). Its data.pkl is a pickle, a program
 * for a small stack machine that builds the dictionary of tensors. Each storage is a file of
 * the archive. This reader knows only the instructions and names that such dictionaries need.
 * It executes no code: everything else in a pickle is refused or ignored.
 */
#ifndef ESP_TORCH_FILE_H
#define ESP_TORCH_FILE_H

#include "engine/model/safetensors.h"

/* Called for every tensor: name is NUL-terminated; type, shape and rank are in safetensors
 * terms; offset and end are bytes of the file. Returns 0 or a negative status. */
typedef int esp_torch_found(void *user, const char *name, const struct esp_stored *tensor,
                            char *err, size_t errlen);

/* Reads a file of `size` bytes; `path` is used in error sentences. */
int esp_torch_read(struct esp_tensor_file *file, size_t size, const char *path,
                   esp_torch_found *found, void *user, char *err, size_t errlen);

#endif
