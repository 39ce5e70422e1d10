/* byte_size.h - a number of bytes as people write it: 600M, 1.5G. */
#ifndef ESP_BYTE_SIZE_H
#define ESP_BYTE_SIZE_H

#include <stddef.h>

/* Reads a number above 0 with K, M, G or T behind it, which stand for 2^10, 2^20, 2^30 and
 * 2^40; "0" is 0, no limit. `name` is for the sentence. ESP_E_ARGUMENT: it is none. */
int esp_byte_size_parse(size_t *bytes, const char *name, const char *text, char *err,
                        size_t errlen);
/* Writes "600M": a whole number of the largest unit, or "0". */
void esp_byte_size_text(size_t bytes, char *text, size_t size);

#endif
