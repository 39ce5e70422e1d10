/* clear.c - ":clear" asks, then clears the text; ":clear!" does not ask. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int tokens = control->state.span_count;
    if (tokens > 0 && *arguments != '!')
        return esp_ask(control, ":clear!",
                       "Clear the text (%d tokens)? y: yes, any other key: no", tokens);
    ESP_WORKER_POST(control->worker, CLEAR);
    control->prompts.kept = 0;
    control->prompts.retokenized = false;
    esp_prompts_forget(&control->prompts);
    return ESP_OK;
}

const struct esp_command_ops esp_command_clear = {
    .name = "clear",
    .usage = "",
    .summary =
        "clear the text, after asking (:clear! does not ask); settings and learned values stay",
    .run = run,
};
