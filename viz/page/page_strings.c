/* page_strings.c - stores JSON strings in a table; see page_strings.h. */
#include "viz/page/page_strings.h"

#include <stdlib.h>
#include <string.h>

#include "viz/safe.h"

/* A value in the map `index` has the position of a string in its low PLACE_BITS bits. The
 * higher bits have the index of the string. */
enum { PLACE_BITS = 36 };

static void put(struct esp_page_strings *s, const char *bytes, size_t length)
{
    if (s->length + length > s->capacity) {
        const size_t capacity = 2 * (s->length + length) + 4096;
        char *more = realloc(s->bytes, capacity);
        s->failed = s->failed || !more;
        s->bytes = more ? more : s->bytes;
        s->capacity = more ? capacity : s->capacity;
    }
    if (s->failed)
        return;
    memcpy(s->bytes + s->length, bytes, length);
    s->length += length;
}

static void put_unit(struct esp_page_strings *s, const char *text)
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

static void put_json(struct esp_page_strings *s, const char *bytes, size_t length, int flags)
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
    put(s, "\",\n", 3);
}

/* Appends the string. If the table already has this string, removes the new copy again. */
int esp_page_strings_add(struct esp_page_strings *s, const char *bytes, size_t length,
                         int flags)
{
    const size_t start = s->length;
    put_json(s, bytes, length, flags);
    if (s->failed)
        return 0;
    const size_t size = s->length - start;
    const uint64_t hash = esp_hash(esp_hash_key(), s->bytes + start, size) >> 1;
    const uint64_t known = esp_int_map_get(&s->index, hash);
    const size_t place = (size_t)(known & ((UINT64_C(1) << PLACE_BITS) - 1));
    if (known != ESP_INT_MAP_NONE && place + size <= start &&
        memcmp(s->bytes + place, s->bytes + start, size) == 0) {
        s->length = start;
        return (int)(known >> PLACE_BITS);
    }
    s->failed = !esp_int_map_put(&s->index, hash, (uint64_t)s->count << PLACE_BITS | start);
    return s->count++;
}

void esp_page_strings_free(struct esp_page_strings *s)
{
    free(s->bytes);
    esp_int_map_free(&s->index);
}
