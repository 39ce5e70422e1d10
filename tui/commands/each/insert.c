/* insert.c - ":insert TEXT" begins a branch. In the branch, TEXT replaces all tokens after the
 * token at the cursor of the text pane, and the model continues after TEXT. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/branching.h"
#include "tui/commands/command.h"

/* Returns whether a blank must be put before TEXT. This is the case if the text before TEXT
 * does not end with a blank, but the text that TEXT replaces begins with a blank. */
static bool needs_blank(const struct esp_state *state, int length)
{
    const size_t end =
        length < state->span_count ? state->spans[length].start : state->byte_count;
    const char last = end > 0 ? state->bytes[end - 1] : ' ';
    const char next = end < state->byte_count ? state->bytes[end] : ' ';
    return !strchr(" \t\n", last) && strchr(" \t\n", next);
}

static int run(struct esp_control *control, const char *arguments)
{
    struct esp_branch_point point;
    const struct esp_state *state = &control->state;
    struct esp_look *look = &control->ui.look;
    const int token = look->token >= 0 && look->token < state->span_count
                          ? look->token
                          : state->span_count - 1;
    if (!*arguments)
        return esp_refuse(control,
                          "write :insert TEXT, where TEXT replaces the text after the cursor");
    if (token < 0)
        return esp_refuse(control, "there is no text yet; submit a prompt first");
    point = (struct esp_branch_point){
        .place = esp_branches_before(&state->branches, state->branches.at, token + 1)};
    const bool blank = needs_blank(state, token + 1) && !ispunct((unsigned char)*arguments);
    const size_t size = strlen(arguments) + 2;
    char *words = malloc(size);
    if (!words)
        return esp_refuse(control, "not enough memory for this text");
    snprintf(words, size, "%s%s", blank ? " " : "", arguments);
    const int status = esp_branching_go(control, &point, words, ESP_FORK_NEW, true);
    free(words);
    return status;
}

const struct esp_command_ops esp_command_insert = {
    .name = "insert",
    .usage = "TEXT",
    .summary = "begin a branch in which TEXT replaces the tokens after the cursor of the text",
    .run = run,
};
