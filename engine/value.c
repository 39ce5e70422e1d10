/* value.c - reads, writes and checks one value at a time. A table gives the kind of each value.
 *
 * Nothing here depends on a particular setting, so a line can be added to a table without
 * changing this file.
 */
#include "engine/espalier_value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/params.h"
#include "kernels/status.h"

static void *field(const struct esp_value_info *line, const void *in)
{
    return (char *)in + line->offset;
}

const char **esp_value_text(const struct esp_value_info *line, void *in)
{
    return line->kind == ESP_KIND_text ? field(line, in) : NULL;
}

const char *esp_value_flag(const struct esp_value_info *line, char flag[ESP_FLAG_NAME])
{
    snprintf(flag, ESP_FLAG_NAME, "%s", line->name);
    for (char *c = flag; *c; c++)
        if (*c == '_')
            *c = '-';
    return flag;
}

/* ------------------------------------------------------------------ sizes in bytes */

static const char UNITS[] = "KMGT";

/* Reads a number above 0 followed by K, M, G or T (2^10, 2^20, 2^30, 2^40), or "0" (no
 * limit). */
static int parse_bytes(size_t *bytes, const char *name, const char *text, char *err,
                       size_t errlen)
{
    static const double limit = (double)(SIZE_MAX / 4);
    char *end;
    const double number = strtod(text, &end);
    const char *unit = *end ? strchr(UNITS, *end >= 'a' ? *end - 32 : *end) : NULL;
    double value = number;
    for (const char *u = UNITS; unit && u <= unit; u++)
        value *= 1024;
    const bool none = strcmp(text, "0") == 0;
    const bool good = *text >= '0' && *text <= '9' && unit && !end[1] && value >= 1 &&
                      value <= limit && !strpbrk(text, "xX");
    if (!none && !good)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s takes a size such as 600M or 1.5G, or 0 for no limit, not '%.40s'",
                        name, text);
    *bytes = none ? 0 : (size_t)value;
    return ESP_OK;
}

/* Writes a size such as "600M", in the largest unit that divides it, or "0". */
static void print_bytes(size_t bytes, char *text, size_t size)
{
    int unit = -1;
    while (bytes > 0 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, "%zu%.*s", bytes, unit < 0 ? 0 : 1, UNITS + (unit < 0 ? 0 : unit));
}

/* ------------------------------------------------------------------ a number of any kind */

/* Returns the value as a double. Do not call this for kinds that a double cannot store: seed,
 * size and text. */
static double number_of(const struct esp_value_info *line, const void *in)
{
    const void *at = field(line, in);
    switch (line->kind) {
    case ESP_KIND_real:
    case ESP_KIND_share:
        return *(const double *)at;
    case ESP_KIND_flag:
    case ESP_KIND_either:
        return *(const bool *)at;
    default:
        return *(const int *)at;
    }
}

static void put_number(const struct esp_value_info *line, void *in, double number)
{
    void *at = field(line, in);
    switch (line->kind) {
    case ESP_KIND_real:
    case ESP_KIND_share:
        *(double *)at = number;
        break;
    case ESP_KIND_flag:
    case ESP_KIND_either:
        *(bool *)at = number != 0;
        break;
    default:
        *(int *)at = (int)number;
        break;
    }
}

/* ------------------------------------------------------------------ words */

/* Returns whether a number may be given instead of a word. In this case, the list of words ends
 * with a placeholder in capitals, such as NUMBER. */
static bool has_number(const struct esp_value_info *line)
{
    const char *last = strrchr(line->values, '|');
    return isupper((unsigned char)(last ? last[1] : line->values[0]));
}

/* Finds the word with this index and returns its length, or 0 if there is none. A placeholder
 * such as NUMBER is not a word. */
static size_t word_at(const struct esp_value_info *line, int index, const char **word)
{
    const char *at = line->values;
    for (int i = 0; i < index && *at; i++) {
        at += strcspn(at, "|");
        at += *at == '|';
    }
    *word = at;
    return isupper((unsigned char)*at) ? 0 : strcspn(at, "|");
}

/* Returns the number that the word with this index means. */
static double number_of_word(const struct esp_value_info *line, int index)
{
    if (line->kind == ESP_KIND_flag)
        return index == 0;
    return line->kind == ESP_KIND_choice || line->kind == ESP_KIND_either ? index : -index;
}

/* Returns the index of the word that means this number, or -1. */
static int word_for(const struct esp_value_info *line, double number)
{
    const char *word;
    for (int i = 0; word_at(line, i, &word) > 0; i++)
        if (number_of_word(line, i) == number)
            return i;
    return -1;
}

/* Lists the words for a message, for example "bfs, dfs or hpd". If a number is also allowed,
 * the list ends with "or ", for example "auto, off or ", and the caller adds the number. */
