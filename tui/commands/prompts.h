/* prompts.h - submits prompts, and takes them back. */
#ifndef ESP_PROMPTS_H
#define ESP_PROMPTS_H

#include "tui/commands/control.h"

/* Returns the reason why no prompt can be sent now, or NULL if one can be sent. */
const char *esp_prompts_refusal(const struct esp_control *control);
void esp_prompts_send(struct esp_control *control, const char *line);
/* Puts the last prompt, which the engine refused, back on the input line. */
void esp_prompts_refused(struct esp_control *control);
/* Returns the number of tokens that will follow the last prompt when all posted commands are
 * done. */
int esp_prompts_answer(const struct esp_control *control);
/* Must be called before tokens [start, start + count) are removed from a text of `tokens`
 * tokens. */
void esp_prompts_taken_out(struct esp_prompts *prompts, int tokens, int start, int count);
/* Must be called before all tokens except the first `count` are removed. */
void esp_prompts_shortened(struct esp_prompts *prompts, int count);
/* Must be called when other models have tokenized the text. After that it is unknown where the
 * prompts start in the text. */
void esp_prompts_retokenized(struct esp_prompts *prompts);
/* Finds the prompts in a text that has replaced the current one. */
void esp_prompts_read(struct esp_prompts *prompts, const struct esp_state *state);
void esp_prompts_forget(struct esp_prompts *prompts);

#endif
