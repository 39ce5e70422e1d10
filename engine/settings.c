/* settings.c - parses, prints and checks values of settings by their kind in the table of
 * espalier_settings.h.
 *
 * No code here is for a single setting, so a new line of the table needs no change.
 */
#include "engine/espalier_settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/params.h"
#include "kernels/status.h"

enum kind { KIND_real, KIND_share, KIND_whole, KIND_seed, KIND_choice, KIND_flag };

static const struct line {
    enum kind kind;
    size_t offset; /* of the field */
    struct esp_value_info info;
} table[ESP_VALUES] = {
#define X(kind, field, name, minimum, maximum, value, values, help)                            \
    {KIND_##kind,                                                                              \
     offsetof(struct esp_session_values, field),                                               \
     {name, #kind, values, help, minimum, maximum, value}},
    ESP_SESSION_SETTINGS(X)
#undef X
};

bool esp_value_info(int index, struct esp_value_info *info)
{
    if (index < 0 || index >= ESP_VALUES)
        return false;
    *info = table[index].info;
    return true;
}

int esp_value_find(const char *name)
{
    for (int i = 0; i < ESP_VALUES; i++)
        if (strcmp(table[i].info.name, name) == 0)
            return i;
    return -1;
}

/* ------------------------------------------------------------------ a number of any kind */

/* All kinds but seed, which a double cannot hold. */
static double number_of(const struct esp_session_values *values, const struct line *line)
{
    const void *at = (const char *)values + line->offset;
    switch (line->kind) {
    case KIND_real:
    case KIND_share:
        return *(const double *)at;
    case KIND_flag:
        return *(const bool *)at;
    default:
        return *(const int *)at;
    }
}

static void put_number(struct esp_session_values *values, const struct line *line,
                       double number)
{
    void *at = (char *)values + line->offset;
    switch (line->kind) {
    case KIND_real:
    case KIND_share:
        *(double *)at = number;
        break;
    case KIND_flag:
        *(bool *)at = number != 0;
        break;
    default:
        *(int *)at = (int)number;
        break;
    }
}

/* ------------------------------------------------------------------ words */

/* Is there a number among the words? It is written in capitals. */
static bool has_number(const struct line *line)
{
    return strstr(line->info.values, "NUMBER") != NULL;
}

/* The word with this index: its start and its length, 0 if there is none. NUMBER is no word. */
static size_t word_at(const struct line *line, int index, const char **word)
{
    const char *at = line->info.values;
    for (int i = 0; i < index && *at; i++) {
        at += strcspn(at, "|");
        at += *at == '|';
    }
    *word = at;
    return strncmp(at, "NUMBER", 6) == 0 ? 0 : strcspn(at, "|");
}

/* The value of the word with this index. */
static double number_of_word(const struct line *line, int index)
{
    if (line->kind == KIND_flag)
        return index == 0;
    return line->kind == KIND_choice ? index : -index;
}

/* "auto, off or " for a sentence; without a number "bfs, dfs or hpd". */
static void list_words(const struct line *line, char *text, size_t size)
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

static int refuse(const struct line *line, const char *called, const char *text, char *err,
                  size_t errlen)
{
    const struct esp_value_info *info = &line->info;
    const char *whole = line->kind == KIND_whole ? "whole " : "";
    char words[128];
    list_words(line, words, sizeof words);
    if (line->kind == KIND_seed)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s takes a whole number from 0 to 2^64 - 1, not '%.80s'", called,
                        text);
    if (!has_number(line))
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "%s takes %s, not '%.80s'", called, words,
                        text);
    if (line->kind == KIND_share)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "%s takes a number above %g, up to %g, not '%.80s'", called,
                        info->minimum, info->maximum, text);
    return esp_fail(err, errlen, ESP_E_ARGUMENT,
                    "%s takes %sa %snumber from %.10g to %.10g, not '%.80s'", called, words,
                    whole, info->minimum, info->maximum, text);
}

static bool is_in_range(const struct line *line, double number)
{
    const struct esp_value_info *info = &line->info;
    if (line->kind == KIND_whole && number != floor(number))
        return false;
    return number <= info->maximum &&
           (line->kind == KIND_share ? number > info->minimum : number >= info->minimum);
}

static bool read_word(const struct line *line, const char *text, double *number)
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

int esp_value_parse(struct esp_session_values *values, int index, const char *called,
                    const char *text, char *err, size_t errlen)
{
    const struct line *line = &table[index];
    char *end;
    double number;
    if (line->kind == KIND_seed)
        return read_seed(text, (uint64_t *)((char *)values + line->offset))
                   ? (int)ESP_OK
                   : refuse(line, called, text, err, errlen);
    if (!read_word(line, text, &number)) {
        number = strtod(text, &end);
        if (!has_number(line) || end == text || *end || !is_in_range(line, number))
            return refuse(line, called, text, err, errlen);
    }
    put_number(values, line, number);
    return ESP_OK;
}

void esp_value_print(const struct esp_session_values *values, int index, char *text,
                     size_t size)
{
    const struct line *line = &table[index];
    const char *word;
    size_t length;
    if (line->kind == KIND_seed) {
        const uint64_t *seed = (const uint64_t *)((const char *)values + line->offset);
        snprintf(text, size, "%llu", (unsigned long long)*seed);
        return;
    }
    const double number = number_of(values, line);
    for (int i = 0; (length = word_at(line, i, &word)) > 0; i++) {
        if (number_of_word(line, i) != number)
            continue;
        snprintf(text, size, "%.*s", (int)length, word);
        return;
    }
    esp_param_number(number, text, size);
}

/* ------------------------------------------------------------------ values as they are given
 */

static bool is_word(const struct line *line, double number)
{
    const char *word;
    for (int i = 0; word_at(line, i, &word) > 0; i++)
        if (number_of_word(line, i) == number)
            return true;
    return false;
}

int esp_values_check(struct esp_session_values *values, char *err, size_t errlen)
{
    for (int i = 0; i < ESP_VALUES; i++) {
        const struct line *line = &table[i];
        char text[32];
        if (line->kind == KIND_seed || is_word(line, number_of(values, line)))
            continue;
        if (has_number(line) && is_in_range(line, number_of(values, line)))
            continue;
        if (number_of(values, line) != 0) {
            snprintf(text, sizeof text, "%g", number_of(values, line));
            return refuse(line, line->info.name, text, err, errlen);
        }
        put_number(values, line, line->info.value);
    }
    return ESP_OK;
}
