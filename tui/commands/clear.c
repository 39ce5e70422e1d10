#include "command.h"
#include "prompts.h"

static void run(struct esp_app *app, const char *arguments)
{
    (void)arguments;
    esp_prompts_clear(app);
}

const struct esp_command_ops esp_command_clear = {
    .name = "clear",
    .usage = "",
    .summary = "forget the text; settings and what was learned stay",
    .run = run,
};
