/* open_interface.c - opens the interface for a command, and again for `:resume`. */
#include <stdlib.h>
#include <string.h>

#include "tui/app/interface.h"
#include "tui/cli/cli.h"
#include "tui/commands/settings.h"

/* Whether a flag sets this setting. */
static bool is_said(const struct cli_options *o, const char *setting)
{
    if (strcmp(setting, "model") == 0 || strcmp(setting, "draft") == 0)
        return o->given[CLI_FLAG_target] || o->given[CLI_FLAG_draft];
    return cli_is_given(o, strcmp(setting, "n") == 0 ? "tokens" : setting);
}

/* Opens the interface again for what the user wants to resume. */
static int open_next(const struct cli_options *o, char *next)
{
    struct esp_interface_options again = {.session = o->session, .tokens = o->tokens};
    again.session.values.baseline = true;
    const int code = cli_resume(&again, o, next);
    free(next);
    return code;
}

int cli_open_interface(struct esp_interface_options *with, const struct cli_options *o)
{
    struct cli_options chosen = *o;
    char library[PATH_MAX], *next = NULL;
    const char *script = getenv("ESPALIER_SCRIPT");
    cli_choose_draft(&chosen);
    with->engine = chosen.engine;
    with->ascii = o->ascii;
    with->theme = o->theme;
    with->config = o->config;
    with->no_config = o->no_config;
    with->private = o->private;
    if (!with->library && esp_library_path(library, sizeof library) == ESP_OK)
        with->library = library;
    with->next = script && *script ? NULL : &next;
    for (int i = 0; esp_setting(i); i++)
        with->given[i] = with->given[i] || is_said(o, esp_setting(i)->key);
    const int code = interface_main(with);
    return next ? open_next(o, next) : code;
}
