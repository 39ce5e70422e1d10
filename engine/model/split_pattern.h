/* split_pattern.h - the regular expressions of a tokenizer.json, run by PCRE2.
 *
 * They are written in Ruby's syntax for Oniguruma, the library that Hugging Face uses. Syntax
 * that has the same meaning in PCRE2 does not change. Syntax that has a different meaning in
 * PCRE2 is rewritten. All other syntax is refused. Therefore a pattern always splits text as
 * its author intended.
 */
#ifndef ESP_SPLIT_PATTERN_H
#define ESP_SPLIT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct esp_split_pattern; /* immutable: may be shared by threads */

/* Compiles a regular expression or, if `literal` is true, a plain text that is matched as it
 * is. */
int esp_split_pattern_open(struct esp_split_pattern **pattern, const char *text, bool literal,
                           char *err, size_t errlen);
void esp_split_pattern_close(struct esp_split_pattern *pattern);

/* A matcher has the state that a thread needs for matching patterns: registers, a stack and a
 * limit on the CPU time. */
struct esp_matcher;

/* Opens a matcher for `length` bytes of text in total. Returns NULL if there is no memory. */
struct esp_matcher *esp_matcher_open(size_t length);
void esp_matcher_close(struct esp_matcher *matcher);
/* Restarts a matcher as if it had been opened for `length` bytes. */
void esp_matcher_restart(struct esp_matcher *matcher, size_t length);

/* Finds the first match in text[0, length) that starts at `from` or later. The text must be
 * valid UTF-8. If there is a match, sets *start and *end and returns 1. Returns 0 if there is
 * no match, or a negative status. ESP_E_UNSUPPORTED means that the pattern takes more steps or
 * time than any useful pattern needs. */
int esp_matcher_find(struct esp_matcher *matcher, const struct esp_split_pattern *pattern,
                     const char *text, size_t length, size_t from, size_t *start, size_t *end);

#endif
