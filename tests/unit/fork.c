/* Tests sessions that switch to a different text: a branch must continue like a new session
 * with the same text, and no row of the common prefix may be computed again. The scores of
 * tokens must follow from the target's distributions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/toy.h"

enum { VOCABULARY = 20, CONTEXT = 200, START = 40 };

static struct toy toy;
static char err[512];

static struct esp_session *open_session(const char *drafter, double temperature, uint64_t seed)
{
    struct esp_session *session;
    struct esp_session_options options = {.drafter = drafter,
                                          .repeatable = true,
                                          .values = {.seed = seed,
                                                     .temperature = temperature,
                                                     .draft_temp = ESP_DRAFT_OFF,
                                                     .ignore_eos = true}};
    CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) == ESP_OK, "%s",
          err);
    return session;
}

static int fork_to(struct esp_session *session, const int32_t *tokens, int count)
{
    struct esp_text_token text[CONTEXT];
    for (int i = 0; i < count; i++)
        text[i] = (struct esp_text_token){tokens[i], i < 4 ? ESP_TEXT_PROMPT : ESP_TEXT_CHOSEN};
    const int kept = esp_session_fork(session, text, count, err, sizeof err);
    CHECK(kept >= 0, "%s", err);
    return kept;
}

static int generate(struct esp_session *session, int count, int32_t *text)
{
    int status, length;
    esp_session_allow(session, count);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
    const int32_t *tokens = esp_session_tokens(session, &length);
    memcpy(text, tokens, (size_t)length * sizeof *text);
    return length;
}

static void prompt(struct esp_session *session)
{
    const int32_t tokens[4] = {3, 5, 7, 1};
    CHECK(esp_session_prompt(session, tokens, 4, err, sizeof err) == ESP_OK, "%s", err);
}

/* Goes back to the first `keep` tokens of a text and continues with two other tokens. A new
 * session with the same tokens must write the same text. */
static void check_branch(const char *drafter, double temperature, int keep)
{
    int32_t first[CONTEXT], branch[CONTEXT], fresh[CONTEXT];
    struct esp_session *session = open_session(drafter, temperature, 5);
    prompt(session);
    CHECK(generate(session, START, first) == 4 + START);
    struct esp_stats before, after;
    esp_session_stats(session, &before);
    memcpy(branch, first, sizeof first);
    branch[keep] = (first[keep] + 1) % VOCABULARY;
    branch[keep + 1] = 2;
    CHECK(fork_to(session, branch, keep + 2) == keep);
    esp_session_stats(session, &after);
    /* The next pass computes the row of the last token. */
    CHECK(after.prefill_rows - before.prefill_rows == 1,
          "%s: %d rows, not 1, were computed for two new tokens", drafter,
          (int)(after.prefill_rows - before.prefill_rows));
    CHECK(esp_session_set(session, "seed", "6", err, sizeof err) == ESP_OK);
    const int length = generate(session, START, branch);

    struct esp_session *other = open_session(drafter, temperature, 6);
    CHECK(esp_session_prompt(other, branch, keep + 2, err, sizeof err) == ESP_OK);
    CHECK(generate(other, START, fresh) == length);
    CHECK(memcmp(branch, fresh, (size_t)length * sizeof *fresh) == 0,
          "%s at %g: a branch from token %d differs from a fresh session", drafter, temperature,
          keep);
    esp_session_close(other);

    /* When the session returns to the first text, only the differing tokens are computed. */
    esp_session_stats(session, &before);
    CHECK(fork_to(session, first, 4 + START) == keep);
    esp_session_stats(session, &after);
    CHECK(after.prefill_rows - before.prefill_rows == 4 + START - 1 - keep);
    esp_session_close(session);
}

TEST(a_branch_writes_what_a_fresh_session_writes)
{
    static const char *const drafters[] = {"ar", "linear:K=4", "fixed:D=3,B=3,tau=0"};
    toy_open(&toy, VOCABULARY, CONTEXT, 40, 7);
    toy.closeness = 0.7;
    for (int i = 0; i < 3; i++)
        for (int keep = 1; keep < 4 + START; keep += 9) {
            check_branch(drafters[i], 0, keep);
            check_branch(drafters[i], 1, keep);
        }
    toy_close(&toy);
}

TEST(a_fork_that_only_shortens_or_changes_nothing_computes_nothing)
{
    int32_t text[CONTEXT];
    struct esp_stats before, after;
    toy_open(&toy, VOCABULARY, CONTEXT, 40, 8);
    struct esp_session *session = open_session("linear:K=4", 0, 1);
    prompt(session);
    const int length = generate(session, START, text);
    esp_session_stats(session, &before);
    CHECK(fork_to(session, text, length) == length);
    CHECK(fork_to(session, text, 10) == 10);
    CHECK(fork_to(session, text, 0) == 0);
    esp_session_stats(session, &after);
    CHECK(after.prefill_rows == before.prefill_rows);
    CHECK(fork_to(session, text, length) == 0, "the longer text can be restored");
    CHECK(esp_session_fork(session, &(struct esp_text_token){VOCABULARY, 0}, 1, err,
                           sizeof err) == ESP_E_ARGUMENT);
    esp_session_close(session);
    toy_close(&toy);
}

