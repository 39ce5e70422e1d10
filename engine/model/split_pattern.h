/* split_pattern.h - the regular expressions of a tokenizer.json, run by PCRE2.
 *
 * They are written for Oniguruma with Ruby's syntax, which the Hugging Face library uses. The
 * parts of that syntax which mean the same in PCRE2 are passed on, those which mean something
 * else are rewritten, and the rest is refused, so that a pattern never quietly splits
 * differently.
 */
#ifndef ESP_SPLIT_PATTERN_H
#define ESP_SPLIT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct esp_split_pattern; /* immutable: may be shared by threads */

/* Compiles a regular expression, or a text to be found as it is (`literal`). */
int esp_split_pattern_open(struct esp_split_pattern **pattern, const char *text, bool literal,
                           char *err, size_t errlen);
void esp_split_pattern_close(struct esp_split_pattern *pattern);

/* What a thread needs to match: registers, stack and the processor time it may still use. */
struct esp_matcher;

/* For `length` bytes of text in all. NULL if there is no memory. */
struct esp_matcher *esp_matcher_open(size_t length);
void esp_matcher_close(struct esp_matcher *matcher);

/* Finds the first match in text[0, length), valid UTF-8, that starts at `from` or later.
 * Returns 1 and the match, 0 if there is none, or a negative status: ESP_E_UNSUPPORTED if the
 * pattern takes more steps or time than any useful one would. */
int esp_matcher_find(struct esp_matcher *matcher, const struct esp_split_pattern *pattern,
                     const char *text, size_t length, size_t from, size_t *start, size_t *end);

#endif
