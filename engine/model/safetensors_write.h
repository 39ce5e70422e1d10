/* safetensors_write.h - makes the header of a safetensors file (format: safetensors.h). */
#ifndef ESP_SAFETENSORS_WRITE_H
#define ESP_SAFETENSORS_WRITE_H

#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* A zero-initialised struct is valid and empty. */
struct esp_safetensors_header {
    cJSON *all;
    size_t data; /* size in bytes of the tensors added so far */
    bool failed; /* true: memory has run out */
};

/* Adds a tensor of `bytes` bytes after the tensors added so far. If `columns` is 0, the tensor
 * is a vector of `rows` numbers. */
void esp_safetensors_add(struct esp_safetensors_header *header, const char *name,
                         const char *type, int rows, int columns, size_t bytes);

/* Returns the beginning of a file: *size bytes, followed by `room` unused bytes of memory. If
 * `padded` is true, *size is a multiple of 8. The caller frees the memory. Returns NULL if
 * memory has run out. Frees the header in either case.
 */
char *esp_safetensors_begin(struct esp_safetensors_header *header, bool padded, size_t room,
                            size_t *size);

#endif
