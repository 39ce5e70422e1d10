/* folder.h - makes a temporary model folder: a copy of a folder in tests/vectors/logits, which
 * the test then damages.
 *
 * There is only one temporary folder at a time. It is removed when the next folder is made and
 * when the program ends. If one of these functions fails, the running test fails.
 */
#ifndef ESP_FOLDER_H
#define ESP_FOLDER_H

#include <stddef.h>

struct folder_bytes {
    char *data; /* the caller must free() it; a NUL follows the last byte */
    size_t size;
};

/* Makes the temporary folder, with copies of the files of tests/vectors/logits/`name`. */
void folder_copy(const char *name);
const char *folder_path(void);
/* Returns the path of a file in the folder. The result is valid until the next call. */
const char *folder_file(const char *name);
struct folder_bytes folder_read(const char *path);
void folder_write(const char *name, const void *data, size_t size);
void folder_write_text(const char *name, const char *text);

/* In a JSON file, sets root[key] or, if `inner` is not NULL, root[key][inner] to the JSON text
 * `value`. If `value` is NULL, removes the member. */
void folder_edit(const char *file, const char *key, const char *inner, const char *value);
/* Does the same as folder_edit() in the header of a safetensors file. */
void folder_edit_header(const char *file, const char *key, const char *inner,
                        const char *value);
/* Removes a prefix from the names of the tensors in a safetensors file. */
void folder_strip_names(const char *file, const char *prefix);
/* Returns the length of the header of a safetensors file. */
size_t folder_header_length(const struct folder_bytes *bytes);
/* Writes a safetensors file with the given header and the data of `bytes`. */
void folder_write_tensors(const char *file, const char *header,
                          const struct folder_bytes *bytes);

#endif
