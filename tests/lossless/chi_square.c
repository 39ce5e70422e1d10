/* Chi-square tests on the built-in pair of models. For every allowed pair of drafter and
 * verifier, the generated tokens must follow the target's exact distributions
 * (engine/lossless.h). The seeds are fixed, so the result is always the same. If a change of
 * the program leads to other random numbers, a correct program fails with a probability of one
 * in a thousand. The tests must detect verifiers with a deliberate bias. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/folder.h"
#include "tests/foreign.h"
#include "engine/lossless.h"
#include "engine/session_parts.h"

enum { TRIALS = 24, QUICK_TRIALS = 6 };
enum { TOKENS = 12, MOST_RULES = 32 };
static const double FALSE_ALARMS = 1e-3; /* probability that a correct program fails */

static struct esp_engine *engine;
static char err[512];

/* Drafters with parameters that are not the defaults. With K=1 a tree is a single path, and
 * with learn=off nothing is stored on disk. */
static const char *const spellings[] = {"iid:K=1", "delayed:K=1", "specinfer:expansion=3.2.1",
                                        "sequoia:learn=off,draws=topk", NULL};

/* Opens a session. Returns NULL if this drafter and this verifier cannot be combined. */
static struct esp_session *open_session(const char *drafter, const char *verifier,
                                        uint64_t seed, double temperature, double top_p)
{
    static const char start[] = "Once upon a time there was";
    struct esp_session_options options = {
        .drafter = strcmp(drafter, "sequoia") == 0 ? "sequoia:learn=off" : drafter,
        .verifier = verifier,
        .values.temperature = temperature,
        .values.top_p = top_p,
        .values.seed = seed,
    };
    struct esp_session *session;
    int32_t tokens[64];
    if (esp_session_open(&session, engine, &options, err, sizeof err) < 0)
        return NULL;
    int count = esp_tokenize(engine, start, strlen(start), tokens, 64);
    CHECK(count > 0 && count <= 64);
    CHECK(esp_session_prompt(session, tokens, count, err, sizeof err) == ESP_OK, "%s", err);
    return session;
}

static struct esp_lossless measure(struct esp_session *session, int count)
{
    struct esp_lossless_plan plan = {.trials = count, .tokens = TOKENS};
    struct esp_lossless result;
    CHECK(esp_lossless_measure(session, &plan, &result, err, sizeof err) == ESP_OK, "%s", err);
    return result;
}

static double smallest_p(const struct esp_lossless *result)
{
    double p = result->impossible ? 0 : 1;
    for (int i = 0; i < ESP_LOSSLESS_TEST_COUNT; i++)
        p = fmin(p, result->test[i].p);
    return p;
}

/* The results of all pairs of drafter and verifier that have been measured. */
struct tally {
    int pairs;
    double worst_p; /* the smallest p-value of all tests */
    char worst[128];
    double ratio[MOST_RULES][ESP_LOSSLESS_BINS]; /* summed per verifier */
};

/* Measures a pair and adds the result to the tally. `rule` is the index of the verifier in
 * esp_verifiers, or -1 for the default verifier. */
static void add_pair(struct tally *tally, const char *drafter, int rule, double temperature,
                     double top_p)
{
    const char *verifier = rule < 0 ? NULL : esp_verifiers[rule]->name;
    struct esp_session *session =
        open_session(drafter, verifier, (uint64_t)tally->pairs + 1, temperature, top_p);
    if (!session)
        return;
    struct esp_lossless result = measure(session, check_quick() ? QUICK_TRIALS : TRIALS);
    double p = smallest_p(&result);
    tally->pairs++;
    if (p < tally->worst_p) {
        tally->worst_p = p;
        snprintf(tally->worst, sizeof tally->worst, "%s with %s at %g, top-p %g", drafter,
                 session->set.verifier->name, temperature, top_p);
    }
    for (int i = 0; i < ESP_LOSSLESS_BINS && rule >= 0; i++)
        tally->ratio[rule][i] += result.ratio[i];
    esp_session_close(session);
}

static void add_drafter(struct tally *tally, const char *drafter)
{
    for (int rule = 0; esp_verifiers[rule]; rule++)
        add_pair(tally, drafter, rule, 1, 1);
    add_pair(tally, drafter, -1, 0.6, 0.9);
}

