/* pack.h - writes and reads the values in the binary records of kept sessions.
 *
 * A number is a varint: each byte contains seven bits of it, the lowest bits first. If another
 * byte follows, the highest bit of the byte is set. The reading functions check every length.
 * After the first error they return zeros, so a caller need not check each value.
 */
#ifndef ESP_PACK_H
#define ESP_PACK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A buffer to write to. A zero-initialised struct is an empty buffer. */
struct esp_pack {
    unsigned char *at; /* (length) the bytes written so far */
    size_t length, capacity;
    bool failed; /* memory has run out, so later calls write nothing */
};

/* Makes room for `more` bytes at the end of the buffer. Returns a pointer to this room, or NULL
 * if there is no memory. The caller writes the bytes, and adds their number to b->length. */
static inline unsigned char *esp_pack_room(struct esp_pack *b, size_t more)
{
    if (b->length + more > b->capacity && !b->failed) {
        const size_t capacity = 2 * (b->length + more) + 256;
        unsigned char *grown = realloc(b->at, capacity);
        b->failed = !grown;
        if (grown) {
            b->at = grown;
            b->capacity = capacity;
        }
    }
    return b->failed ? NULL : b->at + b->length;
}

static inline void esp_pack_number(struct esp_pack *b, uint64_t value)
{
    unsigned char *to = esp_pack_room(b, 10);
    if (!to)
        return;
    while (value >= 128) {
        *to++ = (unsigned char)(value | 128);
        value >>= 7;
    }
    *to++ = (unsigned char)value;
    b->length = (size_t)(to - b->at);
}

static inline void esp_pack_put(struct esp_pack *b, const void *bytes, size_t length)
{
    unsigned char *to = esp_pack_room(b, length);
    if (to && length > 0)
        memcpy(to, bytes, length);
    b->length += to ? length : 0;
}

/* Writes the length of a text, and then its bytes. */
static inline void esp_pack_text(struct esp_pack *b, const char *text, size_t length)
{
    esp_pack_number(b, length);
    esp_pack_put(b, text, length);
}

/* Writes a little-endian number of `size` bytes. */
static inline void esp_pack_fixed(struct esp_pack *b, uint64_t value, int size)
{
    unsigned char *to = esp_pack_room(b, (size_t)size);
    for (int i = 0; to && i < size; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    b->length += to ? (size_t)size : 0;
}

static inline void esp_pack_float(struct esp_pack *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    esp_pack_fixed(b, bits, 4);
}

static inline void esp_pack_free(struct esp_pack *b)
{
    free(b->at);
    *b = (struct esp_pack){.length = 0};
}

/* ------------------------------------------------------------------ reading */

/* A buffer to read from. `at` points to the next byte. */
struct esp_from {
    const unsigned char *at, *end;
    bool bad; /* there was an error: the bytes ended too early, or a value was invalid */
};

/* Reads a varint. A number above `most` is an error. */
static inline uint64_t esp_from_number(struct esp_from *f, uint64_t most)
{
    uint64_t value = 0;
    for (int shift = 0; f->at < f->end && shift < 64; shift += 7) {
        const unsigned char byte = *f->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            f->bad |= value > most;
            return f->bad ? 0 : value;
        }
    }
    f->bad = true;
    f->at = f->end;
    return 0;
}

static inline uint64_t esp_from_fixed(struct esp_from *f, int size)
{
    uint64_t value = 0;
    if (f->end - f->at < size) {
        f->bad = true;
        f->at = f->end;
        return 0;
    }
    for (int i = 0; i < size; i++)
        value |= (uint64_t)*f->at++ << 8 * i;
    return value;
}

/* Reads a float. NaN and numbers outside [least, most] are errors. */
static inline float esp_from_float(struct esp_from *f, double least, double most)
{
    const uint32_t bits = (uint32_t)esp_from_fixed(f, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (value >= least && value <= most)
        return value;
    f->bad = true;
    return 0;
}

/* Reads a text without copying it. Returns a pointer to its bytes in the record. */
static inline const char *esp_from_text(struct esp_from *f, size_t *length)
{
    *length = (size_t)esp_from_number(f, (uint64_t)(f->end - f->at));
    if (f->bad || *length > (size_t)(f->end - f->at)) {
        f->bad = true;
        *length = 0;
        return "";
    }
    f->at += *length;
    return (const char *)f->at - *length;
}

/* Reads a text and copies it to `to`, truncated to `size` bytes with the final NUL. */
static inline void esp_from_copy(struct esp_from *f, char *to, size_t size)
{
    size_t length;
    const char *text = esp_from_text(f, &length);
    length = length < size ? length : size - 1;
    memcpy(to, text, length);
    to[length] = '\0';
}

#endif
