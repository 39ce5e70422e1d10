/* contest.h - finds the fastest drafter at one temperature, in a given time.
 *
 * It uses successive halving (Jamieson and Talwalkar 2016, "Non-stochastic best arm
 * identification and hyperparameter optimization", sec. 3). All candidates continue some
 * prompts. Then the slower half leaves, and its time goes to the other candidates. In a round,
 * every candidate that has not left continues the same prompt. Plain decoding is a candidate
 * that never leaves. Therefore every speedup compares with plain decoding on the same prompts.
 * Only complete rounds are counted.
 */
#ifndef ESP_CLI_CONTEST_H
#define ESP_CLI_CONTEST_H

#include "tui/cli/bench/choice.h"
#include "tui/cli/bench/prompt_list.h"

enum { CLI_CANDIDATES = 24 };

struct cli_candidate {
    struct cli_choice choice;
    bool left;      /* true if the candidate has left the contest */
    int rounds;     /* number of rounds in which the candidate took part */
    double speedup; /* speedup over plain decoding in these rounds */
    /* For each round, the logarithm of the speedup over plain decoding in the same round. A
     * slowdown of the machine that lasts longer than a round does not change this ratio. */
    struct cli_series advantage;
};

struct cli_contest {
    struct cli_candidate *candidate; /* (count) before sorting, plain decoding is first */
    int count;
    int rounds;        /* number of complete rounds */
    int tokens;        /* new tokens in a round; 0: as many as the time allows */
    int prompt_tokens; /* largest number of tokens of each prompt */
    double temperature;
    const struct cli_prompts *prompts; /* at least one */
    int at;                            /* index of the next prompt, modulo the prompt count */
    double begin, end;                 /* times of esp_clock() in s, set by cli_contest_run() */
    /* If not NULL, this is called before each continuation. `share` is the fraction of the
     * contest's time that has passed, from 0 to 1. */
    void (*progress)(void *user, const struct cli_contest *contest, double share);
    void *user;
};

/* Opens a session for each of `specs` (NULL-terminated). The first spec must be "ar" (plain
 * decoding), and it is an error if "ar" cannot be opened. If any other spec cannot be opened,
 * prints the reason on standard error and leaves the spec out. */
int cli_contest_open(struct cli_contest *contest, struct esp_engine *engine,
                     const struct esp_session_options *session, const char *const *specs,
                     char *err, size_t errlen);
/* Measures for about `seconds`, but at least one round before and after each halving. Ends
 * early when interrupted. Then sorts the candidates. The candidates that stayed to the end
 * come first. Candidates with more rounds come before candidates with fewer. If the numbers of
 * rounds are the same, the larger speedup comes first. Returns 0, or a negative status with a
 * message. */
int cli_contest_run(struct cli_contest *contest, double seconds, char *err, size_t errlen);
void cli_contest_close(struct cli_contest *contest);

#endif
