/* utf8_stream.c - see utf8_stream.h.
 *
 * Bytes pass through `pending` one at a time, so it does not matter where tokens end.
 * Invariant between bytes: `pending` is empty or the beginning of a character, which the next
 * byte may complete.
 */
#include "engine/support/utf8_stream.h"

#include <string.h>

int esp_utf8_sequence(const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return -1;
    int size = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    /* The second byte's range excludes overlong forms, surrogates and code points above
     * U+10FFFF (Unicode standard, table 3-7). */
    unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    for (int i = 1; i < size; i++) {
        if ((size_t)i == length)
            return 0;
        if (s[i] < low || s[i] > high)
            return -i;
        low = 0x80;
        high = 0xBF;
    }
    return size;
}

static size_t put_ill_formed(const struct esp_utf8_stream *stream, int count, char *out)
{
    if (stream->mode == ESP_UTF8_TEXT) {
        memcpy(out, "\xEF\xBF\xBD", 3);
        return 3;
    }
    memcpy(out, stream->pending, (size_t)count);
    return (size_t)count;
}

size_t esp_utf8_stream_push(struct esp_utf8_stream *stream, const char *bytes, size_t length,
                            char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        stream->pending[stream->held++] = bytes[i];
        int n = esp_utf8_sequence(stream->pending, (size_t)stream->held);
        if (n < 0) {
            written += put_ill_formed(stream, -n, out + written);
            stream->held += n;
            if (stream->held == 0)
                continue;
            /* The byte that broke the sequence starts a new one. It is the only byte that is
             * left in `pending`. */
            stream->pending[0] = bytes[i];
            n = esp_utf8_sequence(stream->pending, 1);
            if (n < 0) {
                written += put_ill_formed(stream, 1, out + written);
                stream->held = 0;
            }
        }
        if (n > 0) {
            memcpy(out + written, stream->pending, (size_t)n);
            written += (size_t)n;
            stream->held = 0;
        }
    }
    return written;
}

size_t esp_utf8_stream_flush(struct esp_utf8_stream *stream, char *out)
{
    size_t written = stream->held > 0 ? put_ill_formed(stream, stream->held, out) : 0;
    stream->held = 0;
    return written;
}
