#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    (void)arguments;
    app->leaving = true;
}

const struct esp_command_ops esp_command_quit = {
    .name = "quit",
    .usage = "",
    .summary = "leave",
    .in = ESP_IN_BOTH,
    .run = run,
};
