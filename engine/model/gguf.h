/* gguf.h - reads the GGUF container: key-value metadata, a list of tensors, and their data.
 *
 * Only the header is read and checked here; nothing in it is trusted. Every count, length and
 * offset is compared with the size of the file before it is used. The size of the header limits
 * the memory that is allocated. gguf_model.h (weights and configuration) and gguf_tokenizer.h
 * interpret keys and tensors.
 *
 * The format is described by docs/gguf.md in the repository of ggml. Versions 2 and 3 are
 * supported, but only little-endian files.
 */
#ifndef ESP_GGUF_H
#define ESP_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model/stored.h"

enum { ESP_GGUF_RANK = 4, ESP_GGUF_ALIGNMENT = 32 };

/* Lists the types of values. The numbers are the same as in the files. */
enum esp_gguf_kind {
    ESP_GGUF_U8,
    ESP_GGUF_I8,
    ESP_GGUF_U16,
    ESP_GGUF_I16,
    ESP_GGUF_U32,
    ESP_GGUF_I32,
    ESP_GGUF_F32,
    ESP_GGUF_BOOL,
    ESP_GGUF_TEXT,
    ESP_GGUF_ARRAY,
    ESP_GGUF_U64,
    ESP_GGUF_I64,
    ESP_GGUF_F64,
    ESP_GGUF_KINDS
};

/* Points to a text in the header. The text is not NUL-terminated. */
struct esp_gguf_text {
    const char *bytes;
    size_t length;
};

struct esp_gguf_value {
    struct esp_gguf_text key;
    enum esp_gguf_kind kind; /* type of the value, or of the elements of an array.
                                ESP_GGUF_ARRAY: an array of arrays, which cannot be read */
    bool array;
    uint64_t count;             /* number of elements; 1 if the value is not an array */
    const unsigned char *bytes; /* the elements, stored as in the file */
    size_t size;                /* size of the elements in bytes */
};

struct esp_gguf_tensor {
    struct esp_gguf_text name;
    uint32_t type;
    int rank;
    int64_t shape[ESP_GGUF_RANK]; /* in the file's order: columns first */
    size_t offset;                /* where the data begin in the file */
    size_t bytes;
};

/* Describes a type of tensor data. `name` is the name that struct esp_stored uses, such as
 * "Q4_K"; `number` is the number that GGUF files use. */
struct esp_gguf_type {
    const char *name;
    uint32_t number;
    int block, bytes; /* `block` numbers of a row take `bytes` bytes */
};

struct esp_gguf {
    const char *path; /* path of the file; owned by the set */
    struct esp_shard *shard;
    unsigned char *header;
    struct esp_gguf_value *values; /* (value_count) */
    size_t value_count;
    struct esp_gguf_tensor *tensors; /* (tensor_count) */
    size_t tensor_count;
    size_t data; /* where the data begin in the file */
};

/* Returns whether the file can be read and begins like a GGUF file. */
bool esp_gguf_is(const char *path);

/* Adds the file to `set` and reads its header. Texts and values are valid until
 * esp_gguf_close(). The set can still be used after that. */
int esp_gguf_open(struct esp_gguf *gguf, struct esp_stored_set *set, const char *path,
                  char *err, size_t errlen);
/* Opens a file that may be split. `path` can name any part, but the first part is opened,
 * because it has the keys for all parts. */
int esp_gguf_open_first(struct esp_gguf *gguf, struct esp_stored_set *set, const char *path,
                        char *err, size_t errlen);
void esp_gguf_close(struct esp_gguf *gguf);

/* If `path` is a part of a split file (NAME-00001-of-00003.gguf), writes the name of part
 * `number` (from 1) of `count`. Returns false if `path` is not such a part, or if the name is
 * too long. */
bool esp_gguf_part(char part[PATH_MAX], const char *path, int number, int count);

/* ------------------------------------------------------------------ values */

/* Returns the value of a key, or NULL if there is no such key. */
const struct esp_gguf_value *esp_gguf_find(const struct esp_gguf *gguf, const char *key);
/* Returns element `index` as a number. A flag is 0 or 1. Returns NaN if the element is neither
 * a number nor a flag. */
double esp_gguf_number(const struct esp_gguf_value *value, uint64_t index);
/* Returns the value of a key as a number, or `otherwise` if there is no such key. */
double esp_gguf_number_of(const struct esp_gguf *gguf, const char *key, double otherwise);
/* Iterates over the texts of an array, or over a single text. Start with *at = NULL. Returns
 * false at the end. */
bool esp_gguf_next_text(const struct esp_gguf_value *value, const unsigned char **at,
                        struct esp_gguf_text *text);
/* Returns a NUL-terminated copy of a text. The caller frees it. Returns NULL if the value is
 * NULL, is not a single text, contains a NUL or is not UTF-8. */
char *esp_gguf_copy_text(const struct esp_gguf_value *value);
/* Returns whether the text is valid UTF-8 without a NUL. */
bool esp_gguf_is_plain(struct esp_gguf_text text);
/* Returns a NUL-terminated copy of a plain text, or NULL if the text is not plain. The caller
 * frees the copy. */
char *esp_gguf_copy_plain(struct esp_gguf_text text);
bool esp_gguf_is_text(struct esp_gguf_text text, const char *same);

/* ------------------------------------------------------------------ types */

/* The first function finds a type by its number in GGUF files. The second function finds the
 * type that corresponds to `dtype`. Both return NULL if there is no such type. */
const struct esp_gguf_type *esp_gguf_type(uint32_t number);
const struct esp_gguf_type *esp_gguf_type_of(enum esp_dtype dtype);

#endif
