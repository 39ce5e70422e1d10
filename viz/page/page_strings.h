/* web_strings.h - the texts of a page (web_page.h), each once, as JSON strings.
 *
 * Bytes become text as on a terminal (viz/safe.h): control characters, format characters and
 * invalid UTF-8 are replaced by visible characters. '<' is escaped, so no text can end the
 * element that holds it.
 */
#ifndef ESP_WEB_STRINGS_H
#define ESP_WEB_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/support/hash.h"

struct esp_web_strings {
    struct esp_hash_key key; /* from esp_hash_key(); all else zero: empty */
    char *bytes;             /* (length) the JSON strings, concatenated */
    size_t length, capacity;
    struct esp_web_string {
        size_t start, length;
    } * string; /* (count) */
    int count, string_capacity;
    int *table; /* (table_size) index of a string plus 1, or 0; hashed by its JSON */
    size_t table_size;
    bool failed; /* out of memory; nothing more is added */
};

/* The index of a text; a new text is added. `flags`: of safe.h; 0 keeps newlines and tabs. */
int esp_web_strings_add(struct esp_web_strings *strings, const char *bytes, size_t length,
                        int flags);
void esp_web_strings_free(struct esp_web_strings *strings);

#endif
