/* contest.h - finds the fastest drafter at one temperature, in a given time.
 *
 * Successive halving (Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and
 * hyperparameter optimization", sec. 3): all candidates continue some prompts, the slower half
 * leaves, and its time goes to those that stay. In a round, every candidate that stayed
 * continues the same prompt. Plain decoding is a candidate that never leaves, so every speedup
 * compares with plain decoding on the same prompts. Only complete rounds are counted.
 */
#ifndef ESP_CLI_CONTEST_H
#define ESP_CLI_CONTEST_H

#include "tui/cli/bench/choice.h"
#include "tui/cli/bench/prompt_list.h"

enum { CLI_CANDIDATES = 24 };

struct cli_candidate {
    struct cli_choice choice;
    bool left;      /* has left the contest */
    int rounds;     /* rounds that the candidate took part in */
    double speedup; /* speedup over plain decoding in these rounds */
    /* For each round, the logarithm of its speed divided by that of plain decoding in the same
     * round. A slowdown of the machine that lasts longer than a round cancels out. */
    struct cli_series advantage;
};

struct cli_contest {
    struct cli_candidate *candidate; /* (count) plain decoding first, until they are sorted */
    int count;
    int rounds;        /* complete rounds */
    int tokens;        /* new tokens in a round; 0 means as many as the time allows */
    int prompt_tokens; /* maximum number of tokens of each prompt */
    double temperature;
    const struct cli_prompts *prompts; /* at least one */
    int at;                            /* index of the next prompt, modulo the prompt count */
    double begin, end;                 /* by esp_clock(), in s; set by cli_contest_run() */
    /* If not NULL, called before each continuation. `share` is the part of the contest's time
     * that has passed, 0 to 1. */
    void (*progress)(void *user, const struct cli_contest *contest, double share);
    void *user;
};

/* Opens a session for each of `specs` (NULL-terminated). The first must be "ar", and it is an
 * error if it cannot be opened. Any other spec that cannot be opened is reported on standard
 * error and left out. */
int cli_contest_open(struct cli_contest *contest, struct esp_engine *engine,
                     const struct esp_session_options *session, const char *const *specs,
                     char *err, size_t errlen);
/* Measures for about `seconds`, but at least one round before and after each halving. Ends
 * early when interrupted. Then sorts the candidates: first those that stayed, then those that
 * took part in more rounds, then the faster ones. Returns 0, or a negative status with a
 * message. */
int cli_contest_run(struct cli_contest *contest, double seconds, char *err, size_t errlen);
void cli_contest_close(struct cli_contest *contest);

#endif
