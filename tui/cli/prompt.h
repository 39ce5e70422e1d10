/* prompt.h - the prompt as bytes, wherever it comes from. */
#ifndef ESP_PROMPT_H
#define ESP_PROMPT_H

#include "tui/cli/cli.h"

/* Takes -p, -f or standard input ("-", or a pipe when nothing else is given). On success *text
 * is the caller's to free. Returns 0, or an exit code after printing a sentence. */
int cli_read_prompt(const struct cli_options *options, char **text, size_t *length);

/* Reads a file, or standard input (NULL), of at most 64 MB; the caller frees *text, which has
 * no NUL. Returns 0, or an exit code after a sentence on standard error. */
int cli_read_text(const char *path, char **text, size_t *length);

#endif
