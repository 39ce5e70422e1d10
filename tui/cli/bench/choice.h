/* choice.h - a choice of drafter and verifier that is measured on prompts beside others.
 *
 * `espalier bench` and `espalier tune` use it: both let every choice continue a prompt before
 * the next prompt's turn, so that a machine that slows down slows all choices alike. A figure
 * is a mean over prompts; a prompt after which the text ended at once has none.
 */
#ifndef ESP_CLI_CHOICE_H
#define ESP_CLI_CHOICE_H

#include <cJSON.h>
#include <stdbool.h>

#include "engine/espalier.h"
#include "viz/acceptance.h"

enum { CLI_CHOICE_SPEC = 512 };

/* A figure over prompts. */
struct cli_series {
    int count;
    double sum, squares;
};

struct cli_choice {
    char spec[CLI_CHOICE_SPEC]; /* "drafter" or "drafter+verifier" */
    char verifier[ESP_SPEC_TEXT];
    struct esp_session *session; /* NULL: closed */
    bool counting;               /* do iterations go to `acceptance`? */
    struct esp_acceptance acceptance;
    cJSON *steps; /* [nodes, accepted] of every iteration is added to it; NULL: nowhere */
    /* Speed in tokens per second, times in ms, tokens and iterations of a continuation. */
    struct cli_series speed, first_token, token, tokens, iterations;
    double latest; /* speed of the last run that was counted; 0: it gave no token */
};

void cli_count(struct cli_series *series, double value);
double cli_mean(const struct cli_series *series);      /* 0 of nothing */
double cli_deviation(const struct cli_series *series); /* of a sample */
/* An object with mean and deviation. */
void cli_add_series(cJSON *to, const char *name, const struct cli_series *series);

/* Opens a session for `spec` and sets all figures to nothing. `session` says the rest of its
 * settings; its observer is replaced, so the choice must stay where it is. Says on standard
 * error what there is no room for. Returns 0, or a negative status with a sentence. */
int cli_choice_open(struct cli_choice *choice, const char *spec, struct esp_engine *engine,
                    const struct esp_session_options *session, char *err, size_t errlen);
void cli_choice_close(struct cli_choice *choice); /* keeps the figures */

/* Continues a prompt, of which at most `prompt_tokens` tokens are taken, by at most `tokens`.
 * Returns 0, also when interrupted, or a negative status with a sentence. */
int cli_choice_run(struct cli_choice *choice, const char *prompt, size_t length,
                   int prompt_tokens, int tokens, char *err, size_t errlen);
/* Adds the last run to the figures. */
void cli_choice_count(struct cli_choice *choice);

#endif
