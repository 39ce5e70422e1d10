/* prompt_list.h - reads the prompts of a measurement, from lines of text or from JSON Lines.
 */
#ifndef ESP_PROMPT_LIST_H
#define ESP_PROMPT_LIST_H

#include <stddef.h>

struct cli_prompt {
    char *text; /* (length) any bytes, not NUL-terminated */
    size_t length;
    char *category; /* "" if the prompt has none */
};

struct cli_prompts {
    struct cli_prompt *prompt; /* (count) */
    int count;
};

/* Divides a text into prompts. If the first line that is not empty begins with '{', every line
 * is a JSON object {"prompt": TEXT, "category": TEXT}; other members are ignored. Otherwise
 * every line is a prompt. Empty lines and empty prompts are skipped. A text without prompts is
 * an error. Messages call the text `name`. Returns 0, or a negative status with a message.
 * After an error the list is empty. */
int cli_prompts_take(struct cli_prompts *prompts, const char *text, size_t length,
                     const char *name, char *err, size_t errlen);
/* Removes all prompts except the first `most`. */
void cli_prompts_keep(struct cli_prompts *prompts, int most);
/* Reads the prompts of -p, -f or standard input. Reads at most as many as --prompts allows.
 * Returns 0, or an exit code after printing a message. */
struct cli_options;
int cli_read_prompts(struct cli_prompts *prompts, const struct cli_options *options);
void cli_prompts_free(struct cli_prompts *prompts);

#endif
