#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    control->requests.leaving = true;
    return ESP_OK;
}

const struct esp_command_ops esp_command_quit = {
    .name = "quit",
    .usage = "",
    .summary = "leave espalier (exit)",
    .in = ESP_IN_BOTH,
    .run = run,
};
