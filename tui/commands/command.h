/* command.h - the ':' commands.
 *
 * A command is one file in each/ that exports a `const struct esp_command_ops`, and one line
 * in commands.def. That table is used for dispatch, help and completion. Any unambiguous prefix
 * of a name works. A setting (settings.h) can be set like a command: ":temp 0.8".
 */
#ifndef ESP_COMMAND_H
#define ESP_COMMAND_H

#include "tui/commands/control.h"
#include "tui/commands/complete.h"

struct esp_command_ops {
    const char *name;
    const char *usage; /* the arguments of the command */
    const char *summary;
    enum esp_place in;
    /* `arguments` has no surrounding blanks; for ":name! ..." it starts with the '!'. Returns
     * 0 or a negative status, with a message in the reply. */
    int (*run)(struct esp_control *control, const char *arguments);
    /* Words that complete the first argument, each with a summary. */
    struct {
        const char *word, *summary;
    } offers[5]; /* the last one is NULL */
    /* Adds more completions. choices->before has the arguments up to the word. May be
     * NULL. */
    void (*complete)(const struct esp_control *control, struct esp_choices *choices);
    /* The arguments to insert when a key begins the command, depending on what the screen
     * shows: "", or words with a blank after each. May be NULL. */
    const char *(*begin)(const struct esp_control *control);
};

/* Entry `index` of the table; NULL past its end. */
const struct esp_command_ops *esp_command(int index);

/* Whether a word is the full name of a command or setting that is allowed here. */
bool esp_command_is(const struct esp_control *control, const char *word);
/* Whether a line is the full name of a setting that is allowed here, and a value: "temp
 * 0.8". */
bool esp_command_sets(const struct esp_control *control, const char *line);
/* Runs a line that starts with ':'. Returns 0 or a negative status, with a reply. */
int esp_command_run(struct esp_control *control, const char *line);
/* If a key begins a command line: the arguments that it inserts, or "". */
const char *esp_command_begin(const struct esp_control *control, const char *line);
/* Completes a word of a line that starts with ':'. */
void esp_command_complete(const struct esp_control *control, struct esp_choices *choices);

#endif
