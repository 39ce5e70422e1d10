/* edit.c - ":edit" takes the text back to where it was before the last prompt, and the prompt
 * back to the input line. */
#include "command.h"
#include "prompts.h"

static void run(struct esp_app *app, const char *arguments)
{
    (void)arguments;
    esp_prompts_edit(app);
}

const struct esp_command_ops esp_command_edit = {
    .name = "edit",
    .usage = "",
    .summary = "take the last prompt and what followed it back, to change and send it again",
    .run = run,
};
