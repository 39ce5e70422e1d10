/* verify.h - generates the texts of a kept session again, and compares them. */
#ifndef ESP_CLI_VERIFY_H
#define ESP_CLI_VERIFY_H

#include "sessions/library.h"
#include "tui/cli/cli.h"

/* Prints how many generations gave the same tokens, and where the other generations differ.
 * Uses the session's models, unless flags name others. Returns 0, or a negative status with a
 * message. If a generation differs, the status is negative, too. */
int cli_verify_session(const struct cli_options *options, struct esp_library *library,
                       const struct esp_kept_session *session, char *err, size_t errlen);

#endif
