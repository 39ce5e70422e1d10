/* edit.c - ":edit" takes the text back to where it was before the last prompt, and the prompt
 * back to the input line. It asks first if an answer is lost; ":edit!" asks nothing. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    const int answer = esp_prompts_answer(control);
    if (control->turn_count > 0 && answer > 0 && *arguments != '!')
        return esp_ask(control, ":edit!",
                       "Take the last prompt back and forget the %d tokens that follow it? "
                       "y: yes, any other key: no",
                       answer);
    return esp_prompts_edit(control);
}

const struct esp_command_ops esp_command_edit = {
    .name = "edit",
    .usage = "",
    .summary = "take the last prompt and what followed it back, to change and send it again",
    .run = run,
};
