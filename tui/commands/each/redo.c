/* redo.c - ":redo" reverses the last ":undo". */
#include "tui/commands/branching.h"
#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    return esp_branching_back(control, true);
}

const struct esp_command_ops esp_command_redo = {
    .name = "redo",
    .usage = "",
    .summary = "reverse the last :undo",
    .run = run,
};
