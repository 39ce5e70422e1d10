/* page_strings.h - stores the texts of a page (page_writer.h) as JSON strings, each once.
 *
 * Bytes become text as on a terminal (viz/safe.h): control characters, format characters and
 * invalid UTF-8 are replaced by visible characters. '<' is escaped, so no text can end the
 * HTML element that contains it.
 */
#ifndef ESP_PAGE_STRINGS_H
#define ESP_PAGE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/support/int_map.h"

/* A zero-initialised struct is empty. */
struct esp_page_strings {
    char *bytes; /* (length) the JSON strings, each followed by a comma and a newline */
    size_t length, capacity;
    int count;
    struct esp_int_map index; /* maps the hash of a JSON string to its index and position */
    bool failed;              /* true if memory ran out; then nothing more is added */
};

/* Returns the index of a text, after adding the text if it is new. `flags`: ESP_SAFE_* of
 * safe.h; 0 keeps newlines and tabs. */
int esp_page_strings_add(struct esp_page_strings *strings, const char *bytes, size_t length,
                         int flags);
void esp_page_strings_free(struct esp_page_strings *strings);

#endif
