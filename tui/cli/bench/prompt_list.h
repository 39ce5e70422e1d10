/* prompt_list.h - the prompts of a measurement: lines of text, or JSON Lines with categories.
 */
#ifndef ESP_PROMPT_LIST_H
#define ESP_PROMPT_LIST_H

#include <stddef.h>

struct cli_prompt {
    char *text; /* (length) any bytes, not NUL-terminated */
    size_t length;
    char *category; /* "" if it has none */
};

struct cli_prompts {
    struct cli_prompt *prompt; /* (count) */
    int count;
};

/* Divides a text into prompts. If its first line that is not empty begins with '{', every line
 * is a JSON object {"prompt": TEXT, "category": TEXT}; other members are ignored. Otherwise
 * every line is a prompt. Empty lines and empty prompts are skipped; a text without prompts is
 * an error. Messages call the text `name`. Returns 0 or a negative status with a message; then
 * the list is empty. */
int cli_prompts_take(struct cli_prompts *prompts, const char *text, size_t length,
                     const char *name, char *err, size_t errlen);
/* Keeps the first `most` prompts. */
void cli_prompts_keep(struct cli_prompts *prompts, int most);
/* Reads the prompts of -p, -f or standard input, at most as many as --prompts allows. Returns
 * 0, or an exit code after printing a message. */
struct cli_options;
int cli_read_prompts(struct cli_prompts *prompts, const struct cli_options *options);
void cli_prompts_free(struct cli_prompts *prompts);

#endif
