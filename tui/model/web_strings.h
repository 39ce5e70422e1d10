/* web_strings.h - the texts of a page (web_page.h), each once, as JSON strings.
 *
 * A text is what a terminal would show of its bytes (viz/safe.h): control characters, format
 * characters and bytes that are not UTF-8 are visible stand-ins. '<' is an escape, so that no
 * text can end the element of a page in which it stands.
 */
#ifndef ESP_WEB_STRINGS_H
#define ESP_WEB_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/support/hash.h"

struct esp_web_strings {
    struct esp_hash_key key; /* esp_hash_key(); the rest zeroed: empty */
    char *bytes;             /* (length) the JSON of all, one behind the other */
    size_t length, capacity;
    struct esp_web_string {
        size_t start, length;
    } * string; /* (count) */
    int count, string_capacity;
    int *table; /* (table_size) a string's index and 1, or 0; found by the hash of its JSON */
    size_t table_size;
    bool failed; /* no memory; nothing more is added */
};

/* The index of a text, which is added if it is not there yet. `flags` are those of safe.h; with
 * none of them, newlines and tabs stay what they are. */
int esp_web_strings_add(struct esp_web_strings *strings, const char *bytes, size_t length,
                        int flags);
void esp_web_strings_free(struct esp_web_strings *strings);

#endif
