/* continue.c - ":continue 4" generates four continuations from the same place in the text, each
 * as a branch. */
#include <stdlib.h>

#include "tui/commands/branching.h"
#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int wanted = *arguments ? atoi(arguments) : 4;
    struct esp_branch_point point;
    int count;
    const char *refusal = esp_branching_refusal(control);
    if (wanted < 2 || wanted > ESP_LIKELY)
        return esp_refuse(control, "write :continue and a number from 2 to %d", ESP_LIKELY);
    if (refusal)
        return esp_refuse(control, "%s", refusal);
    if (!esp_branching_point(control, &point))
        return ESP_E_ARGUMENT;
    struct esp_text_token *text = esp_branching_text(control, &point, &count);
    if (!text)
        return esp_refuse(control, "not enough memory for the branches");
    control->forks++;
    ESP_WORKER_POST(control->worker, CONTINUE, .text = {(const char *)text},
                    .length = (size_t)count * sizeof *text, .number = {wanted});
    free(text);
    esp_ui_follow(&control->ui, &control->state);
    control->ui.look.branch = -1;
    esp_ui_focus(&control->ui, ESP_PANE_branches); /* shows the continuations side by side */
    return ESP_OK;
}

const struct esp_command_ops esp_command_continue = {
    .name = "continue",
    .usage = "[NUMBER]",
    .summary = "write several continuations from here, each as a branch; they differ in their "
               "seeds or, at temperature 0, in their first tokens",
    .run = run,
};
