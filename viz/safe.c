/* safe.c - writes visible stand-ins for unsafe characters; see safe.h. */
#include "viz/safe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { MOST_MARKS = 4 }; /* ncurses shows at most four combining marks in a cell */

static bool is_shown(utf8proc_int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    default:
        /* Fillers and the Mongolian vowel separator are invisible letters or marks. */
        return c != 0x115f && c != 0x1160 && c != 0x3164 && c != 0xffa0 && c != 0x180e &&
               c != 0x034f && c != 0x17b4 && c != 0x17b5 && !(c >= 0xe0100 && c <= 0xe01ef);
    }
}

static bool is_mark(utf8proc_int32_t c)
{
    return is_shown(c) && utf8proc_charwidth(c) == 0;
}

/* U+FE00..FE0F select a shape of the previous character. Terminals disagree on the width of
 * that shape, so these selectors are treated as part of the character and are not sent. */
static bool is_variation(utf8proc_int32_t c)
{
    return c >= 0xfe00 && c <= 0xfe0f;
}

static size_t stand_in(struct esp_safe_unit *shown, size_t taken, const char *text)
{
    strcpy(shown->text, text);
    shown->width = (int)strlen(text);
    shown->stand_in = true;
    return taken;
}

/* Writes a stand-in such as "<U+202E>": a prefix, and a number with at least `digits`
 * hexadecimal digits. */
static size_t number(struct esp_safe_unit *shown, size_t taken, const char *prefix, int digits,
                     unsigned value)
{
    char text[sizeof shown->text];
    char *at = stpcpy(text, prefix);
    while (digits < 8 && value >> 4 * digits)
        digits++;
    while (digits-- > 0)
        *at++ = "0123456789ABCDEF"[value >> 4 * digits & 15];
    strcpy(at, ">");
    return stand_in(shown, taken, text);
}

static size_t control(struct esp_safe_unit *shown, char c, int flags)
{
    const char *escape = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : NULL;
    const char caret[] = {'^', (char)(c ^ 0x40), '\0'};
    return stand_in(shown, 1, escape && (flags & ESP_SAFE_ESCAPED) ? escape : caret);
}

/* Appends the combining marks that follow; returns how many bytes they take. */
static size_t marks(const char *bytes, size_t length, struct esp_safe_unit *shown)
{
    size_t used = strlen(shown->text), taken = 0;
    for (int count = 0; taken < length;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)bytes + taken,
                                              (utf8proc_ssize_t)(length - taken), &c);
        if (n < 2 || (!is_variation(c) && !is_mark(c)))
            break;
        if (!is_variation(c)) {
            if (count == MOST_MARKS || used + (size_t)n >= sizeof shown->text)
                break;
            memcpy(shown->text + used, bytes + taken, (size_t)n);
            used += (size_t)n;
            count++;
        }
        taken += (size_t)n;
    }
    shown->text[used] = '\0';
    return taken;
}

size_t esp_safe_next(const char *bytes, size_t length, int flags, struct esp_safe_unit *shown)
{
    *shown = (struct esp_safe_unit){.width = 0};
    if (length == 0)
        return 0;
    unsigned char first = (unsigned char)*bytes;
    if (first < 0x20 || first == 0x7f)
        return control(shown, *bytes, flags);
    if (first == '\\' && (flags & ESP_SAFE_ESCAPED))
        return stand_in(shown, 1, "\\\\");
    if (first == '"' && (flags & ESP_SAFE_QUOTED) == ESP_SAFE_QUOTED)
        return stand_in(shown, 1, "\\\"");
    if (first < 0x80) {
        shown->text[0] = *bytes;
        shown->width = 1;
        if (length == 1 || (unsigned char)bytes[1] < 0x80)
            return 1;
        return 1 + (flags & ESP_SAFE_ASCII ? 0 : marks(bytes + 1, length - 1, shown));
    }
    utf8proc_int32_t c;
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)length, &c);
    if (n < 1)
        return number(shown, 1, "<", 2, first);
    if (!is_shown(c) || is_variation(c) || (flags & ESP_SAFE_ASCII))
        return number(shown, (size_t)n, "<U+", 4, (unsigned)c);
    shown->width = utf8proc_charwidth(c);
    if (shown->width == 0) {
        memcpy(shown->text, "\u25cc", 3);
        memcpy(shown->text + 3, bytes, (size_t)n);
        shown->width = 1;
        shown->stand_in = true;
        return (size_t)n;
    }
    if (shown->width > 2)
        shown->width = 2;
    memcpy(shown->text, bytes, (size_t)n);
    return (size_t)n + marks(bytes + n, length - (size_t)n, shown);
}

