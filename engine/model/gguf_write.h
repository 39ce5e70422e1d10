/* gguf_write.h - makes the header of a GGUF file in memory. */
#ifndef ESP_GGUF_WRITE_H
#define ESP_GGUF_WRITE_H

#include "engine/model/gguf.h"

/* Holds bytes in a buffer that grows. If memory runs out, `failed` is set and nothing more is
 * added. */
struct esp_bytes {
    unsigned char *data; /* (size) the caller frees it */
    size_t size, room;
    bool failed;
};

struct esp_gguf_header {
    struct esp_bytes values, tensors;
    uint64_t value_count, tensor_count;
    size_t data; /* size in bytes of the tensors so far, each padded to the alignment */
};

void esp_bytes_add(struct esp_bytes *bytes, const void *data, size_t size);
void esp_bytes_text(struct esp_bytes *bytes, const char *text, size_t length);

void esp_gguf_put_text(struct esp_gguf_header *header, const char *key, const char *text);
/* Adds a number or flag. */
void esp_gguf_put(struct esp_gguf_header *header, const char *key, enum esp_gguf_kind kind,
                  double value);
/* Adds an array of `count` elements. `elements` has the bytes that are written to the file. */
void esp_gguf_put_array(struct esp_gguf_header *header, const char *key,
                        enum esp_gguf_kind kind, uint64_t count,
                        const struct esp_bytes *elements);
/* Adds a value copied from another file. */
void esp_gguf_put_value(struct esp_gguf_header *header, const struct esp_gguf_value *value);
/* Adds the description of the next tensor. Its data are stored after the data of the tensors
 * added before, at an aligned position. `shape` has `rank` sizes, rows first. `size` is the
 * size of the data in bytes. */
void esp_gguf_put_tensor(struct esp_gguf_header *header, const char *name, const int64_t *shape,
                         int rank, uint32_t type, size_t size);

/* Writes the whole header and the padding before the data. Returns false if there is no
 * memory. */
bool esp_gguf_header_bytes(const struct esp_gguf_header *header, struct esp_bytes *bytes);
void esp_gguf_header_free(struct esp_gguf_header *header);

static inline size_t esp_gguf_padding(size_t size)
{
    return (ESP_GGUF_ALIGNMENT - size % ESP_GGUF_ALIGNMENT) % ESP_GGUF_ALIGNMENT;
}

#endif
