#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    control->ui.help = true;
    control->ui.view[ESP_PANE_help].scroll = 0;
    return ESP_OK;
}

const struct esp_command_ops esp_command_help = {
    .name = "help",
    .usage = "",
    .summary = "show keys and commands",
    .in = ESP_IN_BOTH,
    .run = run,
};
