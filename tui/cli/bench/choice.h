/* choice.h - measures a choice, which is a drafter with its verifier.
 *
 * `espalier bench` and `espalier tune` compare several choices on the same prompts. All choices
 * continue one prompt before the next prompt begins. Therefore, if the machine slows down, it
 * slows down all choices. A result is a mean over prompts. A prompt is not counted if no token
 * was generated after it.
 */
#ifndef ESP_CLI_CHOICE_H
#define ESP_CLI_CHOICE_H

#include <cJSON.h>
#include <stdbool.h>

#include "engine/espalier.h"
#include "viz/acceptance.h"

enum { CLI_CHOICE_SPEC = 512 };

/* Adds up one quantity, such as the speed, over all prompts. */
struct cli_series {
    int count;
    double sum, squares;
};

struct cli_choice {
    char spec[CLI_CHOICE_SPEC]; /* "drafter" or "drafter+verifier" */
    char verifier[ESP_SPEC_TEXT];
    struct esp_session *session; /* NULL while it is closed */
    bool counting;               /* true: iterations are counted in `acceptance` */
    struct esp_acceptance acceptance;
    cJSON *steps; /* if not NULL, gets [nodes, accepted] for every iteration */
    /* `speed` is in tokens per second. `first_token` and `token` are times in ms. `tokens` and
     * `iterations` are counts. */
    struct cli_series speed, first_token, token, tokens, iterations;
    double latest; /* speed of the last counted run; 0 if it generated no token */
};

void cli_count(struct cli_series *series, double value);
double cli_mean(const struct cli_series *series);      /* 0 if there are no values */
double cli_deviation(const struct cli_series *series); /* sample standard deviation */
/* Returns an object with the mean and the deviation of a series. */
cJSON *cli_series_json(const struct cli_series *series);

/* Opens a session for `spec`. Takes all other settings from `session`. Clears all results. The
 * session's observer gets the address of the choice, so the choice must not be moved in memory.
 * Prints notices on standard error. Returns 0, or a negative status with a message. */
int cli_choice_open(struct cli_choice *choice, const char *spec, struct esp_engine *engine,
                    const struct esp_session_options *session, char *err, size_t errlen);
void cli_choice_close(struct cli_choice *choice); /* does not delete the results */

/* Continues the first `prompt_tokens` tokens of a prompt by at most `tokens` tokens. Returns 0,
 * or a negative status with a message. An interrupt by the user is not an error. */
int cli_choice_run(struct cli_choice *choice, const char *prompt, size_t length,
                   int prompt_tokens, int tokens, char *err, size_t errlen);
/* Adds the last run to the results. */
void cli_choice_count(struct cli_choice *choice);

#endif