/* ------------------------------------------------------------------ scores */

static struct esp_token_score heard[CONTEXT];
static int positions[CONTEXT], heard_count;

static void listen(void *user, const struct esp_event *event)
{
    (void)user;
    const struct esp_iteration *it = event->iteration;
    for (int i = 0; event->type == ESP_EVENT_ITERATION && i < it->committed_count; i++) {
        CHECK(it->scores, "every iteration has scores");
        positions[heard_count] = it->position + i;
        heard[heard_count++] = it->scores[i];
    }
}

/* Compares the rank and the probabilities with the toy model's distribution at temperature
 * 1. */
static void check_score(const struct esp_token_score *score, const int32_t *text, int position,
                        const char *what)
{
    double p[VOCABULARY], entropy = 0;
    int rank = 1;
    toy_distribution(&toy, false, text, position, p);
    for (int x = 0; x < VOCABULARY; x++) {
        entropy -= p[x] > 0 ? p[x] * log2(p[x]) : 0;
        rank += p[x] > p[text[position]];
    }
    CHECK(score->count == ESP_LIKELY, "%s: %d likely tokens at %d", what, score->count,
          position);
    /* if a verifier has changed the target's row, the score of its token is unknown */
    CHECK((score->rank == 0 && isnan(score->p)) || fabs(score->p - p[text[position]]) < 1e-4,
          "%s: p of token %d is %g, not %g", what, position, (double)score->p,
          p[text[position]]);
    CHECK(fabs(score->entropy - entropy) < 1e-3, "%s: entropy %g, not %g", what,
          (double)score->entropy, entropy);
    CHECK(score->rank == (rank <= ESP_LIKELY ? rank : 0), "%s: rank %d, not %d", what,
          score->rank, rank);
    for (int i = 0; i < score->count; i++)
        CHECK(fabs(score->likely_p[i] - p[score->likely[i]]) < 1e-4 &&
              (i == 0 || score->likely_p[i] <= score->likely_p[i - 1]));
}

TEST(scores_are_those_of_the_target)
{
    static const char *const pairs[][2] = {
        {"ar", NULL},
        {"linear:K=4", NULL},
        {"dynatree", NULL},
        {"iid:K=2,L=3", "bv"},
        {"iid:K=3,L=2", "traversal"},
        {"iid:K=3,L=2", "khisti"},
        {"iid:K=3,L=2", "spectr"},
        {"fixed:D=3,B=3,tau=0", "swor"},
        {"iid:K=3,L=2", "specinfer"},
        {"ngram", NULL},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int sampled = 0; sampled < 2; sampled++) {
            int32_t text[CONTEXT];
            struct esp_token_score again[CONTEXT];
            struct esp_session_options options = {
                .drafter = pairs[i][0],
                .verifier = sampled ? pairs[i][1] : NULL,
                .observer = listen,
                .values = {.seed = 3, .temperature = sampled, .ignore_eos = true}};
            struct esp_session *session;
            toy_open(&toy, VOCABULARY, CONTEXT, 40, i + 1);
            toy.closeness = 0.6;
            if (esp_session_open(&session, &toy.engine, &options, err, sizeof err) < 0) {
                toy_close(&toy);
                CHECK(pairs[i][1] != NULL, "%s: %s", pairs[i][0], err);
                continue;
            }
            CHECK(esp_session_score(session, true, err, sizeof err) == ESP_OK, "%s", err);
            prompt(session);
            heard_count = 0;
            const int length = generate(session, START, text);
            CHECK(heard_count == length - 4);
            for (int j = 0; j < heard_count; j++)
                check_score(&heard[j], text, positions[j], pairs[i][0]);
            CHECK(esp_session_score_text(session, 1, length - 1, again, err, sizeof err) ==
                      ESP_OK,
                  "%s", err);
            for (int j = 1; j < length; j++)
                check_score(&again[j - 1], text, j, "again");
            CHECK(esp_session_score_text(session, length, 1, again, err, sizeof err) == ESP_OK);
            CHECK(again[0].rank == 0 && again[0].count == ESP_LIKELY,
                  "the score after the last token lists the likely next tokens");
            esp_session_close(session);
            toy_close(&toy);
        }
}

/* Text and random numbers must be the same with scores and without them. */
TEST(scores_do_not_change_the_text)
{
    int32_t with[CONTEXT], without[CONTEXT];
    toy_open(&toy, VOCABULARY, CONTEXT, 40, 11);
    toy.closeness = 0.6;
    for (int on = 0; on < 2; on++) {
        struct esp_session *session = open_session("fixed:D=3,B=3,tau=0", 1, 9);
        CHECK(esp_session_score(session, on, err, sizeof err) == ESP_OK);
        prompt(session);
        struct esp_token_score score[4];
        if (on)
            CHECK(esp_session_score_text(session, 1, 4, score, err, sizeof err) == ESP_OK);
        CHECK(generate(session, START, on ? with : without) == 4 + START);
        esp_session_close(session);
    }
    CHECK(memcmp(with, without, (4 + START) * sizeof *with) == 0);
    toy_close(&toy);
}
