/* complete.h - completion of words on the input line: list entries, values, paths. */
#ifndef ESP_COMPLETE_H
#define ESP_COMPLETE_H

#include "engine/espalier.h"
#include "tui/view/choices.h"

/* Adds `text` if it starts with `word`. */
void esp_choices_offer(struct esp_choices *choices, const char *word, const char *text,
                       const char *summary);
/* Offers the lower-case words of "a|b|NUMBER". */
void esp_complete_words(const char *words, const char *word, struct esp_choices *choices);
/* Completes "name:key=value,..." from a list of drafters or verifiers. */
void esp_complete_spec(enum esp_list list, const char *before, const char *word,
                       struct esp_choices *choices);
/* Completes the value of a parameter that is a choice or a flag. */
void esp_complete_value(const struct esp_param_info *param, const char *word,
                        struct esp_choices *choices);
/* Resolves '~' and escaped blanks in a typed path. */
void esp_typed_path(char *path, size_t size, const char *typed);
/* Completes a path; `before` may hold its beginning. `models`: only folders and GGUF files. */
void esp_complete_path(const char *before, const char *word, bool models,
                       struct esp_choices *choices);
/* Completes the name of a model. With a target, the summaries tell how well each fits as its
 * draft. */
void esp_complete_model(const char *target, const char *word, struct esp_choices *choices);

#endif
