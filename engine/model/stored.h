/* stored.h - lists the tensors in a model's files, and where in the files they are.
 *
 * A reader of a format (safetensors.h, gguf.h) fills a set. model.c looks up tensors in the set
 * by the names in the architecture's tables. The reader checks type, shape and position of
 * every tensor, so a caller may read the whole tensor with the functions of model_desc.h.
 *
 * Files are read, not mapped: if a mapped file is truncated, reading it kills the program
 * (SIGBUS). esp_stored_release() returns an error if a file changed while weights were read.
 */
#ifndef ESP_STORED_H
#define ESP_STORED_H

#include <limits.h>
#include <time.h>

#include "kernels/kernels.h"

enum { ESP_MAX_RANK = 8 };

struct esp_stored {
    char *name;
    char type[16]; /* the type's name in the format: "F32", "BF16", "I64", "Q4_K", ... */
    int rank;
    int64_t shape[ESP_MAX_RANK]; /* rows first */
    size_t begin, end;           /* position of the tensor's bytes in the file's data part */
    struct esp_tensor_file *source;
    size_t offset;    /* position of the tensor's first byte in `source` */
    const char *file; /* path of `source`, for error messages */
    bool used;        /* true: the model uses the tensor; set by model.c */
    /* These members describe the layout in a GGUF file. `converted`: the parts of a fused
     * matrix are consecutive, not interleaved head by head; no matrix is transposed; norms
     * include the number that esp_tensor_rule.added would add. `paired`: the rows of each head
     * are in pairs, see struct esp_tensor. */
    bool converted, paired;
    /* For MXFP4 in a folder, the file that has the scales, which are (rows, blocks) bytes.
     * Otherwise NULL. See struct esp_tensor. */
    struct esp_tensor_file *scale_source;
    size_t scale_offset;
};

/* Describes an open file that has tensors of the set. */
struct esp_shard {
    char path[PATH_MAX];
    struct esp_tensor_file source;
    struct timespec changed; /* when the file was last written */
    size_t size;
};

struct esp_stored_set {
    struct esp_shard **shards; /* (shard_count) */
    int shard_count;
    struct esp_stored *tensors; /* (count) sorted by name once all files are read */
    size_t count, room;
};

/* ------------------------------------------------------------------ for readers of formats */

/* Opens the file at `path` and adds it to the set. The set owns the file even if later steps
 * fail. */
int esp_stored_open_file(struct esp_stored_set *set, const char *path, struct esp_shard **shard,
                         char *err, size_t errlen);
/* Closes and removes the last opened file, which must have no tensors yet. */
void esp_stored_drop_file(struct esp_stored_set *set);
/* Adds a tensor of the file `shard`. Its members are zero except name, source and file. Returns
 * NULL if there is no memory. The pointer is valid until the next call. */
struct esp_stored *esp_stored_add(struct esp_stored_set *set, struct esp_shard *shard,
                                  const char *name);
/* Hugging Face folders store MXFP4 as two byte tensors, NAME_blocks (..., blocks, 16) and
 * NAME_scales (..., blocks). Joins them into one tensor NAME of type MXFP4. Call this after
 * esp_stored_finish(). */
int esp_stored_join_scales(struct esp_stored_set *set, char *err, size_t errlen);
/* Sorts the tensors by name. Fails if two tensors have the same name. */
int esp_stored_finish(struct esp_stored_set *set, char *err, size_t errlen);

/* ------------------------------------------------------------------ for everyone */

void esp_stored_close(struct esp_stored_set *set);

/* Closes the files after all weights have been read. Returns ESP_E_FILE if a file changed
 * meanwhile or could not be read. In that case, the weights must not be used. */
int esp_stored_release(struct esp_stored_set *set, char *err, size_t errlen);

/* Returns the tensor with that name, or NULL. */
struct esp_stored *esp_stored_find(const struct esp_stored_set *set, const char *name);
/* Returns the number of tensors that the model does not use. Sets *first to the name of the
 * first unused tensor. */
int esp_stored_unused(const struct esp_stored_set *set, const char **first);
/* Returns whether the name of any tensor starts with `prefix`. */
bool esp_stored_has_prefix(const struct esp_stored_set *set, const char *prefix);

#endif
