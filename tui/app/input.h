/* input.h - the input line, edited by GNU readline without access to the terminal.
 *
 * Readline gets the keys one by one and changes its line; the interface draws the line. The
 * history is in $XDG_STATE_HOME/espalier/history, readable only by its owner.
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
    /* Adds completions of `word`; `before` is the line up to it. */
    void (*complete)(void *user, const char *before, const char *word,
                     struct esp_choices *choices);
};

/* Returns 0, ESP_E_MEMORY or ESP_E_FILE. Only one input line can exist at a time, because
 * readline has only one. `history`: whether to load and save the history. */
int esp_input_open(struct esp_input **input, const struct esp_input_hooks *hooks, bool history);
void esp_input_close(struct esp_input *input);

void esp_input_key(struct esp_input *input, int key);
/* Handles Escape: ends a search, a repeat count or vi's insert mode. Returns false if there was
 * nothing to end. */
bool esp_input_escape(struct esp_input *input);
/* Moves the cursor to a byte of the line. */
void esp_input_go(struct esp_input *input, size_t point);
/* Inserts text as one edit; newlines stay part of the line. */
void esp_input_paste(struct esp_input *input, const char *bytes, size_t length);
void esp_input_replace(struct esp_input *input, const char *line);
/* Shows the completions of the word at the cursor as a list. */
void esp_input_list(struct esp_input *input);
void esp_input_unlist(struct esp_input *input);
bool esp_input_is_empty(const struct esp_input *input);
/* The line; valid until the next key. */
const char *esp_input_text(const struct esp_input *input);
/* Adds a submitted line to the history. */
void esp_input_remember(struct esp_input *input, const char *line);

/* Passes the line, its cursor and the completions to the screen. */
void esp_input_show(const struct esp_input *input, struct esp_ui *ui);

#endif
