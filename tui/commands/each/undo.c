/* undo.c - ":undo" goes back to the text before its last change. */
#include "tui/commands/branching.h"
#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    return esp_branching_back(control, false);
}

const struct esp_command_ops esp_command_undo = {
    .name = "undo",
    .usage = "",
    .summary = "go back to the text before its last change, even after :clear",
    .run = run,
};
