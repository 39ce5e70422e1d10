/* complete.h - completes words on the input line: names from lists, values and paths. */
#ifndef ESP_COMPLETE_H
#define ESP_COMPLETE_H

#include "engine/espalier.h"
#include "tui/view/choices.h"

/* Adds `text` to the completions if it starts with the word that is being completed. */
void esp_choices_offer(struct esp_choices *choices, const char *text, const char *summary);
/* Offers the lower-case words of "a|b|NUMBER". */
void esp_complete_words(const char *words, struct esp_choices *choices);
/* Completes a word of "name:key=value,..." from a list of drafters or verifiers. `before` is
 * the text before the word. */
void esp_complete_spec(enum esp_list list, const char *before, struct esp_choices *choices);
/* Completes the value of a parameter that is a choice or a flag. */
void esp_complete_value(const struct esp_param_info *param, struct esp_choices *choices);
/* Resolves '~' and escaped blanks in a typed path. */
void esp_typed_path(char *path, size_t size, const char *typed);
/* Completes a path. Its beginning can lie before the word that is being completed. If `models`
 * is true, offers only folders and GGUF files. */
void esp_complete_path(bool models, struct esp_choices *choices);
/* Completes the path of any file. A command can use this function as `complete` of its struct
 * esp_command_ops. */
struct esp_control;
void esp_complete_file(const struct esp_control *control, struct esp_choices *choices);
/* Completes the name of a model. If `target` is not NULL, the descriptions say whether each
 * model fits as its draft. */
void esp_complete_model(const char *target, struct esp_choices *choices);

#endif
