/* interface.c - `espalier` without a command: the terminal interface. Other commands open it, too.
 */
#include "tui/app/interface.h"

#include <string.h>

#include "tui/cli/cli.h"
#include "tui/commands/settings.h"

/* Whether a flag sets this setting. */
static bool is_said(const struct cli_options *o, const char *setting)
{
    if (strcmp(setting, "model") == 0)
        return o->given[CLI_FLAG_target] || o->given[CLI_FLAG_draft];
    return cli_is_given(o, strcmp(setting, "n") == 0 ? "tokens" : setting);
}

int cli_open_interface(struct esp_interface_options *with, const struct cli_options *o)
{
    with->engine = o->engine;
    with->ascii = o->ascii;
    with->theme = o->theme;
    with->config = o->config;
    with->no_config = o->no_config;
    for (int i = 0; esp_setting(i); i++)
        with->given[i] = is_said(o, esp_setting(i)->key);
    return interface_main(with);
}

static int run(struct cli_options *o)
{
    struct esp_interface_options options = {
        .session = o->session,
        .prompt = o->prompt,
        .tokens = o->tokens,
        .record = o->record,
        .force = o->force,
    };
    options.session.values.baseline = true;
    return cli_open_interface(&options, o);
}

const struct cli_command cli_interface = {
    .name = "interface",
    .arguments = "[TARGET [DRAFT]] [options]",
    .summary = "the terminal interface",
    .flags = CLI(PROMPT) | CLI(TOKENS) | CLI(DRAFTER) | CLI(VERIFIER) | CLI_SESSION |
             CLI(SIZE) | CLI(LOOKS) | CLI(CONFIG) | CLI(RECORD) | CLI(FORCE),
    .chooses = CLI_SETTING(baseline),
    .most = 2,
    .names_models = true,
    .draws_seed = true,
    .run = run,
};
