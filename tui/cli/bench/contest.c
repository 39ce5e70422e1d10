/* contest.c - finds the fastest candidate by successive halving; see contest.h. */
#include "tui/cli/bench/contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/status.h"
#include "tui/cli/cli.h"
#include "tui/cli/session_json.h"
#include "viz/safe.h"

enum {
    FINALISTS = 3, /* maximum number of candidates in the last round, besides plain decoding */
    WARMUP = 16,   /* tokens that a candidate generates before it is measured */
    FEWEST_TOKENS = 16,
    MOST_TOKENS = 128, /* largest number of tokens in a round */
    ROUNDS = 6,        /* number of rounds wanted in the first part of the contest */
};

/* ------------------------------------------------------------------ sessions */

int cli_contest_open(struct cli_contest *c, struct esp_engine *engine,
                     const struct esp_session_options *session, const char *const *specs,
                     char *err, size_t errlen)
{
    c->candidate = calloc(CLI_CANDIDATES, sizeof *c->candidate);
    if (!c->candidate)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the results");
    c->temperature = session->values.temperature;
    for (int i = 0; specs[i] && c->count < CLI_CANDIDATES; i++) {
        struct cli_candidate *candidate = &c->candidate[c->count];
        int status =
            cli_choice_open(&candidate->choice, specs[i], engine, session, err, errlen);
        if (status < 0 && i == 0)
            return status;
        if (status < 0)
            esp_complain("%s is left out: %s", specs[i], err);
        c->count += status == ESP_OK;
    }
    return ESP_OK;
}

void cli_contest_close(struct cli_contest *c)
{
    for (int i = 0; i < c->count; i++)
        cli_choice_close(&c->candidate[i].choice);
    free(c->candidate);
    c->candidate = NULL;
    c->count = 0;
}

/* ------------------------------------------------------------------ rounds */

static void tell(const struct cli_contest *c)
{
    double share = (esp_clock() - c->begin) / (c->end - c->begin);
    if (c->progress)
        c->progress(c->user, c, share < 1 ? share : 1);
}

/* Lets all candidates that are still in the contest continue a prompt. Does not add the results
 * to the sums yet. */
static int continue_prompt(struct cli_contest *c, const struct cli_prompt *prompt, int tokens,
                           char *err, size_t errlen)
{
    int status = ESP_OK;
    for (int i = 0; i < c->count && status == ESP_OK && !cli_interrupted; i++) {
        if (c->candidate[i].left)
            continue;
        tell(c);
        status = cli_choice_run(&c->candidate[i].choice, prompt->text, prompt->length,
                                c->prompt_tokens, tokens, err, errlen);
    }
    return status;
}

/* Runs each candidate once. If the number of tokens in a round is not given, chooses it so that
 * the rounds fit into the available time. */
static int warm_up(struct cli_contest *c, double seconds, char *err, size_t errlen)
{
    struct esp_stats plain;
    int status = continue_prompt(c, &c->prompts->prompt[0], WARMUP, err, errlen);
    if (status < 0 || cli_interrupted || c->tokens > 0)
        return status;
    esp_session_stats(c->candidate[0].choice.session, &plain);
    double token =
        plain.generated_tokens > 0 ? plain.decode_seconds / plain.generated_tokens : 0;
    double all = token * c->count * ROUNDS * MOST_TOKENS;
    double tokens = all > seconds ? MOST_TOKENS * seconds / all : MOST_TOKENS;
    c->tokens = tokens > FEWEST_TOKENS ? (int)tokens : FEWEST_TOKENS;
    return ESP_OK;
}

static double last_speed(const struct cli_candidate *candidate)
{
    struct esp_stats s;
    esp_session_stats(candidate->choice.session, &s);
    return cli_speed(&s);
}

static void count_round(struct cli_contest *c)
{
    const double plain_now = last_speed(&c->candidate[0]);
    c->rounds++;
    for (int i = 0; i < c->count; i++) {
        struct cli_candidate *candidate = &c->candidate[i];
        if (candidate->left)
            continue;
        candidate->rounds++;
        const double now = last_speed(candidate);
        if (now > 0 && plain_now > 0)
            cli_count(&candidate->advantage, log(now / plain_now));
        cli_choice_count(&candidate->choice);
        double plain = cli_mean(&c->candidate[0].choice.speed);
        candidate->speedup = plain > 0 ? cli_mean(&candidate->choice.speed) / plain : 0;
    }
}

/* Runs at least one round, and further rounds until esp_clock() reaches `end`. */
static int run_rounds(struct cli_contest *c, double end, char *err, size_t errlen)
{
    int status;
    do {
        status = continue_prompt(c, &c->prompts->prompt[c->at++ % c->prompts->count], c->tokens,
                                 err, errlen);
        if (status == ESP_OK && !cli_interrupted)
            count_round(c);
    } while (status == ESP_OK && !cli_interrupted && esp_clock() < end);
    return status;
}

/* ------------------------------------------------------------------ eliminations */

static int rivals(const struct cli_contest *c)
{
    int n = 0;
    for (int i = 1; i < c->count; i++)
        n += !c->candidate[i].left;
    return n;
}

/* Returns how many parts a contest between n candidates and plain decoding has. After each part
 * except the last, half of the candidates are dropped. */
static int parts(int n)
{
    int parts = 1;
    for (; n > FINALISTS; n = (n + 1) / 2)
        parts++;
    return parts;
}

/* Removes the slower half of the candidates, but never plain decoding. Frees the caches of the
 * removed candidates. */
static void halve(struct cli_contest *c)
{
    for (int n = rivals(c) / 2; n > 0; n--) {
        struct cli_candidate *slowest = NULL;
        for (int i = 1; i < c->count; i++)
            if (!c->candidate[i].left &&
                (!slowest || c->candidate[i].speedup < slowest->speedup))
                slowest = &c->candidate[i];
        slowest->left = true;
        cli_choice_close(&slowest->choice);
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct cli_candidate *one = a, *other = b;
    if (one->left != other->left)
        return one->left ? 1 : -1;
    if (one->rounds != other->rounds)
        return one->rounds > other->rounds ? -1 : 1;
    return (one->speedup < other->speedup) - (one->speedup > other->speedup);
}

int cli_contest_run(struct cli_contest *c, double seconds, char *err, size_t errlen)
{
    const int count = parts(rivals(c));
    c->begin = esp_clock();
    c->end = c->begin + seconds;
    int status = warm_up(c, seconds / count, err, errlen);
    for (int part = 0; part < count && status == ESP_OK && !cli_interrupted; part++) {
        double now = esp_clock();
        if (part > 0)
            halve(c);
        status = run_rounds(c, now + (c->end - now) / (count - part), err, errlen);
    }
    /* Sessions keep the address of their choice, so they are closed before sorting moves
     * it. */
    for (int i = 0; i < c->count; i++)
        cli_choice_close(&c->candidate[i].choice);
    qsort(c->candidate, (size_t)c->count, sizeof *c->candidate, by_rank);
    return status;
}
