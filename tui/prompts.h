/* prompts.h - prompts that were submitted: refused, sent, taken back. */
#ifndef ESP_PROMPTS_H
#define ESP_PROMPTS_H

#include "app.h"

/* Why a prompt cannot be taken now; NULL: it can. */
const char *esp_prompts_refusal(const struct esp_app *app);
void esp_prompts_send(struct esp_app *app, const char *line);
/* The last one did not become part of the text: it goes back to the input line. */
void esp_prompts_refused(struct esp_app *app);
/* Takes the last prompt back to the input line, and the text to where it was before it. */
void esp_prompts_edit(struct esp_app *app);
/* Forgets the text. */
void esp_prompts_clear(struct esp_app *app);
/* The text has other tokens now: where its prompts began is not known any more. */
void esp_prompts_retokenized(struct esp_app *app);
void esp_prompts_forget(struct esp_app *app);

#endif
