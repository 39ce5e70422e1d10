/* config.c - ":config save" remembers the settings for the next time. */
#include "tui/commands/config_settings.h"

#include <stdio.h>
#include <string.h>

#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    char err[512];
    if (!*control->config.path)
        return esp_refuse(control, "there is no home folder for a configuration; --config FILE "
                                   "names one");
    if (strcmp(arguments, "save") != 0) {
        esp_answer(control, ":config save writes the settings to %s", control->config.path);
        return *arguments ? ESP_E_ARGUMENT : ESP_OK;
    }
    if (esp_configuration_write(control, control->config.path, err, sizeof err) < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "the settings were written to %s", control->config.path);
}

static void complete(const struct esp_control *control, const char *before, const char *word,
                     struct esp_choices *choices)
{
    (void)control;
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
