/* pretokenize.h - the `pre_tokenizer` of a tokenizer.json: cuts text into the words that BPE
 * sees.
 *
 * Supported: ByteLevel with GPT-2's pattern or none; Split by a Regex or a String; Digits; a
 * Sequence of these that ends with ByteLevel. With byte fallback, nothing or Metaspace takes
 * the place of ByteLevel.
 */
#ifndef ESP_PRETOKENIZE_H
#define ESP_PRETOKENIZE_H

#include <cJSON.h>

#include "spans.h"
#include "split_pattern.h"

enum { ESP_SPLIT_LIMIT = 32 };

struct esp_pretokenizer {
    struct esp_split {
        struct esp_split_pattern *pattern;
        int behavior;
        bool invert;
    } splits[ESP_SPLIT_LIMIT];
    int count;
    /* ByteLevel or Metaspace, the last step: the index of the first split that belongs to it
     * (-1: it is missing), how it writes a space, and which words get one in front if they have
     * none: no, the first of a text, or all. */
    int last_step;
    const char *space;
    enum esp_prefix { ESP_PREFIX_NEVER, ESP_PREFIX_FIRST, ESP_PREFIX_ALWAYS } prefix;
};

/* Free it even if reading fails. */
int esp_pretokenizer_read(struct esp_pretokenizer *pretokenizer, const cJSON *json,
                          bool byte_fallback, char *err, size_t errlen);
void esp_pretokenizer_free(struct esp_pretokenizer *pretokenizer);

/* Memory used while cutting; all zero at first. */
struct esp_pretokenize_scratch {
    struct esp_spans words, next, parts;
    char *spaced; /* (spaced_size) the text with spaces put in or written otherwise */
    size_t spaced_size;
};

/* Cuts *text (valid UTF-8, not empty) into scratch->words, none of which is empty; `first`: a
 * text begins here. If spaces had to be put in or written otherwise, *text becomes the text
 * with them, in scratch memory. Returns 0 or a negative status, see esp_matcher_find(). */
int esp_pretokenize(const struct esp_pretokenizer *pretokenizer, struct esp_matcher *matcher,
                    const char **text, int32_t length, bool first,
                    struct esp_pretokenize_scratch *scratch);
void esp_pretokenize_scratch_free(struct esp_pretokenize_scratch *scratch);

#endif
