/* open_interface.c - opens the interface for a command. */
#include <string.h>

#include "tui/app/interface.h"
#include "tui/cli/cli.h"
#include "tui/commands/settings.h"

/* Whether a flag for this setting was given. */
static bool is_said(const struct cli_options *o, const char *setting)
{
    if (strcmp(setting, "model") == 0 || strcmp(setting, "draft") == 0)
        return o->given[CLI_FLAG_target] || o->given[CLI_FLAG_draft];
    return cli_is_given(o, strcmp(setting, "n") == 0 ? "tokens" : setting);
}

int cli_open_interface(struct esp_interface_options *with, const struct cli_options *o)
{
    struct cli_options chosen = *o;
    cli_choose_draft(&chosen);
    with->engine = chosen.engine;
    with->ascii = o->ascii;
    with->theme = o->theme;
    with->config = o->config;
    with->no_config = o->no_config;
    for (int i = 0; esp_setting(i); i++)
        with->given[i] = is_said(o, esp_setting(i)->key);
    return interface_main(with);
}
