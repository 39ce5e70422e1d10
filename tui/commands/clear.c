#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    (void)arguments;
    esp_app_forget(app);
}

const struct esp_command_ops esp_command_clear = {
    .name = "clear",
    .usage = "",
    .summary = "forget the text; settings and what was learned stay",
    .run = run,
};
