/* command.h - declares what a ':' command is.
 *
 * A command consists of a file in each/ that exports a `const struct esp_command_ops`, and of a
 * line in commands.def. The program uses this table to find commands, to show help and to
 * complete names. Any unambiguous prefix of a name works. A setting (settings.h) can be set
 * like a command: ":temp 0.8".
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
    /* Runs the command. `arguments` has no surrounding blanks. For ":name! ..." it starts with
     * the '!'. Returns 0 or a negative status, with a message in the reply. */
    int (*run)(struct esp_control *control, const char *arguments);
    /* Words that complete the first argument, each with a summary. */
    struct {
        const char *word, *summary;
    } offers[5]; /* the last one is NULL */
    /* Adds more completions of a word. choices->before has the arguments before the word. This
     * function can be NULL. */
    void (*complete)(const struct esp_control *control, struct esp_choices *choices);
    /* Returns the arguments that a key inserts after the command's name. They depend on what
     * the screen shows. They are "" or words with a blank after each. This function can be
     * NULL. */
    const char *(*begin)(const struct esp_control *control);
};

/* Returns command `index` of the table, or NULL past its end. */
const struct esp_command_ops *esp_command(int index);

/* Returns whether a word is the full name of a command or setting that is allowed in this live
 * session or replay. */
bool esp_command_is(const struct esp_control *control, const char *word);
/* Returns whether a line consists of the full name of an allowed setting and a value, such as
 * "temp 0.8". */
bool esp_command_sets(const struct esp_control *control, const char *line);
/* Runs a line that starts with ':'. Returns 0 or a negative status, with a reply. */
int esp_command_run(struct esp_control *control, const char *line);
/* Returns the arguments to insert after a key has begun the command line `line`; "" if none. */
const char *esp_command_begin(const struct esp_control *control, const char *line);
/* Completes a word of a line that starts with ':'. */
void esp_command_complete(const struct esp_control *control, struct esp_choices *choices);

#endif
