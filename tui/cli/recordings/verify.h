/* verify.h - writes the texts of a kept session again, and compares. */
#ifndef ESP_CLI_VERIFY_H
#define ESP_CLI_VERIFY_H

#include "sessions/library.h"
#include "tui/cli/cli.h"

/* Prints how many generations gave the same tokens, and where others differ. Models: those of
 * the session, unless flags name some. Returns 0, or a negative status with a sentence, also
 * if something differs that must not. */
int cli_verify_session(const struct cli_options *options, struct esp_library *library,
                       const struct esp_kept_session *session, char *err, size_t errlen);

#endif
