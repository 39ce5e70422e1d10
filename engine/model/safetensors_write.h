/* safetensors_write.h - makes the header of a safetensors file (format: safetensors.h). */
#ifndef ESP_SAFETENSORS_WRITE_H
#define ESP_SAFETENSORS_WRITE_H

#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Begins zeroed. */
struct esp_safetensors_header {
    cJSON *all;
    size_t data; /* bytes of the tensors so far */
    bool failed; /* there was no memory */
};

/* Adds a tensor of `bytes` bytes after the last one. columns = 0: a vector of `rows`. */
void esp_safetensors_add(struct esp_safetensors_header *header, const char *name,
                         const char *type, int rows, int columns, size_t bytes);

/* The beginning of a file, *size bytes, with room for `room` bytes after it. `padded`: to a
 * multiple of 8. NULL: no memory. Frees the header; the caller frees the file. */
char *esp_safetensors_begin(struct esp_safetensors_header *header, bool padded, size_t room,
                            size_t *size);

#endif
