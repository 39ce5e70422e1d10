/* folder.h - a temporary model folder: a copy of one of tests/vectors/logits, to be damaged by
 * a test.
 *
 * There is one at a time; it is removed when the next one is made and when the program ends.
 * What goes wrong here fails the running test.
 */
#ifndef ESP_FOLDER_H
#define ESP_FOLDER_H

#include <stddef.h>

struct folder_bytes {
    char *data; /* malloc'd, with a NUL behind it */
    size_t size;
};

/* Makes the folder, with the files of the vector folder `name`. */
void folder_copy(const char *name);
const char *folder_path(void);
/* The path of a file in it; static storage, valid until the next call. */
const char *folder_file(const char *name);
struct folder_bytes folder_read(const char *path);
void folder_write(const char *name, const void *data, size_t size);
void folder_write_text(const char *name, const char *text);

/* In a JSON file, sets root[key], or root[key][inner] unless inner is NULL, to the JSON text
 * `value`; NULL removes it. */
void folder_edit(const char *file, const char *key, const char *inner, const char *value);
/* The same in the header of a safetensors file. */
void folder_edit_header(const char *file, const char *key, const char *inner,
                        const char *value);
/* Takes a prefix off the names of tensors that have it. */
void folder_strip_names(const char *file, const char *prefix);
/* Bytes of the header of a safetensors file. */
size_t folder_header_length(const struct folder_bytes *bytes);
/* Writes a safetensors file with the header given and the data of `bytes`. */
void folder_write_tensors(const char *file, const char *header,
                          const struct folder_bytes *bytes);

#endif
