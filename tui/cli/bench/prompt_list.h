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

/* Takes a text apart. Its first line that is not empty decides what it is: if it begins with
 * '{', every line is a JSON object {"prompt": TEXT, "category": TEXT}, whose other members are
 * left aside; else every line is a prompt. Empty lines and empty prompts are left out; no
 * prompt at all is an error. `name` stands for the text in sentences. Returns 0 or a negative
 * status with a sentence; then the list is empty. */
int cli_prompts_take(struct cli_prompts *prompts, const char *text, size_t length,
                     const char *name, char *err, size_t errlen);
/* The first `most` of them stay. */
void cli_prompts_keep(struct cli_prompts *prompts, int most);
/* The prompts of -p, -f or standard input, --prompts of them at most. Returns 0, or an exit code after a sentence. */
struct cli_options;
int cli_read_prompts(struct cli_prompts *prompts, const struct cli_options *options);
void cli_prompts_free(struct cli_prompts *prompts);

#endif
