#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    return esp_control_step_mode(control, !control->ui.stepping);
}

const struct esp_command_ops esp_command_step = {
    .name = "step",
    .usage = "",
    .summary = "enter step mode, which stops after every stage, or leave it",
    .run = run,
};
