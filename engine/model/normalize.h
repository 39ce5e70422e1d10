/* normalize.h - runs the `normalizer` of a tokenizer.json: Unicode normalization form C, and
 * the steps Prepend and Replace, with which SentencePiece tokenizers make spaces visible. */
#ifndef ESP_NORMALIZE_H
#define ESP_NORMALIZE_H

#include <cJSON.h>
#include <stddef.h>

enum { ESP_NORMALIZER_LIMIT = 8 };

struct esp_normalizer {
    struct esp_normalizer_step {
        int kind;
        char *pattern, *content; /* members of Replace; Prepend has only content */
    } steps[ESP_NORMALIZER_LIMIT];
    int count;
};

/* Reads `json`, which can be NFC, Prepend, Replace of a String, or a Sequence of these.
 * Anything else is refused. If `json` is NULL or null, the normalizer has no steps. Free the
 * normalizer even if reading fails. */
int esp_normalizer_read(struct esp_normalizer *normalizer, const cJSON *json, char *err,
                        size_t errlen);
void esp_normalizer_free(struct esp_normalizer *normalizer);

/* Holds the memory that esp_normalize() uses. Initialise the struct with zeros. */
struct esp_normalize_scratch {
    char *buffer[2];
    size_t size[2];
};

/* Normalises valid UTF-8. If nothing changes, sets *out to `text`, otherwise to scratch memory.
 * Returns 0 or ESP_E_MEMORY. */
int esp_normalize(const struct esp_normalizer *normalizer,
                  struct esp_normalize_scratch *scratch, const char *text, size_t length,
                  const char **out, size_t *out_length);
void esp_normalize_scratch_free(struct esp_normalize_scratch *scratch);

/* If a text begins with a White_Space character, returns the length of this character in bytes;
 * otherwise 0. */
size_t esp_white_space(const char *text, size_t length);

#endif
