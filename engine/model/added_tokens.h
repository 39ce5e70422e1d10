/* added_tokens.h - finds added tokens in a text, before it is split into words. */
#ifndef ESP_ADDED_TOKENS_H
#define ESP_ADDED_TOKENS_H

#include "engine/support/int_map.h"
#include "engine/model/normalize.h"
#include "engine/model/spans.h"
#include "engine/model/split_pattern.h"
#include "engine/model/vocabulary.h"

struct esp_added_tokens {
    const struct esp_vocabulary *vocabulary;
    struct esp_int_map trie;
    struct esp_split_pattern *word; /* matches a word character; NULL if no token needs it */
};

/* Collects added tokens from `json`, the list from which the vocabulary was read. Some added
 * tokens are found in the original text, others in normalized text: collects the first kind if
 * `normalizer` is NULL, otherwise the second. The vocabulary must outlive `added`. Free `added`
 * even after a failure. */
int esp_added_tokens_init(struct esp_added_tokens *added,
                          const struct esp_vocabulary *vocabulary, const cJSON *json,
                          const struct esp_normalizer *normalizer, char *err, size_t errlen);
void esp_added_tokens_free(struct esp_added_tokens *added);

/* Splits `text` (valid UTF-8) into spans. The tag of an added token is its id; the tag of other
 * text is -1. `literals` may be NULL. Its positions refer to a larger text: `text` begins at
 * byte `offset` of that text. Returns 0 or a negative status. */
int esp_added_tokens_find(const struct esp_added_tokens *added, struct esp_matcher *matcher,
                          const char *text, int32_t length, const struct esp_literals *literals,
                          int32_t offset, struct esp_spans *spans);

#endif
