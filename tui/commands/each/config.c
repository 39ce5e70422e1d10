/* config.c - ":config save" saves the settings for the next start. */
#include "tui/commands/configuration.h"

#include <string.h>

#include "tui/commands/command.h"

static int run(struct esp_control *control, const char *arguments)
{
    char err[512];
    if (!*control->settings.config.path)
        return esp_refuse(
            control,
            "there is no home folder for the configuration file; name it with --config FILE");
    if (strcmp(arguments, "save") != 0) {
        esp_answer(control, ":config save writes the settings to %s",
                   control->settings.config.path);
        return *arguments ? ESP_E_ARGUMENT : ESP_OK;
    }
    if (esp_configuration_write(control, control->settings.config.path, err, sizeof err) < 0)
        return esp_refuse(control, "%s", err);
    return esp_answer(control, "the settings were written to %s",
                      control->settings.config.path);
}

const struct esp_command_ops esp_command_config = {
    .name = "config",
    .usage = "save",
    .summary = "save the settings to the configuration file, for the next start",
    .run = run,
    .offers = {{"save", "save the settings for the next start"}},
};
