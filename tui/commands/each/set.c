/* set.c - ":set key=value" changes a setting or a parameter of the drafter. */
#include <stdio.h>
#include <string.h>

#include "tui/commands/command.h"
#include "tui/commands/settings.h"

static int run(struct esp_control *control, const char *arguments)
{
    char key[64];
    size_t length = strcspn(arguments, " =");
    if (length == 0 || length >= sizeof key)
        return esp_refuse(control, "write :set key=value; Tab after :set lists the keys");
    snprintf(key, sizeof key, "%.*s", (int)length, arguments);
    return esp_setting_type(control, key,
                            arguments + length + strspn(arguments + length, " ="));
}

const struct esp_command_ops esp_command_set = {
    .name = "set",
    .usage = "KEY=VALUE",
    .summary = "change a setting or a parameter of the drafter; a key alone shows its value",
    .in = ESP_IN_BOTH,
    .run = run,
    .complete = esp_setting_complete,
};
