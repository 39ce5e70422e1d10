/* prompts.h - submits, refuses and takes back prompts. */
#ifndef ESP_PROMPTS_H
#define ESP_PROMPTS_H

#include "tui/commands/control.h"

/* Returns the reason that no prompt can be sent now, or NULL if one can. */
const char *esp_prompts_refusal(const struct esp_control *control);
void esp_prompts_send(struct esp_control *control, const char *line);
/* Puts the last prompt, which the engine refused, back on the input line. */
void esp_prompts_refused(struct esp_control *control);
/* Returns the number of tokens that follow the last prompt when all posted commands have been
 * executed. */
int esp_prompts_answer(const struct esp_control *control);
/* Call before tokens [start, start + count) are removed from a text of `tokens` tokens. */
void esp_prompts_taken_out(struct esp_prompts *prompts, int tokens, int start, int count);
/* Call before all tokens except the first `count` are removed. */
void esp_prompts_shortened(struct esp_prompts *prompts, int count);
/* Call when the text was tokenized again: the starts of its prompts are then unknown. */
void esp_prompts_retokenized(struct esp_prompts *prompts);
/* Finds the prompts of the text again, after another text has replaced it. */
void esp_prompts_read(struct esp_prompts *prompts, const struct esp_state *state);
void esp_prompts_forget(struct esp_prompts *prompts);

#endif
