/* say.h - sentences that are put together from parts. */
#ifndef ESP_SAY_H
#define ESP_SAY_H

#include <stddef.h>

/* Appends to a sentence, as far as there is room. */
__attribute__((format(printf, 3, 4))) void esp_say(char *text, size_t size, const char *format,
                                                   ...);

#endif
