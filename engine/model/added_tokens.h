/* added_tokens.h - finds added tokens in text, before it is cut into words. */
#ifndef ESP_ADDED_TOKENS_H
#define ESP_ADDED_TOKENS_H

#include "int_map.h"
#include "normalize.h"
#include "spans.h"
#include "split_pattern.h"
#include "vocabulary.h"

struct esp_added_tokens {
    const struct esp_vocabulary *vocabulary;
    struct esp_int_map trie;
    struct esp_split_pattern *word; /* one word character; NULL if no token asks for it */
};

/* Collects, of the list `json` that the vocabulary was read with, the added tokens that are
 * looked for in text as it is (`normalizer` NULL), or those that are looked for in normalized
 * text. The vocabulary must outlive this. Free it even if it fails. */
int esp_added_tokens_init(struct esp_added_tokens *added,
                          const struct esp_vocabulary *vocabulary, const cJSON *json,
                          const struct esp_normalizer *normalizer, char *err, size_t errlen);
void esp_added_tokens_free(struct esp_added_tokens *added);

/* Cuts `text` (valid UTF-8) into added tokens, tagged with their id, and the rest, tagged -1.
 * Returns 0 or a negative status. */
int esp_added_tokens_find(const struct esp_added_tokens *added, struct esp_matcher *matcher,
                          const char *text, int32_t length, struct esp_spans *spans);

#endif
