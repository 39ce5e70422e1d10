/* regenerate.c - ":regenerate" deletes the last answer and generates another one. It asks
 * first; ":regenerate!" does not. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int answer = esp_prompts_answer(control);
    if (answer > 0 && *arguments != '!')
        return esp_ask(
            control, ":regenerate!",
            "Delete the last %d tokens and generate others? y: yes, any other key: no", answer);
    return esp_prompts_regenerate(control);
}

const struct esp_command_ops esp_command_regenerate = {
    .name = "regenerate",
    .usage = "",
    .summary = "delete the last answer and generate another one",
    .run = run,
};
