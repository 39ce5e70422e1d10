/* json_values.c - a recursive descent over one line; see json_values.h.
 *
 * The copy of the line ends with a NUL, so that a loop over digits or letters needs no end. A
 * string is written over itself, as it is never longer without its escapes.
 */
#include "json_values.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "espalier.h"

struct parser {
    struct esp_values *json;
    char *at, *end;
    int depth; /* brackets that may still be opened */
    int status;
};

static int fail(struct parser *p, int status)
{
    p->status = status;
    return status;
}

static void skip_blanks(struct parser *p)
{
    while (p->at < p->end && (unsigned char)*p->at <= ' ')
        p->at++;
}

/* Takes a character if it comes next. */
static bool takes(struct parser *p, char c)
{
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* Room for one more value; NULL if there is no memory. */
static struct esp_value *add(struct parser *p, enum esp_value_kind kind, const char *name)
{
    struct esp_values *json = p->json;
    if (json->count == json->capacity) {
        size_t capacity = json->capacity ? 2 * json->capacity : 256;
        struct esp_value *grown = realloc(json->values, capacity * sizeof *grown);
        if (!grown) {
            fail(p, ESP_E_MEMORY);
            return NULL;
        }
        json->values = grown;
        json->capacity = capacity;
    }
    struct esp_value *value = &json->values[json->count++];
    *value = (struct esp_value){.kind = kind, .span = 1, .name = name};
    return value;
}

/* ------------------------------------------------------------------ numbers */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal m * 10^e. Both m below 2^53 and powers of ten up to 22 are exact, so that one
 * multiplication or division rounds as strtod() does, which takes several times as long. */
struct decimal {
    uint64_t m;
    int e;
    bool exact;
};

static const uint64_t MOST = (uint64_t)1 << 53;

/* Takes digits; `e`: what each of them changes in the exponent. At least one must be there. */
static bool read_digits(struct parser *p, struct decimal *d, int e)
{
    const char *start = p->at;
    for (; is_digit(*p->at); p->at++) {
        d->m = 10 * d->m + (uint64_t)(*p->at - '0');
        d->e += e;
        d->exact = d->exact && d->m < MOST;
    }
    return p->at > start;
}

static bool read_exponent(struct parser *p, struct decimal *d)
{
    enum { LARGE = 1000 };
    int e = 0;
    bool negative = takes(p, '-');
    if (!negative)
        takes(p, '+');
    if (!is_digit(*p->at))
        return false;
    for (; is_digit(*p->at); p->at++)
        e = e < LARGE ? 10 * e + (*p->at - '0') : e;
    d->e += negative ? -e : e;
    return true;
}

static int read_number(struct parser *p, const char *name)
{
    static const double power[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *start = p->at;
    bool negative = takes(p, '-'), zero = *p->at == '0';
    struct decimal d = {.exact = true};
    struct esp_value *value = add(p, ESP_VALUE_NUMBER, name);
    if (!value)
        return p->status;
    const char *first = p->at;
    if (!read_digits(p, &d, 0) || (zero && p->at > first + 1))
        return fail(p, ESP_E_FORMAT);
    if (takes(p, '.') && !read_digits(p, &d, -1))
        return fail(p, ESP_E_FORMAT);
    if ((takes(p, 'e') || takes(p, 'E')) && !read_exponent(p, &d))
        return fail(p, ESP_E_FORMAT);
    double size = (double)d.m;
    if (!d.exact || d.e < -22 || d.e > 22)
        value->number = strtod(start, NULL);
    else
        value->number =
            (negative ? -1 : 1) * (d.e < 0 ? size / power[-d.e] : size * power[d.e]);
    return ESP_OK;
}

/* ------------------------------------------------------------------ strings */

static int hex_digit(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four digits behind \u; -1 if they are none. */
static int32_t read_unit(struct parser *p)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int digit = hex_digit(*p->at);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* The character of \uXXXX, or of two of them that are a surrogate pair; -1 if it is none. */
static int32_t read_character(struct parser *p)
{
    int32_t first = read_unit(p), second;
    if (first < 0xd800 || first > 0xdfff)
        return first;
    if (first > 0xdbff || !takes(p, '\\') || !takes(p, 'u'))
        return -1;
    second = read_unit(p);
    if (second < 0xdc00 || second > 0xdfff)
        return -1;
    return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/* Replaces the escape behind a backslash; returns where the text goes on, or NULL. */
static char *read_escape(struct parser *p, char *to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (takes(p, 'u')) {
        int32_t c = read_character(p);
        return c < 0 ? NULL : to + utf8proc_encode_char(c, (utf8proc_uint8_t *)to);
    }
    const char *letter = *p->at ? strchr(letters, *p->at) : NULL;
    if (!letter)
        return NULL;
    p->at++;
    *to = meanings[letter - letters];
    return to + 1;
}

/* A string, from its first quotation mark on; NULL if it is none. */
static char *read_string(struct parser *p)
{
    if (!takes(p, '"'))
        return NULL;
    char *start = p->at, *to = start;
    for (;;) {
        while (p->at < p->end && *p->at != '"' && *p->at != '\\')
            *to++ = *p->at++;
        if (takes(p, '"'))
            break;
        if (!takes(p, '\\') || !(to = read_escape(p, to)))
            return NULL;
    }
    *to = '\0';
    return start;
}

/* ------------------------------------------------------------------ values */

static int read_value(struct parser *p, const char *name);

static int read_list(struct parser *p, const char *name)
{
    const bool object = *p->at++ == '{';
    const char close = object ? '}' : ']';
    const size_t index = p->json->count;
    if (p->depth-- == 0)
        return fail(p, ESP_E_FORMAT);
    if (!add(p, object ? ESP_VALUE_OBJECT : ESP_VALUE_ARRAY, name))
        return p->status;
    skip_blanks(p);
    for (bool first = true; !takes(p, close); first = false) {
        const char *member = NULL;
        if (!first && !takes(p, ','))
            return fail(p, ESP_E_FORMAT);
        if (object) {
            skip_blanks(p);
            member = read_string(p);
            skip_blanks(p);
            if (!member || !takes(p, ':'))
                return fail(p, ESP_E_FORMAT);
        }
        if (read_value(p, member) < 0)
            return p->status;
        skip_blanks(p);
    }
    p->json->values[index].span = (uint32_t)(p->json->count - index);
    p->depth++;
    return ESP_OK;
}

static int read_text(struct parser *p, const char *name)
{
    struct esp_value *value = add(p, ESP_VALUE_STRING, name);
    if (value && !(value->text = read_string(p)))
        fail(p, ESP_E_FORMAT);
    return p->status;
}

static int read_word(struct parser *p, const char *name)
{
    static const struct {
        const char *word;
        enum esp_value_kind kind;
    } words[] = {
        {"null", ESP_VALUE_NULL}, {"false", ESP_VALUE_FALSE}, {"true", ESP_VALUE_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if (strncmp(p->at, words[i].word, length) != 0)
            continue;
        p->at += length;
        return add(p, words[i].kind, name) ? ESP_OK : p->status;
    }
    return fail(p, ESP_E_FORMAT);
}

static int read_value(struct parser *p, const char *name)
{
    skip_blanks(p);
    char c = *p->at;
    if (c == '{' || c == '[')
        return read_list(p, name);
    if (c == '"')
        return read_text(p, name);
    if (c == '-' || is_digit(c))
        return read_number(p, name);
    return read_word(p, name);
}

int esp_values_read(struct esp_values *json, const char *line, size_t length, int depth)
{
    if (length + 1 > json->room) {
        free(json->copy);
        json->room = length + 1;
        json->copy = malloc(json->room);
    }
    if (!json->copy) {
        json->room = 0;
        return ESP_E_MEMORY;
    }
    memcpy(json->copy, line, length);
    json->copy[length] = '\0';
    json->count = 0;
    struct parser p = {json, json->copy, json->copy + length, depth, ESP_OK};
    if (read_value(&p, NULL) < 0)
        return p.status;
    skip_blanks(&p);
    return p.at == p.end ? ESP_OK : ESP_E_FORMAT;
}

void esp_values_free(struct esp_values *json)
{
    free(json->values);
    free(json->copy);
    *json = (struct esp_values){.count = 0};
}

/* ------------------------------------------------------------------ looking things up */

const struct esp_value *esp_value_first(const struct esp_value *list)
{
    return list && list->span > 1 ? list + 1 : NULL;
}

const struct esp_value *esp_value_next(const struct esp_value *list,
                                       const struct esp_value *item)
{
    item += item->span;
    return item < list + list->span ? item : NULL;
}

const struct esp_value *esp_value_member(const struct esp_value *object, const char *name)
{
    const struct esp_value *item;
    if (!object || object->kind != ESP_VALUE_OBJECT)
        return NULL;
    for (item = esp_value_first(object); item; item = esp_value_next(object, item))
        if (item->name[0] == name[0] && strcmp(item->name, name) == 0)
            return item;
    return NULL;
}
