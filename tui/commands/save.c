/* save.c - ":save FILE" writes the text to a file; ":save! FILE" also over one that is there.
 */
#include "command.h"

#include <string.h>

#include "write_file.h"

static void run(struct esp_app *app, const char *arguments)
{
    char err[512], path[1024];
    const bool over = *arguments == '!';
    arguments += over;
    arguments += strspn(arguments, " ");
    if (!*arguments) {
        esp_app_say(app, true, "write :save FILE, or :save! FILE to write over one");
        return;
    }
    esp_typed_path(path, sizeof path, arguments);
    if (esp_write_file(path, app->state.bytes, app->state.byte_count, over, err, sizeof err) < 0)
        esp_app_say(app, true, "%s", err);
    else
        esp_app_say(app, false, "%zu bytes written to %s", app->state.byte_count, path);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    esp_complete_path(before, word, false, choices);
}

const struct esp_command_ops esp_command_save = {
    .name = "save",
    .usage = "FILE",
    .summary = "write the text to a file; :save! FILE writes over one that is there",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = complete,
};