static void list_words(const struct esp_value_info *line, char *text, size_t size)
{
    const char *word, *next;
    size_t used = 0, length;
    text[0] = '\0';
    for (int i = 0; (length = word_at(line, i, &word)) > 0 && used < size; i++) {
        const bool last = word_at(line, i + 1, &next) == 0;
        const bool last_but_one = !last && word_at(line, i + 2, &next) == 0;
        const char *between = (has_number(line) ? last : last_but_one) ? " or "
                              : last                                   ? ""
                                                                       : ", ";
        used +=
            (size_t)snprintf(text + used, size - used, "%.*s%s", (int)length, word, between);
    }
}

/* ------------------------------------------------------------------ text */

static int refuse(const struct esp_value_info *line, const char *called, const char *text,
                  char *err, size_t errlen)
{
    const char *whole = line->kind == ESP_KIND_whole ? "whole " : "";
    char words[128];
    list_words(line, words, sizeof words);
    if (line->kind == ESP_KIND_seed)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s takes a whole number from 0 to 2^64 - 1, not '%.80s'", called,
                        text);
    if (!has_number(line))
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s takes %s, not '%.80s'", called, words,
                        text);
    if (line->kind == ESP_KIND_share)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s takes a number above %g, up to %g, not '%.80s'", called,
                        line->minimum, line->maximum, text);
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "%s takes %sa %snumber from %.10g to %.10g, not '%.80s'", called, words,
                    whole, line->minimum, line->maximum, text);
}

static bool is_in_range(const struct esp_value_info *line, double number)
{
    if (line->kind == ESP_KIND_whole && number != floor(number))
        return false;
    return number <= line->maximum &&
           (line->kind == ESP_KIND_share ? number > line->minimum : number >= line->minimum);
}

static bool read_word(const struct esp_value_info *line, const char *text, double *number)
{
    const char *word;
    size_t length;
    for (int i = 0; (length = word_at(line, i, &word)) > 0; i++) {
        if (strlen(text) != length || strncmp(text, word, length) != 0)
            continue;
        *number = number_of_word(line, i);
        return true;
    }
    return false;
}

static bool read_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *end || errno || text[0] < '0' || text[0] > '9')
        return false;
    *seed = number;
    return true;
}

/* Returns the word that means NULL: "off" if the table lists it, otherwise "auto". */
static const char *none_word(const struct esp_value_info *line)
{
    return strncmp(line->values, "off|", 4) == 0 ? "off" : "auto";
}

static int read_text(const struct esp_value_info *line, const char *text, const char **value)
{
    const char *word = none_word(line);
    const size_t length = strlen(word);
    const bool named = strncmp(line->values, word, length) == 0 && line->values[length] == '|';
    *value = named && strcmp(text, word) == 0 ? NULL : text;
    return ESP_OK;
}

int esp_value_read(const struct esp_value_info *line, void *in, const char *called,
                   const char *text, char *err, size_t errlen)
{
    char *end;
    double number;
    if (line->kind == ESP_KIND_text)
        return read_text(line, text, field(line, in));
    if (line->kind == ESP_KIND_size)
        return parse_bytes(field(line, in), called, text, err, errlen);
    if (line->kind == ESP_KIND_seed)
        return read_seed(text, field(line, in)) ? (int)ESP_OK
                                                : refuse(line, called, text, err, errlen);
    if (!read_word(line, text, &number)) {
        number = strtod(text, &end);
        if (!has_number(line) || end == text || *end || !is_in_range(line, number))
            return refuse(line, called, text, err, errlen);
    }
    put_number(line, in, number);
    return ESP_OK;
}

static void write_number(const struct esp_value_info *line, double number, char *text,
                         size_t size)
{
    const char *word;
    const int index = word_for(line, number);
    if (index < 0) {
        esp_param_number(number, text, size);
        return;
    }
    const size_t length = word_at(line, index, &word);
    snprintf(text, size, "%.*s", (int)length, word);
}

void esp_value_write(const struct esp_value_info *line, const void *in, char *text, size_t size)
{
    const void *at = field(line, in);
    const char *own;
    switch (line->kind) {
    case ESP_KIND_text:
        own = *(const char *const *)at;
        snprintf(text, size, "%s", own ? own : none_word(line));
        break;
    case ESP_KIND_size:
        print_bytes(*(const size_t *)at, text, size);
        break;
    case ESP_KIND_seed:
        snprintf(text, size, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    default:
        write_number(line, number_of(line, in), text, size);
    }
}

/* ------------------------------------------------------------------ checks */

/* Returns whether all values of this kind are valid. */
static bool takes_all(const struct esp_value_info *line)
{
    return line->kind == ESP_KIND_seed || line->kind == ESP_KIND_size ||
           line->kind == ESP_KIND_text;
}

int esp_value_check(const struct esp_value_info *line, void *in, char *err, size_t errlen)
{
    char text[32];
    if (takes_all(line) || word_for(line, number_of(line, in)) >= 0 ||
        (has_number(line) && is_in_range(line, number_of(line, in))))
        return ESP_OK;
    if (number_of(line, in) != 0) {
        snprintf(text, sizeof text, "%g", number_of(line, in));
        return refuse(line, line->name, text, err, errlen);
    }
    put_number(line, in, line->value);
    return ESP_OK;
}
