/* editor.c - ":editor" or C-x C-e opens the user's editor on the prompt. */
#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    (void)arguments;
    control->requests.edit = true;
    esp_ui_leave(&control->ui);
    return ESP_OK;
}

const struct esp_command_ops esp_command_editor = {
    .name = "editor",
    .usage = "",
    .summary = "edit the prompt in your editor, $VISUAL or $EDITOR (also: C-x C-e)",
    .run = run,
};
