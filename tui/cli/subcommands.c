/* subcommands.c - builds the table of subcommands from subcommands.def. */
#include "tui/cli/cli.h"

#define X(name) extern const struct cli_command cli_##name;
#include "tui/cli/subcommands.def"

const struct cli_command *const cli_commands[] = {
#define X(name) &cli_##name,
#include "tui/cli/subcommands.def"
    NULL,
};
