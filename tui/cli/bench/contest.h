/* contest.h - which drafter is fastest at one temperature, found in a given time.
 *
 * Successive halving (Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and
 * hyperparameter optimization", sec. 3): all candidates continue some prompts, the slower half
 * leaves, and those that stay get the time of those that left. In a round every candidate that
 * is left continues the same prompt, plain decoding among them, which never leaves: a speedup
 * is over plain decoding on the same prompts, and only whole rounds count.
 */
#ifndef ESP_CLI_CONTEST_H
#define ESP_CLI_CONTEST_H

#include "tui/cli/bench/choice.h"
#include "tui/cli/bench/prompt_list.h"

enum { CLI_CANDIDATES = 24 };

struct cli_candidate {
    struct cli_choice choice;
    bool left;      /* has it left the contest? */
    int rounds;     /* that it was in */
    double speedup; /* over plain decoding in these */
    /* Logarithm of its speed over that of plain decoding, round by round: what holds up the
     * machine longer than a round is in neither. */
    struct cli_series advantage;
};

struct cli_contest {
    struct cli_candidate *candidate; /* (count); plain decoding first, until it is sorted */
    int count;
    int rounds;        /* that count */
    int tokens;        /* new ones in a round; 0: as many as the time allows */
    int prompt_tokens; /* of each prompt at most */
    double temperature;
    const struct cli_prompts *prompts; /* one at least */
    int at;                            /* whose turn it is */
    double begin, end;                 /* seconds of esp_clock(); set by cli_contest_run() */
    /* Is called before each continuation: 0 to 1 of the contest's time is over. NULL: not. */
    void (*progress)(void *user, const struct cli_contest *contest, double share);
    void *user;
};

/* Opens a session for each of `specs` (NULL-terminated), the first of which is "ar". One that
 * cannot be opened is told on standard error and left out, unless it is the first. */
int cli_contest_open(struct cli_contest *contest, struct esp_engine *engine,
                     const struct esp_session_options *session, const char *const *specs,
                     char *err, size_t errlen);
/* Measures for about `seconds`, at least one round for each time that half of them leave; ends
 * early when interrupted. Then the candidates are in order: who was in more rounds first, the
 * faster first among those. Returns 0, or a negative status with a sentence. */
int cli_contest_run(struct cli_contest *contest, double seconds, char *err, size_t errlen);
void cli_contest_close(struct cli_contest *contest);

#endif
