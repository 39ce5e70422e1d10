#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    (void)arguments;
    esp_app_step_mode(app, !app->ui.stepping);
}

const struct esp_command_ops esp_command_step = {
    .name = "step",
    .usage = "",
    .summary = "step mode: stop after every stage, or run on",
    .run = run,
};
