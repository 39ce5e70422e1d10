/* utf8_stream.h - turns the bytes of tokens into text that never ends inside a character.
 *
 * A token of a byte-level tokenizer may end in the middle of a UTF-8 sequence, and a model may
 * produce bytes that are not UTF-8 at all. A stream holds back an unfinished sequence (at most
 * 3 bytes) until the next token completes or breaks it:
 *
 *     struct esp_utf8_stream stream = {.mode = ESP_UTF8_TEXT};
 *     size_t n = esp_utf8_stream_push(&stream, bytes, length, out);    for every token
 *     n = esp_utf8_stream_flush(&stream, out);                         at the end
 *
 * Raw mode is for files and pipes: the output has exactly the bytes of the input, possibly some
 * calls later. Text mode is for screens: the output is always valid UTF-8. Each ill-formed part
 * becomes one U+FFFD by the Unicode standard's "maximal subpart" rule (section 3.9), as in
 * Python and in browsers. In both modes the output of a call never ends inside a character.
 */
#ifndef ESP_UTF8_STREAM_H
#define ESP_UTF8_STREAM_H

#include <stddef.h>

enum esp_utf8_mode { ESP_UTF8_RAW, ESP_UTF8_TEXT };

struct esp_utf8_stream {
    enum esp_utf8_mode mode;
    int held;        /* number of bytes in `pending`: 0..3 between calls */
    char pending[4]; /* (held) the well-formed beginning of a character */
};

/* The size that `out` needs for a push of `length` bytes, or for a flush (length 0). */
#define ESP_UTF8_ROOM(length) (3 * ((size_t)(length) + 3))

/* Takes `length` bytes and writes all characters that are complete. Returns the number of bytes
 * it wrote. */
size_t esp_utf8_stream_push(struct esp_utf8_stream *stream, const char *bytes, size_t length,
                            char *out);
/* Writes the bytes that were held back (as U+FFFD in text mode). Returns how many bytes it
 * wrote. The stream is then empty and may be used again. */
size_t esp_utf8_stream_flush(struct esp_utf8_stream *stream, char *out);

/* Classifies the first bytes of `bytes` (length >= 1). Returns n > 0 for a character of n
 * bytes, 0 for the well-formed beginning of a character that ends at `length`, and -n for an
 * ill-formed part of n bytes. */
int esp_utf8_sequence(const char *bytes, size_t length);

#endif
