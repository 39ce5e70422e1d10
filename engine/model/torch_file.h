/* torch_file.h - reads the tensors of pytorch_model.bin, as torch.save(state_dict) writes it.
 *
 * The file is a zip archive without compression (zip.h). Its data.pkl is a pickle, a program
 * for a small stack machine that builds the dictionary of tensors; the tensors' data are
 * separate files of the archive. This reader knows only the instructions and names that these
 * dictionaries need. It executes no code: everything else in a pickle is refused or ignored.
 */
#ifndef ESP_TORCH_FILE_H
#define ESP_TORCH_FILE_H

#include "engine/model/safetensors.h"

/* esp_torch_read() calls this function for every tensor. The members type, shape and rank of
 * *tensor are as in a safetensors file; `offset` is the position of the data in the file. The
 * function returns 0, or a negative status to stop. */
typedef int esp_torch_found(void *user, const char *name, const struct esp_stored *tensor,
                            char *err, size_t errlen);

/* Reads a file of `size` bytes and calls `found` for each tensor. `path` is the file's name in
 * error messages. */
int esp_torch_read(struct esp_tensor_file *file, size_t size, const char *path,
                   esp_torch_found *found, void *user, char *err, size_t errlen);

#endif
