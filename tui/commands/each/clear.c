/* clear.c - ":clear" forgets the text, after a question; ":clear!" asks nothing. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int tokens = control->state.span_count;
    if (tokens > 0 && *arguments != '!')
        return esp_ask(control, ":clear!",
                       "Forget the text, %d tokens? y: yes, any other key: no", tokens);
    esp_prompts_clear(control);
    return ESP_OK;
}

const struct esp_command_ops esp_command_clear = {
    .name = "clear",
    .usage = "",
    .summary =
        "forget the text, after a question (:clear! asks nothing); settings and what was "
        "learned stay",
    .run = run,
};
