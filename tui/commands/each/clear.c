#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    esp_prompts_clear(control);
    return ESP_OK;
}

const struct esp_command_ops esp_command_clear = {
    .name = "clear",
    .usage = "",
    .summary = "forget the text; settings and what was learned stay",
    .run = run,
};
