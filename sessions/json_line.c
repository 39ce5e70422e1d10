/* json_line.c - writes members, numbers and strings of one line of JSON; see json_line.h. */
#include "sessions/json_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { FIRST_CAPACITY = 4096, NUMBER = 32 /* maximum number of characters in a number */ };

/* Makes room for `more` bytes at the end of the line. Returns the address of this room, or NULL
 * if there is no memory. */
static char *room(struct esp_line *line, size_t more)
{
    if (line->failed)
        return NULL;
    if (line->length + more > line->capacity) {
        size_t capacity = 2 * (line->length + more);
        capacity = capacity < FIRST_CAPACITY ? FIRST_CAPACITY : capacity;
        char *grown = realloc(line->text, capacity);
        if (!grown) {
            line->failed = true;
            return NULL;
        }
        line->text = grown;
        line->capacity = capacity;
    }
    return line->text + line->length;
}

static void put(struct esp_line *line, const char *bytes, size_t length)
{
    char *to = room(line, length);
    if (!to)
        return;
    memcpy(to, bytes, length);
    line->length += length;
}

static void put_text(struct esp_line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Writes the comma and the name before a value. All names are constants of this program, so
 * they need no escapes. */
static void put_name(struct esp_line *line, const char *name)
{
    if (line->comma)
        put(line, ",", 1);
    line->comma = true;
    if (!name)
        return;
    put(line, "\"", 1);
    put_text(line, name);
    put(line, "\":", 2);
}

void esp_line_open(struct esp_line *line, const char *name, char bracket)
{
    put_name(line, name);
    put(line, &bracket, 1);
    line->comma = false;
}

void esp_line_close(struct esp_line *line, char bracket)
{
    put(line, &bracket, 1);
    line->comma = true;
}

static void put_number(struct esp_line *line, const char *name, const char *text)
{
    put_name(line, name);
    put_text(line, text);
}

/* Writes the decimal digits of `value`, at least `least` of them, with leading zeros if needed.
 * The last digit is just before `end`. Returns the address of the first digit. */
static char *digits(char *end, uint64_t value, int least)
{
    while (value > 0 || least > 0) {
        *--end = (char)('0' + value % 10);
        value /= 10;
        least--;
    }
    return end;
}

void esp_line_integer(struct esp_line *line, const char *name, int64_t value)
{
    char text[NUMBER], *end = text + NUMBER - 1;
    *end = '\0';
    end = digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
    if (value < 0)
        *--end = '-';
    put_number(line, name, end);
}

/* Writes the decimal number m / 10^places without trailing zeros. */
static void put_fraction(struct esp_line *line, const char *name, bool negative, uint64_t m,
                         int places)
{
    char text[NUMBER], *end = text + NUMBER - 1;
    for (; places > 0 && m % 10 == 0; places--)
        m /= 10;
    *end = '\0';
    if (places > 0) {
        for (int i = 0; i < places; i++, m /= 10)
            *--end = (char)('0' + m % 10);
        *--end = '.';
    }
    end = digits(end, m, 1);
    if (negative)
        *--end = '-';
    put_number(line, name, end);
}

/* Writes the shortest decimal that gives this float again when it is read. The decimal is
 * m / 10^k with m below 2^53 and k below 23. Therefore one division gives the same rounded
 * value as reading the decimal. Returns false if there is no such decimal. printf() would take
 * several times as long, which is too slow because an iteration has hundreds of numbers. */
static bool put_short(struct esp_line *line, const char *name, float value)
{
    static const double power[] = {1,   1e1, 1e2, 1e3,  1e4,  1e5,  1e6,
                                   1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
    const double size = fabs((double)value);
    int leading = 4; /* decimal place of the first digit that is not 0 */
    if (!(size >= 1e-4 && size < 10))
        return false;
    while (leading > 0 && size * power[leading - 1] >= 1)
        leading--;
    for (int k = leading + 5; k <= leading + 8; k++) {
        const uint64_t m = (uint64_t)(size * power[k] + 0.5);
        if ((float)((double)m / power[k]) != (float)size)
            continue;
        put_fraction(line, name, value < 0, m, k);
        return true;
    }
    return false;
}

/* Nine digits identify every float. */
void esp_line_float(struct esp_line *line, const char *name, float value)
{
    char text[NUMBER];
    if (!isfinite(value) || put_short(line, name, value))
        return;
    snprintf(text, sizeof text, "%.9g", (double)value);
    put_number(line, name, text);
}

/* Writes a double that is a decimal with at most nine places. The decimal is m / 10^9 with m
 * below 2^53, so one division gives the same rounded value as reading the decimal. Times in
 * nanoseconds and most values that people choose are such decimals. Returns false for other
 * values. */
static bool put_decimal(struct esp_line *line, const char *name, double value)
{
    const double size = fabs(value);
    if (!(size < 9e6) || (signbit(value) && value == 0))
        return false;
    const uint64_t m = (uint64_t)(size * 1e9 + 0.5);
    if ((double)m / 1e9 != size)
        return false;
    put_fraction(line, name, value < 0, m, 9);
    return true;
}

/* Seventeen digits identify every double. Fifteen digits are enough for most values that people
 * choose. */
void esp_line_double(struct esp_line *line, const char *name, double value)
{
    char text[NUMBER];
    if (!isfinite(value) || put_decimal(line, name, value))
        return;
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    put_number(line, name, text);
}

void esp_line_flag(struct esp_line *line, const char *name, bool value)
{
    put_name(line, name);
    put_text(line, value ? "true" : "false");
}

/* Returns whether the character controls a terminal. Such characters are C0, DEL, C1,
 * bidirectional controls and line separators. */
static bool is_control(utf8proc_int32_t c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* Writes one character, which may be NUL. A reader that uses C strings loses the characters
 * after a NUL. */
static void put_character(struct esp_line *line, const char *bytes, size_t length,
                          utf8proc_int32_t c)
{
    char escape[16];
    if ((c >= 0x20 && c < 0x7f) || !is_control(c)) {
        if (*bytes == '"' || *bytes == '\\')
            put(line, "\\", 1);
        put(line, bytes, length);
        return;
    }
    if (*bytes == '\n' || *bytes == '\t')
        snprintf(escape, sizeof escape, *bytes == '\n' ? "\\n" : "\\t");
    else if (c < 0x10000)
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
    else
        snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                 0xd800 + ((unsigned)(c - 0x10000) >> 10), 0xdc00 + ((unsigned)c & 0x3ff));
    put_text(line, escape);
}

bool esp_line_string(struct esp_line *line, const char *name, const char *bytes, size_t length)
{
    bool exact = true;
    put_name(line, name);
    put(line, "\"", 1);
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t c;
        size_t left = length - at < 4 ? length - at : 4;
        utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)bytes + at, (utf8proc_ssize_t)left, &c);
        if (n < 1)
            put(line, "\xef\xbf\xbd", 3);
        else
            put_character(line, bytes + at, (size_t)n, c);
        exact = exact && n > 0 && c != 0;
        at += n > 0 ? (size_t)n : 1;
    }
    put(line, "\"", 1);
    return exact;
}

void esp_line_hex(struct esp_line *line, const char *name, const char *bytes, size_t length)
{
    put_name(line, name);
    put(line, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)bytes[i]);
        put(line, digits, 2);
    }
    put(line, "\"", 1);
}

void esp_line_newline(struct esp_line *line)
{
    put(line, "\n", 1);
    line->comma = false;
}

void esp_line_free(struct esp_line *line)
{
    free(line->text);
    *line = (struct esp_line){.length = 0};
}
