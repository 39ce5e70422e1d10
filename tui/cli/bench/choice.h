/* choice.h - a drafter with its verifier, measured on the same prompts as others.
 *
 * `espalier bench` and `espalier tune` use it. All choices continue one prompt before the next
 * prompt begins. So if the machine slows down, all choices slow down. A result is a mean over
 * prompts. A prompt is not counted if no token was generated after it.
 */
#ifndef ESP_CLI_CHOICE_H
#define ESP_CLI_CHOICE_H

#include <cJSON.h>
#include <stdbool.h>

#include "engine/espalier.h"
#include "viz/acceptance.h"

enum { CLI_CHOICE_SPEC = 512 };

/* Sums of one result over all prompts. */
struct cli_series {
    int count;
    double sum, squares;
};

struct cli_choice {
    char spec[CLI_CHOICE_SPEC]; /* "drafter" or "drafter+verifier" */
    char verifier[ESP_SPEC_TEXT];
    struct esp_session *session; /* NULL means closed */
    bool counting;               /* whether iterations go to `acceptance` */
    struct esp_acceptance acceptance;
    cJSON *steps; /* gets [nodes, accepted] of every iteration; NULL means unused */
    /* Speed in tokens per second, times in ms, and the numbers of tokens and of iterations. */
    struct cli_series speed, first_token, token, tokens, iterations;
    double latest; /* speed of the last run that was counted; 0 means it generated no token */
};

void cli_count(struct cli_series *series, double value);
double cli_mean(const struct cli_series *series);      /* 0 if there are no values */
double cli_deviation(const struct cli_series *series); /* sample standard deviation */
/* Returns an object with the mean and the deviation of a series. */
cJSON *cli_series_json(const struct cli_series *series);

/* Opens a session for `spec`, with the other settings from `session`, and clears all results.
 * The session's observer gets the address of the choice, so the choice must not move. Notices
 * go to standard error. Returns 0, or a negative status with a message. */
int cli_choice_open(struct cli_choice *choice, const char *spec, struct esp_engine *engine,
                    const struct esp_session_options *session, char *err, size_t errlen);
void cli_choice_close(struct cli_choice *choice); /* keeps the results */

/* Continues the first `prompt_tokens` tokens of a prompt by at most `tokens` tokens. Returns
 * 0, also when interrupted, or a negative status with a message. */
int cli_choice_run(struct cli_choice *choice, const char *prompt, size_t length,
                   int prompt_tokens, int tokens, char *err, size_t errlen);
/* Adds the last run to the results. */
void cli_choice_count(struct cli_choice *choice);

#endif
