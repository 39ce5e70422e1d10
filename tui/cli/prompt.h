/* prompt.h - the prompt as bytes, wherever it comes from. */
#ifndef ESP_PROMPT_H
#define ESP_PROMPT_H

#include "cli.h"

/* Takes -p, -f or standard input ("-", or a pipe when nothing else is given). On success *text
 * is the caller's to free. Returns 0, or an exit code after printing a sentence. */
int cli_read_prompt(const struct cli_options *options, char **text, size_t *length);
/* Tokenizes the text and gives it to a session. */
int cli_prompt_session(struct esp_engine *engine, struct esp_session *session, const char *text,
                       size_t length, char *err, size_t errlen);
/* The same with the first `most` tokens at most. */
int cli_prompt_part(struct esp_engine *engine, struct esp_session *session, const char *text,
                    size_t length, int most, char *err, size_t errlen);

#endif
