/* input.h - the input line. GNU readline edits it, but has no access to the terminal.
 *
 * Readline gets the keys one by one and changes its line, and the interface draws the line. The
 * history is saved in $XDG_STATE_HOME/espalier/history, which only its owner can read.
 */
#ifndef ESP_INPUT_H
#define ESP_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/view/choices.h"
#include "tui/view/ui.h"

struct esp_input;

struct esp_input_hooks {
    void *user;
    void (*submit)(void *user, const char *line);
    /* Called when the user wants to change the line in an editor. */
    void (*editor)(void *user);
    /* Adds completions of `word`. `before` is the part of the line before the word. */
    void (*complete)(void *user, const char *before, const char *word,
                     struct esp_choices *choices);
};

/* Opens the input line. If `history` is true, loads the history and saves it. Returns 0,
 * ESP_E_MEMORY or ESP_E_FILE. Only one input line can exist at a time, because readline keeps
 * its line in global variables. */
int esp_input_open(struct esp_input **input, const struct esp_input_hooks *hooks, bool history);
void esp_input_close(struct esp_input *input);

void esp_input_key(struct esp_input *input, int key);
/* Handles Escape. It ends a search, a repeat count or vi's insert mode. Returns false if none
 * of these was active. */
bool esp_input_escape(struct esp_input *input);
/* Moves the cursor to byte `point` of the line. */
void esp_input_go(struct esp_input *input, size_t point);
/* Inserts text as a single edit. Newlines in the text do not submit the line. */
void esp_input_paste(struct esp_input *input, const char *bytes, size_t length);
void esp_input_replace(struct esp_input *input, const char *line);
/* Shows the completions of the word at the cursor as a list. */
void esp_input_list(struct esp_input *input);
void esp_input_unlist(struct esp_input *input);
bool esp_input_is_empty(const struct esp_input *input);
/* Returns the line. The pointer is valid until the next key. */
const char *esp_input_text(const struct esp_input *input);
/* Adds a submitted line to the history. */
void esp_input_remember(struct esp_input *input, const char *line);

/* Passes the line, its cursor and the completions to the screen. */
void esp_input_show(const struct esp_input *input, struct esp_ui *ui);

#endif