TEST(every_allowed_pair_follows_the_target)
{
    struct tally tally = {.worst_p = 1};
    double even[ESP_LOSSLESS_BINS];
    int rules = 0;
    CHECK(esp_engine_open(&engine, NULL, err, sizeof err) == ESP_OK, "%s", err);
    for (int d = 0; esp_drafters[d]; d++)
        add_drafter(&tally, esp_drafters[d]->name);
    for (int d = 0; spellings[d]; d++)
        add_drafter(&tally, spellings[d]);
    CHECK(tally.pairs > 80, "only %d pairs", tally.pairs);
    while (esp_verifiers[rules])
        rules++;
    double least = FALSE_ALARMS / (ESP_LOSSLESS_TEST_COUNT * tally.pairs + rules);
    CHECK(tally.worst_p > least, "%s: p = %g", tally.worst, tally.worst_p);
    for (int i = 0; i < ESP_LOSSLESS_BINS; i++)
        even[i] = 1;
    for (int rule = 0; rule < rules; rule++) {
        double p = esp_chi_square_fit(tally.ratio[rule], even, ESP_LOSSLESS_BINS).p;
        CHECK(p > least, "%s with all its drafters: p = %g", esp_verifiers[rule]->name, p);
    }
    esp_engine_close(engine);
}

static void check_drafters(const struct esp_engine_options *options,
                           const char *const drafters[], int least)
{
    struct tally tally = {.worst_p = 1};
    CHECK(esp_engine_open(&engine, options, err, sizeof err) == ESP_OK, "%s", err);
    for (int d = 0; drafters[d]; d++)
        add_drafter(&tally, drafters[d]);
    CHECK(tally.pairs >= least, "only %d pairs", tally.pairs);
    CHECK(tally.worst_p > FALSE_ALARMS / (ESP_LOSSLESS_TEST_COUNT * tally.pairs), "%s: p = %g",
          tally.worst, tally.worst_p);
    esp_engine_close(engine);
}

static const char *const some_drafters[] = {"linear",  "iid",    "dyspec",
                                            "goodput", "hybrid", NULL};

/* The draft is a copy of the target, which drafts in the target's KV cache. q is the copy's
 * distribution. */
TEST(own_copies_follow_the_target)
{
    check_drafters(&(struct esp_engine_options){.draft = "self"}, some_drafters, 15);
}

/* The draft cannot draft a fifth of the target's tokens (q = 0), and the same text needs more
 * rows in the draft's cache than in the target's. */
TEST(drafts_of_another_vocabulary_do_not_change_the_distribution)
{
    static const enum foreign_kind kinds[] = {FOREIGN_EACH_FIFTH_REPLACED,
                                              FOREIGN_SENTENCEPIECE};
    static const char *const respell[] = {"respell", "respell:K=3", NULL};
    for (int i = 0; i < 2; i++) {
        foreign_draft(kinds[i]);
        struct esp_engine_options options = {.draft = folder_path(),
                                             .draft_match = ESP_MATCH_TOKENS};
        check_drafters(&options, some_drafters, 15);
        options.draft_match = ESP_MATCH_TEXT;
        check_drafters(&options, respell, 2);
    }
}

/* --------------------------------------------------------- verifiers with a deliberate bias */

/* A biased verifier. After a rejection, it draws the token from p, not from the residual. */
static int from_p(struct esp_verify *v, const struct esp_site *site, struct esp_residual *left)
{
    int first = site->draws[0];
    (void)left;
    return esp_verify_accept(v, first, esp_keep(v->p_of[first], v->q_of[first])) ? first : 0;
}

/* A biased verifier. It accepts draft tokens slightly too often. */
static int too_easily(struct esp_verify *v, const struct esp_site *site,
                      struct esp_residual *left)
{
    int first = site->draws[0];
    if (esp_verify_accept(v, first, esp_keep(1.3 * v->p_of[first], v->q_of[first])))
        return first;
    return esp_residual_refuse(v, site->node, 1, left, NULL);
}

TEST(planted_biases_are_found)
{
    const struct esp_verifier_ops wrong[] = {{.name = "from_p", .solve = from_p},
                                             {.name = "too_easily", .solve = too_easily}};
    /* enough trials to detect the bias with any draft temperature that a session learns */
    const int trials[] = {240, 800};
    CHECK(esp_engine_open(&engine, NULL, err, sizeof err) == ESP_OK, "%s", err);
    for (int i = 0; i < 2; i++) {
        struct esp_session *session = open_session("iid:K=2,L=4", "naivetree", 1, 1, 1);
        CHECK(session, "%s", err);
        session->set.verifier = &wrong[i];
        struct esp_lossless result = measure(session, trials[i]);
        CHECK(smallest_p(&result) < 1e-6, "%s: p = %g", wrong[i].name, smallest_p(&result));
        esp_session_close(session);
    }
    esp_engine_close(engine);
}
