/* regenerate.c - ":regenerate" takes the last answer back and has it written anew. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    return esp_prompts_regenerate(control);
}

const struct esp_command_ops esp_command_regenerate = {
    .name = "regenerate",
    .usage = "",
    .summary = "take the last answer back and write another one",
    .run = run,
};
