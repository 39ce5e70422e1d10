/* flags.c - builds the table of flags from flags.def and from tables of the engine. */
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/model/player.h"

const struct cli_flag cli_flags[CLI_FLAGS] = {
#define AT(place, group, letter, kind, name, minimum, maximum, value, values, help)            \
    {{name, ESP_KIND_##kind, values, help, minimum, maximum, value,                            \
      offsetof(struct cli_options, place)},                                                    \
     CLI(group),                                                                               \
     letter},
#define FLAG(group, letter, kind, field, ...) AT(field, group, letter, kind, __VA_ARGS__)
#define CHOICE(group, field, name, values, help)                                               \
    AT(session.field, group, 0, text, name, 0, 0, 0, values, help)
#define ENGINE(group, kind, field, ...) AT(engine.field, group, 0, kind, __VA_ARGS__)
#define SETTING(kind, field, ...) AT(session.values.field, SETTINGS, 0, kind, __VA_ARGS__)
#include "tui/cli/flags.def"
};

/* Returns the index of the flag with this name, or -1. In names, - and _ mean the same. */
static int find(const char *name)
{
    char flag[ESP_FLAG_NAME], wanted[ESP_FLAG_NAME];
    esp_value_flag(&(struct esp_value_info){.name = name}, wanted);
    int i = CLI_FLAGS - 1;
    while (i >= 0 && strcmp(esp_value_flag(&cli_flags[i].info, flag), wanted) != 0)
        i--;
    return i;
}

const struct esp_value_info *cli_flag(const char *name)
{
    const int i = find(name);
    return i < 0 ? NULL : &cli_flags[i].info;
}

bool cli_is_given(const struct cli_options *o, const char *name)
{
    const int i = find(name);
    return i >= 0 && o->given[i];
}

bool cli_takes(const struct cli_command *command, int i)
{
    if (cli_flags[i].group == CLI(SETTINGS) &&
        command->chooses >> esp_value_find(cli_flags[i].info.name) & 1)
        return false;
    return (command->flags | CLI(ALL)) & cli_flags[i].group;
}
