/* search.h - finds a text in bytes.
 *
 * As in editors, the letters a to z match either case, unless the text to find has a capital.
 * An empty text is never found.
 */
#ifndef ESP_SEARCH_H
#define ESP_SEARCH_H

#include <stddef.h>

/* The first place at or after `from`, or -1. */
long esp_search_forward(const char *bytes, size_t count, size_t from, const char *what);

#endif
