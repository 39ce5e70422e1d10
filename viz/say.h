/* say.h - builds sentences from parts. */
#ifndef ESP_SAY_H
#define ESP_SAY_H

#include <stddef.h>

/* Returns the plural ending of a noun: "s", or "" if the count is 1. */
static inline const char *esp_plural(int count)
{
    return count == 1 ? "" : "s";
}

/* Appends to a sentence; truncates it at `size`. */
__attribute__((format(printf, 3, 4))) void esp_say(char *text, size_t size, const char *format,
                                                   ...);

#endif
