#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    (void)arguments;
    app->ui.help = true;
    app->ui.view[ESP_PANE_help].scroll = 0;
}

const struct esp_command_ops esp_command_help = {
    .name = "help",
    .usage = "",
    .summary = "show keys and commands",
    .in = ESP_IN_BOTH,
    .run = run,
};
