/* command.h - what can be typed after ':'.
 *
 * A command is one file in commands/ that exports a `const struct esp_command_ops`, and one
 * line in commands.def. The table feeds dispatch, help and completion. A command may be
 * shortened as long as it stays the only one that starts so. A setting (settings.h) is set by
 * its name alone, too: ":temp 0.8".
 */
#ifndef ESP_COMMAND_H
#define ESP_COMMAND_H

#include "tui/commands/control.h"
#include "tui/commands/complete.h"

struct esp_command_ops {
    const char *name;
    const char *usage; /* its arguments */
    const char *summary;
    enum esp_place in;
    /* `arguments` has no blanks around it, and starts with the '!' of ":name! ...". Returns 0
     * or a negative status; what there is to tell is in the reply. */
    int (*run)(struct esp_control *control, const char *arguments);
    /* Adds what the word after `before` (the arguments up to it) can be. May be NULL. */
    void (*complete)(const struct esp_control *control, const char *before, const char *word,
                     struct esp_choices *choices);
    /* What follows the name where a key begins the command, by what is shown: "" or words with
     * a blank behind each. May be NULL. */
    const char *(*begin)(const struct esp_control *control);
};

/* Entry `index` of the table; NULL past its end. */
const struct esp_command_ops *esp_command(int index);

/* Whether a word is the whole name of a command or a setting that has a meaning here. */
bool esp_command_is(const struct esp_control *control, const char *word);
/* Whether a line is the whole name of such a setting and a value for it: "temp 0.8". */
bool esp_command_sets(const struct esp_control *control, const char *line);
/* Runs a line that starts with ':'. Returns 0 or a negative status, with a reply. */
int esp_command_run(struct esp_control *control, const char *line);
/* What a key that begins this line adds to it, by what is shown; "": nothing. */
const char *esp_command_begin(const struct esp_control *control, const char *line);
/* Completes a word of a line that starts with ':'. */
void esp_command_complete(struct esp_control *control, const char *before, const char *word,
                          struct esp_choices *choices);

#endif
