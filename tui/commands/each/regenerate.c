/* regenerate.c - ":regenerate" takes the last answer back and has it written anew. It asks
 * first; ":regenerate!" asks nothing. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int answer = esp_prompts_answer(control);
    if (answer > 0 && *arguments != '!')
        return esp_ask(control, ":regenerate!",
                       "Forget the last %d tokens and write others? y: yes, any other key: no",
                       answer);
    return esp_prompts_regenerate(control);
}

const struct esp_command_ops esp_command_regenerate = {
    .name = "regenerate",
    .usage = "",
    .summary = "take the last answer back and write another one",
    .run = run,
};
