/* normalize.h - the `normalizer` of a tokenizer.json: none, or Unicode normalization form C. */
#ifndef ESP_NORMALIZE_H
#define ESP_NORMALIZE_H

#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads `normalizer` (NULL or null: none). Anything but NFC, or a Sequence of it, is refused.
 */
int esp_normalizer_read(bool *nfc, const cJSON *normalizer, char *err, size_t errlen);

/* NFC of valid UTF-8. *out is `text` itself if it is in that form by its bytes alone, else
 * memory that the caller frees. Returns 0 or ESP_E_MEMORY. */
int esp_nfc(const char *text, size_t length, char **out, size_t *out_length);

#endif
