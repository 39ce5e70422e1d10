/* config.c - ":config save" remembers the settings for the next time. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "command.h"

static void run(struct esp_app *app, const char *arguments)
{
    char err[512];
    if (!*app->config.path) {
        esp_app_say(app, true,
                    "there is no home folder for a configuration; --config FILE "
                    "names one");
        return;
    }
    if (strcmp(arguments, "save") != 0) {
        esp_app_say(app, *arguments != '\0', ":config save writes the settings to %s",
                    app->config.path);
        return;
    }
    if (esp_configuration_write(app, app->config.path, err, sizeof err) < 0)
        esp_app_say(app, true, "%s", err);
    else
        esp_app_say(app, false, "the settings were written to %s", app->config.path);
}

static void complete(const struct esp_app *app, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)app;
    if (!*before)
        esp_choices_offer(choices, word, "save", "remember the settings for the next time");
}

const struct esp_command_ops esp_command_config = {
    .name = "config",
    .usage = "save",
    .summary = "write the settings to the configuration file, for the next time",
    .run = run,
    .complete = complete,
};
