/* search.h - finds a text in bytes.
 *
 * As in editors, case is ignored (for the letters a to z), unless the text to find contains a
 * capital letter. An empty text is never found.
 */
#ifndef ESP_SEARCH_H
#define ESP_SEARCH_H

#include <stddef.h>

/* Returns the index of the first match at or after `from`, or -1. */
long esp_search_forward(const char *bytes, size_t count, size_t from, const char *what);

#endif
