/* save.c - ":save FILE" writes the text to a file. ":save! FILE" also overwrites an existing
 * file. */
#include "tui/commands/command.h"

#include <string.h>

#include "engine/support/write_file.h"

static int run(struct esp_control *control, const char *arguments)
{
    char err[512], path[1024];
    const bool over = *arguments == '!';
    arguments += over;
    arguments += strspn(arguments, " ");
    if (!*arguments)
        return esp_refuse(control, "write :save FILE, or :save! FILE to overwrite a file");
    esp_typed_path(path, sizeof path, arguments);
    if (esp_write_file(path, control->state.bytes, control->state.byte_count, over, err,
                       sizeof err) < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "%zu bytes written to %s", control->state.byte_count, path);
}

const struct esp_command_ops esp_command_save = {
    .name = "save",
    .usage = "FILE",
    .summary = "write the text to a file; :save! FILE overwrites a file",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = esp_complete_file,
};
