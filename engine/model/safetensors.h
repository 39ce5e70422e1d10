/* safetensors.h - the tensors of a model folder, and their places in its files.
 *
 * Reads model.safetensors, or the shards that model.safetensors.index.json names. The type,
 * shape and place of every tensor are checked when the folder is opened, so that a caller may
 * read all of a tensor with the functions of model_desc.h.
 *
 * The format (https://huggingface.co/docs/safetensors): a length (8 bytes, little-endian), that
 * many bytes of JSON, then the data, which the tensors fill without gaps or overlaps.
 */
#ifndef ESP_SAFETENSORS_H
#define ESP_SAFETENSORS_H

#include "kernels/kernels.h"

enum { ESP_MAX_RANK = 8 };

struct esp_stored {
    char *name;
    char type[16]; /* as the file has it: "F32", "BF16", "I64", ... */
    int rank;
    int64_t shape[ESP_MAX_RANK];
    size_t begin, end; /* bytes within the data part */
    struct esp_tensor_file *source;
    size_t offset;    /* of the first byte in that file */
    const char *file; /* path, for error sentences */
    bool used;        /* the model has a slot for it; set by model.c */
};

struct esp_safetensors;

int esp_safetensors_open(struct esp_safetensors **set, const char *folder, char *err,
                         size_t errlen);
void esp_safetensors_close(struct esp_safetensors *set);

/* Closes the files, after all weights have been read. ESP_E_FILE if a file changed meanwhile or
 * could not be read, so that the weights must not be used. */
int esp_safetensors_release(struct esp_safetensors *set, char *err, size_t errlen);

/* NULL if there is no tensor of that name. */
struct esp_stored *esp_safetensors_find(const struct esp_safetensors *set, const char *name);
/* How many tensors are not marked as used; *first becomes the name of one of them. */
int esp_safetensors_unused(const struct esp_safetensors *set, const char **first);
/* Whether the name of any tensor starts with `prefix`. */
bool esp_safetensors_has_prefix(const struct esp_safetensors *set, const char *prefix);

#endif
