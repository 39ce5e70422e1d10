/* prompts.h - prompts that were submitted: refused, sent, taken back. */
#ifndef ESP_PROMPTS_H
#define ESP_PROMPTS_H

#include "tui/commands/control.h"

/* Why a prompt cannot be taken now; NULL: it can. */
const char *esp_prompts_refusal(const struct esp_control *control);
void esp_prompts_send(struct esp_control *control, const char *line);
/* The last one did not become part of the text: it goes back to the input line. */
void esp_prompts_refused(struct esp_control *control);
/* Tokens that were written after the last prompt, of what will be left of the text when all
 * that was asked for is done. */
int esp_prompts_answer(const struct esp_control *control);
/* Takes the last prompt back to the input line, and the text to where it was before it. */
int esp_prompts_edit(struct esp_control *control);
/* Takes what followed the last prompt back, and has it written anew. */
int esp_prompts_regenerate(struct esp_control *control);
/* Tokens are about to be taken out of the text: `count` from `start` on; or all but the first
 * `count`. */
void esp_prompts_taken_out(struct esp_control *control, int start, int count);
void esp_prompts_shortened(struct esp_control *control, int count);
/* Forgets the text. */
void esp_prompts_clear(struct esp_control *control);
/* The text has other tokens now: where its prompts began is not known any more. */
void esp_prompts_retokenized(struct esp_control *control);
void esp_prompts_forget(struct esp_control *control);

#endif
