/* interface.c - runs `espalier` without a command, which opens the terminal interface. */
#include "tui/app/interface.h"

#include "tui/cli/cli.h"

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
    if (o->given[CLI_FLAG_kept])
        return cli_resume(&options, o, o->kept);
    return cli_open_interface(&options, o);
}

const struct cli_command cli_interface = {
    .name = "interface",
    .arguments = "[TARGET [DRAFT]] [options]",
    .summary = "the terminal interface",
    .flags = CLI(PROMPT) | CLI(TOKENS) | CLI(DRAFTER) | CLI(VERIFIER) | CLI_SESSION |
             CLI(SIZE) | CLI(LOOKS) | CLI(CONFIG) | CLI(RECORD) | CLI(FORCE) | CLI(KEPT),
    .chooses = CLI_SETTING(baseline),
    .most = 2,
    .names_models = true,
    .draws_seed = true,
    .run = run,
};