int esp_safe_width(const char *bytes, size_t length, int flags)
{
    int width = 0;
    struct esp_safe_unit shown;
    for (size_t i = 0; i < length;) {
        i += esp_safe_next(bytes + i, length - i, flags, &shown);
        width += shown.width;
    }
    return width;
}

/* Writes text. If `lines` is true, newlines and tabs are written unchanged. */
static void write_units(FILE *file, const char *bytes, size_t length, bool lines)
{
    struct esp_safe_unit shown;
    for (size_t i = 0; i < length;) {
        if (lines && (bytes[i] == '\n' || bytes[i] == '\t')) {
            putc(bytes[i++], file);
        } else {
            i += esp_safe_next(bytes + i, length - i, 0, &shown);
            fputs(shown.text, file);
        }
    }
}

void esp_safe_write(FILE *file, const char *bytes, size_t length)
{
    write_units(file, bytes, length, true);
}

/* Formats the output twice. The second time, other bytes replace the newlines and tabs of the
 * format. If a newline or tab differs in the second result, it comes from the format. Otherwise
 * it comes from an argument. */
void esp_safe_print(FILE *file, const char *format, ...)
{
    char *marked = strdup(format), *text = NULL, *other = NULL;
    va_list args, again;
    for (char *c = marked; c && *c; c++)
        *c = *c == '\n' || *c == '\t' ? '\a' : *c;
    va_start(args, format);
    va_copy(again, args);
    int length = marked ? vasprintf(&text, format, args) : -1;
    const bool made = length >= 0 && vasprintf(&other, marked, again) == length;
    va_end(again);
    va_end(args);
    for (int i = 0, start = 0; made && i <= length; i++)
        if (i == length || text[i] != other[i]) {
            write_units(file, text + start, (size_t)(i - start), false);
            if (i < length)
                putc(text[i], file);
            start = i + 1;
        }
    if (length >= 0)
        free(text);
    if (made)
        free(other);
    free(marked);
}

void esp_complain(const char *format, ...)
{
    char sentence[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    fputs("espalier: ", stderr);
    write_units(stderr, sentence, strlen(sentence), false);
    fputc('\n', stderr);
}

/* ------------------------------------------------------------------ JSON */

static void put_escape(FILE *file, unsigned c)
{
    if (c >= 0x10000) {
        fprintf(file, "\\u%04x", 0xd800 + ((c - 0x10000) >> 10));
        c = 0xdc00 + ((c - 0x10000) & 0x3ff);
    }
    fprintf(file, "\\u%04x", c);
}

/* Writes one character of a string; returns how many bytes it takes. */
static size_t put_json(FILE *file, const char *json, size_t length)
{
    utf8proc_int32_t c;
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)json, (utf8proc_ssize_t)length, &c);
    if (n < 1) {
        fputs("\ufffd", file);
        return 1;
    }
    if (is_shown(c))
        fwrite(json, 1, (size_t)n, file);
    else
        put_escape(file, (unsigned)c);
    return (size_t)n;
}

void esp_safe_xml(FILE *file, const char *text, int flags)
{
    static const char marks[] = "&<>\"'";
    static const char *const names[] = {"amp", "lt", "gt", "quot", "#39"};
    struct esp_safe_unit shown;
    for (size_t left = strlen(text), taken; left > 0; text += taken, left -= taken) {
        taken = esp_safe_next(text, left, flags, &shown);
        for (const char *c = shown.text; *c; c++) {
            const char *mark = strchr(marks, *c);
            if (mark)
                fprintf(file, "&%s;", names[mark - marks]);
            else
                putc(*c, file);
        }
    }
}

void esp_safe_json(FILE *file, const char *json, size_t length)
{
    bool inside = false; /* inside a string */
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)json[i];
        if (inside && c == '\\' && i + 1 < length && json[i + 1] >= 0x20) {
            putc(c, file); /* an escape: the next character does not end the string */
            i += 1 + put_json(file, json + i + 1, length - i - 1);
        } else if (!inside && (c < 0x20 || c == 0x7f)) {
            putc(c == '\n' || c == '\t' ? c : ' ', file);
            i++;
        } else {
            inside = inside != (c == '"');
            i += put_json(file, json + i, length - i);
        }
    }
}
