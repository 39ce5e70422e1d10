/* prompts.h - submits, refuses and takes back prompts. */
#ifndef ESP_PROMPTS_H
#define ESP_PROMPTS_H

#include "tui/commands/control.h"

/* The reason why no prompt can be sent now; NULL: it can. */
const char *esp_prompts_refusal(const struct esp_control *control);
void esp_prompts_send(struct esp_control *control, const char *line);
/* The last prompt was refused: puts it back on the input line. */
void esp_prompts_refused(struct esp_control *control);
/* Tokens after the last prompt, in the text that remains after all posted commands. */
int esp_prompts_answer(const struct esp_control *control);
/* Takes the last prompt and all text after it back; the prompt returns to the input line. */
int esp_prompts_edit(struct esp_control *control);
/* Deletes the text after the last prompt and generates it again. */
int esp_prompts_regenerate(struct esp_control *control);
/* Tokens are about to be removed: `count` from `start` on; or all but the first `count`. */
void esp_prompts_taken_out(struct esp_control *control, int start, int count);
void esp_prompts_shortened(struct esp_control *control, int count);
/* Clears the text. */
void esp_prompts_clear(struct esp_control *control);
/* The text was tokenized again: the starts of its prompts are unknown. */
void esp_prompts_retokenized(struct esp_control *control);
void esp_prompts_forget(struct esp_control *control);

#endif
