/* safetensors.h - the tensors of a model folder, memory-mapped.
 *
 * Reads model.safetensors, or the shards that model.safetensors.index.json names. Every
 * tensor's type, shape and place is checked when the folder is opened, so that whoever finds a
 * tensor may read all of it. The format: https://huggingface.co/docs/safetensors - a length (8
 * bytes, little-endian), that many bytes of JSON, then the data, which the tensors fill without
 * gaps or overlaps.
 */
#ifndef ESP_SAFETENSORS_H
#define ESP_SAFETENSORS_H

#include "espalier.h"

enum { ESP_MAX_RANK = 8 };

struct esp_stored {
    char *name;
    char type[16]; /* as the file has it: "F32", "BF16", "I64", ... */
    int rank;
    int64_t shape[ESP_MAX_RANK];
    size_t begin, end; /* bytes within the data part */
    const void *data;
    const char *file; /* path, for error sentences */
    bool used;        /* by the model: noted by who reads it */
};

struct esp_safetensors;

int esp_safetensors_open(struct esp_safetensors **set, const char *folder, char *err,
                         size_t errlen);
void esp_safetensors_close(struct esp_safetensors *set);

/* NULL if there is no tensor of that name. */
struct esp_stored *esp_safetensors_find(const struct esp_safetensors *set, const char *name);
/* How many tensors were not noted as used; *first is the name of one of them. */
int esp_safetensors_unused(const struct esp_safetensors *set, const char **first);
/* Whether the name of any tensor starts with `prefix`. */
bool esp_safetensors_has_prefix(const struct esp_safetensors *set, const char *prefix);

#endif
