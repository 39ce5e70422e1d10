#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    return esp_control_step_mode(control, !control->ui.stepping);
}

const struct esp_command_ops esp_command_step = {
    .name = "step",
    .usage = "",
    .summary = "step mode: stop after every stage; again: do not stop",
    .run = run,
};
