/* train.h - declares a function for each kind of `espalier train`. */
#ifndef ESP_CLI_TRAIN_H
#define ESP_CLI_TRAIN_H

#include "tui/cli/cli.h"

int cli_train_head(struct cli_options *options);
int cli_train_draft(struct cli_options *options);
int cli_train_selector(struct cli_options *options);
int cli_train_text(struct cli_options *options);

#endif
