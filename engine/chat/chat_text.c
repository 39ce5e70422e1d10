/* chat_text.c - what formats read templates and write text with; see chat_format.h. */
#include <stdlib.h>
#include <time.h>

#include "engine/chat/chat_format.h"

/* ------------------------------------------------------------------ templates */

bool esp_chat_has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

char *esp_chat_between(const char *text, const char *before, const char *after)
{
    for (const char *at = strstr(text, before); at; at = strstr(at, before)) {
        at += strlen(before);
        const size_t length = strcspn(at, "'\"{}");
        const char *end = strstr(at, after);
        if (end && (size_t)(end - at) <= length)
            return strndup(at, (size_t)(end - at));
    }
    return NULL;
}

/* ------------------------------------------------------------------ text */

static void append(struct esp_chat_text *out, const char *text, size_t length)
{
    if (out->failed || length > INT32_MAX - 1 - out->length) {
        out->failed = true;
        return;
    }
    const size_t needed = out->length + length + 1;
    if (needed > out->capacity) {
        char *grown = realloc(out->bytes, 2 * needed);
        if (!grown) {
            out->failed = true;
            return;
        }
        out->bytes = grown;
        out->capacity = 2 * needed;
    }
    memcpy(out->bytes + out->length, text, length);
    out->length += length;
    out->bytes[out->length] = '\0';
}

void esp_chat_put(struct esp_chat_text *out, const char *text)
{
    append(out, text, strlen(text));
}

void esp_chat_say(struct esp_chat_text *out, const char *text, size_t length)
{
    const size_t start = out->length;
    append(out, text, length);
    if (!out->failed && length > 0 &&
        !esp_spans_add(&out->said, (int32_t)start, (int32_t)out->length, 0))
        out->failed = true;
}

void esp_chat_text_free(struct esp_chat_text *text)
{
    free(text->bytes);
    esp_spans_free(&text->said);
    *text = (struct esp_chat_text){.bytes = NULL};
}

/* Bytes of the white space at the start of a text, by str.isspace() of Python; 0: none. */
static size_t space_at(const char *text, size_t length)
{
    static const char *const wide[] = {"\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80",
                                       "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF",
                                       "\xE2\x81\x9F", "\xE3\x80\x80"};
    const unsigned char first = length > 0 ? (unsigned char)*text : 'x';
    if (first == ' ' || (first >= '\t' && first <= '\r') || (first >= 0x1C && first <= 0x1F))
        return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (length >= strlen(wide[i]) && memcmp(text, wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    /* U+2000 to U+200A */
    const bool quad = length >= 3 && memcmp(text, "\xE2\x80", 2) == 0 &&
                      (unsigned char)text[2] >= 0x80 && (unsigned char)text[2] <= 0x8A;
    return quad ? 3 : 0;
}

void esp_chat_strip(const char **text, size_t *length)
{
    size_t n;
    while ((n = space_at(*text, *length)) > 0) {
        *text += n;
        *length -= n;
    }
    while (*length > 0) {
        size_t start = *length - 1;
        while (start > 0 && ((*text)[start] & 0xC0) == 0x80)
            start--;
        if (space_at(*text + start, *length - start) != *length - start)
            break;
        *length = start;
    }
}

void esp_chat_skip(const char **text, size_t *length, const char *mark)
{
    const size_t size = strlen(mark);
    for (size_t i = *length; i >= size; i--)
        if (memcmp(*text + i - size, mark, size) == 0) {
            *text += i;
            *length -= i;
            return;
        }
}

void esp_chat_date(char *text, size_t size, bool in_words)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t now = time(NULL);
    struct tm day = {.tm_mday = 1};
    localtime_r(&now, &day);
    if (in_words)
        snprintf(text, size, "%02d %s %d", day.tm_mday, months[day.tm_mon], 1900 + day.tm_year);
    else
        snprintf(text, size, "%d-%02d-%02d", 1900 + day.tm_year, day.tm_mon + 1, day.tm_mday);
}
