/* utf8_stream.c - tests that the bytes of tokens are joined to whole characters, and that no
 * character is lost or added. */
#include "engine/support/utf8_stream.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* Pushes `text` into a stream in steps of `step` bytes. Returns the whole output. */
static char *stream(enum esp_utf8_mode mode, const char *text, size_t length, size_t step,
                    size_t *written)
{
    struct esp_utf8_stream stream = {.mode = mode};
    char *out = malloc(ESP_UTF8_ROOM(length) + ESP_UTF8_ROOM(0));
    size_t n = 0;
    for (size_t at = 0; at < length; at += step) {
        size_t part = length - at < step ? length - at : step, before = n;
        n += esp_utf8_stream_push(&stream, text + at, part, out + n);
        CHECK(stream.held <= 3);
        CHECK(n - before <= ESP_UTF8_ROOM(part));
        for (size_t i = before; mode == ESP_UTF8_TEXT && i < n;) {
            int size = esp_utf8_sequence(out + i, n - i);
            CHECK(size > 0, "the stream returned half a character");
            i += (size_t)size;
        }
    }
    n += esp_utf8_stream_flush(&stream, out + n);
    CHECK(stream.held == 0);
    *written = n;
    return out;
}

TEST(stream_replaces_what_is_ill_formed)
{
    /* Examples from the Unicode standard, section 3.9, and a few more. Invalid bytes must be
     * replaced as Python replaces them. */
    static const char *const cases[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"caf\xC3\xA9 \xF0\x9F\x98\x80 \xE6\xBC\xA2",
         "caf\xC3\xA9 \xF0\x9F\x98\x80 \xE6\xBC\xA2"},
        {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "a???b?c??d"},
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A"},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A"},
        {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B"},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},
        {"\xE2\x82", "?"},
        {"\xF0\x9F\x98", "?"},
        {"\xC3\xC3\xA9", "?\xC3\xA9"},
        {"\xF4\x90\x80\x80", "????"},
        {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
        {"\xED\x9F\xBF\xEE\x80\x80", "\xED\x9F\xBF\xEE\x80\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[64];
        size_t want_length = 0;
        for (const char *c = cases[i][1]; *c; c++) {
            if (*c == '?')
                memcpy(want + want_length, "\xEF\xBF\xBD", 3);
            else
                want[want_length] = *c;
            want_length += *c == '?' ? 3 : 1;
        }
        for (size_t step = 1; step <= 5; step++) {
            size_t n, length = strlen(cases[i][0]);
            char *out = stream(ESP_UTF8_TEXT, cases[i][0], length, step, &n);
            CHECK(n == want_length && memcmp(out, want, n) == 0, "case %zu, step %zu", i, step);
            free(out);
            out = stream(ESP_UTF8_RAW, cases[i][0], length, step, &n);
            CHECK(n == length && memcmp(out, cases[i][0], n) == 0, "case %zu, step %zu", i,
                  step);
            free(out);
        }
    }
}

TEST(stream_holds_back_only_what_may_be_completed)
{
    struct esp_utf8_stream stream = {.mode = ESP_UTF8_RAW};
    char out[ESP_UTF8_ROOM(8)];
    CHECK(esp_utf8_stream_push(&stream, "a\xF0\x9F", 3, out) == 1 && stream.held == 2);
    CHECK(esp_utf8_stream_push(&stream, "\x98", 1, out) == 0 && stream.held == 3);
    CHECK(esp_utf8_stream_push(&stream, "\x80z", 2, out) == 5 && stream.held == 0);
    CHECK(memcmp(out, "\xF0\x9F\x98\x80z", 5) == 0);
    CHECK(esp_utf8_stream_push(&stream, "\xFF", 1, out) == 1 && stream.held == 0);
    CHECK(esp_utf8_stream_push(&stream, "\xE2", 1, out) == 0);
    CHECK(esp_utf8_stream_flush(&stream, out) == 1 && out[0] == '\xE2');
    CHECK(esp_utf8_stream_flush(&stream, out) == 0);
}
