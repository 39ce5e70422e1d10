/* web_strings.c - a table of JSON strings; see web_strings.h. */
#include "viz/page/page_strings.h"

#include <stdlib.h>
#include <string.h>

#include "viz/safe.h"

static void put(struct esp_web_strings *s, const char *bytes, size_t length)
{
    if (s->length + length > s->capacity) {
        const size_t capacity = 2 * (s->length + length) + 4096;
        char *more = realloc(s->bytes, capacity);
        s->failed = s->failed || !more;
        if (!more)
            return;
        s->bytes = more;
        s->capacity = capacity;
    }
    if (s->failed)
        return;
    memcpy(s->bytes + s->length, bytes, length);
    s->length += length;
}

static void put_unit(struct esp_web_strings *s, const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\') {
            put(s, "\\", 1);
            put(s, text, 1);
        } else if (*text == '<')
            put(s, "\\u003c", 6);
        else
            put(s, text, 1);
}

static void put_json(struct esp_web_strings *s, const char *bytes, size_t length, int flags)
{
    struct esp_safe_unit shown;
    put(s, "\"", 1);
    for (size_t i = 0; i < length;)
        if (!flags && (bytes[i] == '\n' || bytes[i] == '\t')) {
            put(s, bytes[i++] == '\n' ? "\\n" : "\\t", 2);
        } else {
            i += esp_safe_next(bytes + i, length - i, flags, &shown);
            put_unit(s, shown.text);
        }
    put(s, "\"", 1);
}

/* The slot of a string in the table: its own, or a free one. */
static size_t place_of(const struct esp_web_strings *s, const char *bytes, size_t length)
{
    const size_t mask = s->table_size - 1;
    size_t at = esp_hash(s->key, bytes, length) & mask;
    for (; s->table[at]; at = (at + 1) & mask) {
        const struct esp_web_string *other = &s->string[s->table[at] - 1];
        if (other->length == length && memcmp(s->bytes + other->start, bytes, length) == 0)
            break;
    }
    return at;
}

static bool grow_table(struct esp_web_strings *s)
{
    const size_t size = s->table_size ? 2 * s->table_size : 1024;
    int *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(s->table);
    s->table = table;
    s->table_size = size;
    for (int i = 0; i < s->count; i++)
        table[place_of(s, s->bytes + s->string[i].start, s->string[i].length)] = i + 1;
    return true;
}

static bool has_room(struct esp_web_strings *s)
{
    if (2 * ((size_t)s->count + 1) > s->table_size && !grow_table(s))
        return false;
    if (s->count < s->string_capacity)
        return true;
    const int capacity = s->string_capacity ? 2 * s->string_capacity : 512;
    struct esp_web_string *more = realloc(s->string, (size_t)capacity * sizeof *more);
    if (!more)
        return false;
    s->string = more;
    s->string_capacity = capacity;
    return true;
}

/* Appends the string, and takes it back if it already exists. */
int esp_web_strings_add(struct esp_web_strings *s, const char *bytes, size_t length, int flags)
{
    const size_t start = s->length;
    s->failed = s->failed || !has_room(s);
    if (!s->failed)
        put_json(s, bytes, length, flags);
    if (s->failed)
        return 0;
    const size_t at = place_of(s, s->bytes + start, s->length - start);
    if (s->table[at]) {
        s->length = start;
        return s->table[at] - 1;
    }
    s->string[s->count] = (struct esp_web_string){start, s->length - start};
    s->table[at] = ++s->count;
    return s->count - 1;
}

void esp_web_strings_free(struct esp_web_strings *s)
{
    free(s->bytes);
    free(s->string);
    free(s->table);
}
