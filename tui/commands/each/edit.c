/* edit.c - ":edit" takes the text back to where it was before the last prompt, and the prompt
 * back to the input line. */
#include "tui/commands/command.h"
#include "tui/commands/prompts.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    return esp_prompts_edit(control);
}

const struct esp_command_ops esp_command_edit = {
    .name = "edit",
    .usage = "",
    .summary = "take the last prompt and what followed it back, to change and send it again",
    .run = run,
};
