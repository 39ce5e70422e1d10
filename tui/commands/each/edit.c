/* edit.c - ":edit" removes the last prompt and the text after it, and puts the prompt back on
 * the input line. It asks before it deletes an answer; ":edit!" does not ask. */
#include <stdlib.h>

#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int answer = esp_prompts_answer(control);
    if (control->prompts.count > 0 && answer > 0 && *arguments != '!')
        return esp_ask(control, ":edit!",
                       "Take back the last prompt and delete the %d tokens after it? y: yes, "
                       "any other key: no",
                       answer);
    if (control->prompts.count == 0)
        return esp_refuse(control,
                          control->prompts.retokenized
                              ? "cannot take back earlier prompts: the text was tokenized "
                                "again for other models; :clear starts a new text"
                              : "there is no prompt to take back");
    struct esp_turn *turn = &control->prompts.turns[--control->prompts.count];
    ESP_WORKER_POST(control->worker, REWIND, .number = {turn->before});
    control->prompts.kept = turn->before;
    esp_ui_follow(&control->ui, &control->state);
    esp_ui_leave(&control->ui);
    esp_request_line(&control->requests, turn->text, false);
    free(turn->text);
    return esp_answer(control, "change the prompt and send it again");
}

const struct esp_command_ops esp_command_edit = {
    .name = "edit",
    .usage = "",
    .summary = "take back the last prompt and the text after it, to change and send it again",
    .run = run,
};
