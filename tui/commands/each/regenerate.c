/* regenerate.c - ":regenerate" deletes the last answer and generates another one. It asks
 * for confirmation; ":regenerate!" does not. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const struct esp_state *state = &control->state;
    const int start = esp_state_answer(state), answer = esp_prompts_answer(control);
    if (answer > 0 && *arguments != '!')
        return esp_ask(
            control, ":regenerate!",
            "Delete the last %d tokens and generate others? y: yes, any other key: no", answer);
    if (control->prompts.kept >= 0)
        return esp_refuse(control, "the text is still being shortened; try again in a moment");
    if (!state->ready || state->span_count == 0)
        return esp_refuse(control, "there is no answer to regenerate");
    if (start < state->span_count) {
        ESP_WORKER_POST(control->worker, REWIND, .number = {start});
        control->prompts.kept = start;
    }
    esp_ui_follow(&control->ui, state);
    ESP_WORKER_POST(control->worker, PROMPT, .text = {""});
    if (state->loaded.values.temperature == 0)
        return esp_answer(control, "temperature 0 gives the same answer again; try :temp 0.8");
    return ESP_OK;
}

const struct esp_command_ops esp_command_regenerate = {
    .name = "regenerate",
    .usage = "",
    .summary = "delete the last answer and generate another one",
    .run = run,
};
