/* pretokenize.h - the `pre_tokenizer` of a tokenizer.json: splits text into the words that BPE
 * encodes.
 *
 * These steps are supported: ByteLevel with GPT-2's pattern or none; Split by a Regex or a
 * String; Digits; a Sequence of these that ends with ByteLevel. With byte fallback, ByteLevel
 * is missing, or Metaspace takes its place.
 */
#ifndef ESP_PRETOKENIZE_H
#define ESP_PRETOKENIZE_H

#include <cJSON.h>

#include "engine/model/spans.h"
#include "engine/model/split_pattern.h"

enum { ESP_SPLIT_LIMIT = 32 };

#define ESP_GPT2_PATTERN                                                                       \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

struct esp_pretokenizer {
    struct esp_split {
        struct esp_split_pattern *pattern;
        int behavior;
        bool invert;
    } splits[ESP_SPLIT_LIMIT];
    int count;
    /* These members describe the last step, ByteLevel or Metaspace. `last_step` is the index of
     * its first split, or -1 if there is no such step. `space` is the text that the step writes
     * for a space. `prefix` says which words get a leading space if they have none: no word,
     * the first word of a text, or all words. */
    int last_step;
    const char *space;
    enum esp_prefix { ESP_PREFIX_NEVER, ESP_PREFIX_FIRST, ESP_PREFIX_ALWAYS } prefix;
};

/* Reads a pre_tokenizer; `json` may be NULL. Free *pretokenizer even if reading fails. */
int esp_pretokenizer_read(struct esp_pretokenizer *pretokenizer, const cJSON *json,
                          bool byte_fallback, char *err, size_t errlen);
void esp_pretokenizer_free(struct esp_pretokenizer *pretokenizer);

/* Holds the memory that esp_pretokenize() uses. Initialise the struct with zeros. */
struct esp_pretokenize_scratch {
    struct esp_spans words, next, parts;
    char *spaced; /* (spaced_size) the text after adding or rewriting spaces */
    size_t spaced_size;
};

/* Splits *text (valid UTF-8, not empty) into words, which are not empty, and stores them in
 * scratch->words. `first` is true if *text is the beginning of a whole text. If spaces are
 * added or rewritten, *text becomes the changed text, in scratch memory. Returns 0 or a
 * negative status, see esp_matcher_find(). */
int esp_pretokenize(const struct esp_pretokenizer *pretokenizer, struct esp_matcher *matcher,
                    const char **text, int32_t length, bool first,
                    struct esp_pretokenize_scratch *scratch);
void esp_pretokenize_scratch_free(struct esp_pretokenize_scratch *scratch);

#endif
