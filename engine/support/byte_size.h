/* byte_size.h - sizes in bytes as people write them: 600M, 1.5G. */
#ifndef ESP_BYTE_SIZE_H
#define ESP_BYTE_SIZE_H

#include <stddef.h>

/* Parses a number above 0 followed by K, M, G or T (2^10, 2^20, 2^30, 2^40). "0" is 0, no
 * limit. `name` is used in the sentence. ESP_E_ARGUMENT: not a size. */
int esp_byte_size_parse(size_t *bytes, const char *name, const char *text, char *err,
                        size_t errlen);
/* Writes "600M": an integer of the largest unit that divides it, or "0". */
void esp_byte_size_text(size_t bytes, char *text, size_t size);

#endif
