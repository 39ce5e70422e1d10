/* prompt.h - reads the prompt from -p, a file or standard input. */
#ifndef ESP_PROMPT_H
#define ESP_PROMPT_H

#include "tui/cli/cli.h"

/* Reads the prompt from -p, -f or standard input. Standard input is read if the argument is
 * "-", or if it is a pipe and no prompt is given. The caller frees *text. Returns 0, or an exit
 * code after printing a message. */
int cli_read_prompt(const struct cli_options *options, char **text, size_t *length);

/* Reads a file of at most 64 MB. If `path` is NULL, reads standard input. The caller frees
 * *text, which is not NUL-terminated. Returns 0, or an exit code after printing a message on
 * standard error. */
int cli_read_text(const char *path, char **text, size_t *length);
/* Reads an open file to its end. Returns 0 or an errno value. The value is EFBIG if the file
 * has `most` bytes or more. The caller frees *text, which is NULL after an error. */
int cli_read_all(int file, size_t most, char **text, size_t *length);

#endif
