/* gguf_write.c - see gguf_write.h. */
#include "engine/model/gguf_write.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ bytes */

void esp_bytes_add(struct esp_bytes *b, const void *data, size_t size)
{
    if (size > b->room - b->size) {
        size_t room = 2 * (b->size + size) + 256;
        unsigned char *more = b->failed ? NULL : realloc(b->data, room);
        if (!more) {
            b->failed = true;
            return;
        }
        b->data = more;
        b->room = room;
    }
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void add_number(struct esp_bytes *b, uint64_t value, int size)
{
    unsigned char bytes[8];
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    esp_bytes_add(b, bytes, (size_t)size);
}

void esp_bytes_text(struct esp_bytes *b, const char *text, size_t length)
{
    add_number(b, length, 8);
    esp_bytes_add(b, text, length);
}

/* ------------------------------------------------------------------ values */

static void add_key(struct esp_gguf_header *h, const char *key, enum esp_gguf_kind kind)
{
    esp_bytes_text(&h->values, key, strlen(key));
    add_number(&h->values, kind, 4);
    h->value_count++;
}

void esp_gguf_put_text(struct esp_gguf_header *h, const char *key, const char *text)
{
    add_key(h, key, ESP_GGUF_TEXT);
    esp_bytes_text(&h->values, text, strlen(text));
}

void esp_gguf_put(struct esp_gguf_header *h, const char *key, enum esp_gguf_kind kind,
                  double value)
{
    float single = (float)value;
    uint32_t bits;
    add_key(h, key, kind);
    memcpy(&bits, &single, sizeof bits);
    if (kind == ESP_GGUF_F32)
        add_number(&h->values, bits, 4);
    else
        add_number(&h->values, (uint64_t)(int64_t)value, kind == ESP_GGUF_BOOL ? 1 : 4);
}

void esp_gguf_put_array(struct esp_gguf_header *h, const char *key, enum esp_gguf_kind kind,
                        uint64_t count, const struct esp_bytes *elements)
{
    add_key(h, key, ESP_GGUF_ARRAY);
    add_number(&h->values, kind, 4);
    add_number(&h->values, count, 8);
    esp_bytes_add(&h->values, elements->data, elements->size);
    h->values.failed |= elements->failed;
}

void esp_gguf_put_value(struct esp_gguf_header *h, const struct esp_gguf_value *value)
{
    esp_bytes_text(&h->values, value->key.bytes, value->key.length);
    add_number(&h->values, value->array ? ESP_GGUF_ARRAY : value->kind, 4);
    if (value->array) {
        add_number(&h->values, value->kind, 4);
        add_number(&h->values, value->count, 8);
    }
    esp_bytes_add(&h->values, value->bytes, value->size);
    h->value_count++;
}

void esp_gguf_put_tensor(struct esp_gguf_header *h, const char *name, const int64_t *shape,
                         int rank, uint32_t type, size_t size)
{
    esp_bytes_text(&h->tensors, name, strlen(name));
    add_number(&h->tensors, (uint64_t)rank, 4);
    for (int i = rank - 1; i >= 0; i--)
        add_number(&h->tensors, (uint64_t)shape[i], 8);
    add_number(&h->tensors, type, 4);
    add_number(&h->tensors, h->data, 8);
    h->data += size + esp_gguf_padding(size);
    h->tensor_count++;
}

/* ------------------------------------------------------------------ the header */

bool esp_gguf_header_bytes(const struct esp_gguf_header *h, struct esp_bytes *bytes)
{
    static const unsigned char zeros[ESP_GGUF_ALIGNMENT];
    *bytes = (struct esp_bytes){NULL, 0, 0, h->values.failed || h->tensors.failed};
    esp_bytes_add(bytes, "GGUF", 4);
    add_number(bytes, 3, 4);
    add_number(bytes, h->tensor_count, 8);
    add_number(bytes, h->value_count, 8);
    esp_bytes_add(bytes, h->values.data, h->values.size);
    esp_bytes_add(bytes, h->tensors.data, h->tensors.size);
    esp_bytes_add(bytes, zeros, esp_gguf_padding(bytes->size));
    return !bytes->failed;
}

void esp_gguf_header_free(struct esp_gguf_header *h)
{
    free(h->values.data);
    free(h->tensors.data);
    *h = (struct esp_gguf_header){.value_count = 0};
}
