/* edit.c - ":edit" takes back the last prompt and the text after it; the prompt returns to the
 * input line. It asks before it deletes an answer; ":edit!" does not. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int answer = esp_prompts_answer(control);
    if (control->turn_count > 0 && answer > 0 && *arguments != '!')
        return esp_ask(control, ":edit!",
                       "Take back the last prompt and delete the %d tokens after it? y: yes, "
                       "any other key: no",
                       answer);
    return esp_prompts_edit(control);
}

const struct esp_command_ops esp_command_edit = {
    .name = "edit",
    .usage = "",
    .summary = "take back the last prompt and the text after it, to change and send it again",
    .run = run,
};
