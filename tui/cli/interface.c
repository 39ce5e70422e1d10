/* interface.c - `espalier` without a command: the terminal interface. */
#include "tui/app/interface.h"

#include <stdio.h>

#include "tui/cli/cli.h"

static int run(struct cli_options *o)
{
    struct esp_interface_options options = {
        .engine = o->engine,
        .session = o->session,
        .prompt = o->prompt,
        .tokens = o->tokens,
        .ascii = o->ascii,
        .theme = o->theme,
        .config = o->config,
        .no_config = o->no_config,
        .given = o->given,
        .record = o->record,
        .force = o->force,
    };
    options.session.values.baseline = true;
    return interface_main(&options);
}

const struct cli_command cli_interface = {
    .name = "interface",
    .arguments = "[TARGET [DRAFT]] [options]",
    .summary = "the terminal interface",
    .flags = "prompt tokens target draft drafter verifier settings system backend threads "
             "memory gpu-memory device "
             "exact width layers max-nodes context ascii theme config no-config record force",
    .chooses = "baseline",
    .most = 2,
    .names_models = true,
    .draws_seed = true,
    .run = run,
};
