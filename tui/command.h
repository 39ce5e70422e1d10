/* command.h - what can be typed after ':'.
 *
 * A command is one file in commands/ that exports a `const struct esp_command_ops`, and one
 * line in commands.def. The table feeds dispatch, help and completion. A command may be
 * shortened as long as it stays the only one that starts so.
 */
#ifndef ESP_COMMAND_H
#define ESP_COMMAND_H

#include "app.h"

struct esp_command_ops {
    const char *name;
    const char *usage; /* its arguments */
    const char *summary;
    /* `arguments` has no blanks around it. */
    void (*run)(struct esp_app *app, const char *arguments);
    /* Adds what the word after `before` (the arguments up to it) can be. May be NULL. */
    void (*complete)(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices);
};

/* Entry `index` of the table; NULL past its end. */
const struct esp_command_ops *esp_command(int index);

/* Runs a line that starts with ':'. */
void esp_command_run(struct esp_app *app, const char *line);
/* Completes a word of a line that starts with ':'. */
void esp_command_complete(struct esp_app *app, const char *before, const char *word,
                          struct esp_choices *choices);

/* Adds `text` if it starts with `word`. */
void esp_choices_offer(struct esp_choices *choices, const char *word, const char *text,
                       const char *summary);
/* Completes "name:key=value,..." for a list of drafters or verifiers. */
void esp_complete_spec(enum esp_list list, const char *before, const char *word,
                       struct esp_choices *choices);
/* Completes the value of a parameter that is a choice or a flag. */
void esp_complete_value(const struct esp_param_info *param, const char *word,
                        struct esp_choices *choices);

#endif
