/* Chi-square tests on the toy backend. Its passes are cheap, so the tests use many tokens and
 * detect even small biases. The tests run complete sessions at several temperatures and values
 * of top-p. The drafters sample their tokens. In some sessions, the node limit or the context
 * cuts off trees. A correct program fails with a probability of one in a thousand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "engine/lossless.h"
#include "tests/toy.h"

enum { VOCABULARY = 12, CONTEXT = 40, TOKENS = 5 };
#ifdef __SANITIZE_ADDRESS__
enum { TRIALS = 100, QUICK_TRIALS = 100 };
#else
enum { TRIALS = 1500, QUICK_TRIALS = 300 };
#endif
static const double FALSE_ALARMS = 1e-3;

static struct toy toy;
static char err[512];
static int tests;
static double worst_p;
static char worst[160];

static const char *const drafters[] = {
    "ar",
    "linear:K=3",
    "assisted",
    "ngram",
    "fixed:D=3",
    "fixed:D=3,prune=stop",
    "dynatree",
    "dynatree:history=price",
    "dynatree:D0=2,Dmax=4,rhostop=0.02,rhodeep=0.1,N=7",
    "dynatree:draws=topk",
    "dynatree:root=draft,history=proportional",
    "iid:K=3,L=3",
    "iid:K=8,L=2",
    "iid:K=1,L=4",
    "delayed:K=3,L1=1,L2=2",
    "specinfer:expansion=2.2.1",
    "specinfer:expansion=1.3,draws=topk",
    "eagle2:depth=3,k=3,N=8",
    "optimal:N=8",
    "salf:N=8",
    "suffix",
    "recycle",
    "recycle:cost=off,N=8",
    "hybrid:N=8",
    "sequoia:learn=off,N=8",
    "sequoia:learn=off,N=8,draws=topk",
    "dyspec:N=8",
    "dyspec-layer:N=8",
    "goodput:N=8",
    "goodput:N=24",
    NULL,
};

/* cheap_pass() returns the cost of a draft pass, and cheap_rows() returns the cost of a target
 * pass. The costs are so low that drafter goodput drafts many nodes. Beginning with the seventh
 * row, each row of a target pass costs more. So the drafter must compare the cost of more rows
 * with the cost of another draft pass. */
static double cheap_pass(int rows)
{
    return 0.01 + 0.001 * rows;
}

static double cheap_rows(int rows)
{
    return 1 + 0.01 * rows + (rows > 6 ? 0.1 * (rows - 6) : 0);
}

/* Opens a session. Returns NULL if this drafter and this verifier cannot be combined. */
static struct esp_session *open_session(const char *drafter, const char *verifier,
                                        uint64_t seed, double temperature, double top_p)
{
    struct esp_session_options options = {.drafter = drafter,
                                          .verifier = verifier,
                                          .values.temperature = temperature,
                                          .values.top_p = top_p,
                                          .values.seed = seed};
    struct esp_session *session;
    int32_t prompt[3] = {1, 2, 3};
    if (esp_session_open(&session, &toy.engine, &options, err, sizeof err) < 0)
        return NULL;
    session->costs.planted[ESP_COST_DRAFT] = cheap_pass;
    session->costs.planted[ESP_COST_VERIFY] = cheap_rows;
    CHECK(esp_session_prompt(session, prompt, 3, err, sizeof err) == ESP_OK, "%s", err);
    return session;
}

static struct esp_lossless measure(struct esp_session *session, int trials)
{
    struct esp_lossless_plan plan = {.trials = trials, .tokens = TOKENS};
    struct esp_lossless result;
    CHECK(esp_lossless_measure(session, &plan, &result, err, sizeof err) == ESP_OK, "%s", err);
    return result;
}

static void add_pair(const char *drafter, const char *verifier, double temperature,
                     double top_p)
{
    struct esp_session *session =
        open_session(drafter, verifier, (uint64_t)tests, temperature, top_p);
    if (!session)
        return;
    const int trials = check_quick() ? QUICK_TRIALS : TRIALS;
    struct esp_lossless result = measure(session, trials);
    CHECK(result.impossible == 0, "%s, %s: tokens of probability 0", drafter, verifier);
    CHECK(result.tokens == trials * TOKENS);
    for (int i = 0; i < ESP_LOSSLESS_TEST_COUNT; i++, tests++)
        if (result.test[i].p < worst_p) {
            worst_p = result.test[i].p;
            snprintf(worst, sizeof worst, "%s with %s at %g, top-p %g: %s", drafter, verifier,
                     temperature, top_p, esp_lossless_test_name(i));
        }
    esp_session_close(session);
}

/* Tests all pairs of drafter and verifier. `nodes` is the maximum number of nodes of a tree, so
 * some trees do not fit. If `copy` is set, the draft is a copy of the target, which drafts in
 * the target's KV cache. */
static void check_drafts(const struct esp_backend_ops *ops, bool copy, int nodes,
                         double temperature, double top_p)
{
    tests = 0;
    worst_p = 1;
    toy_open(&toy, VOCABULARY, CONTEXT, nodes, 3);
    toy.engine.backend->ops = ops;
    if (copy)
        toy_join(&toy);
    for (int d = 0; drafters[d]; d++)
        for (int v = 0; esp_verifiers[v]; v++)
            if (ops == &toy_backend || (esp_verifiers[v]->lossless & ESP_DRAW_SWOR))
                add_pair(drafters[d], esp_verifiers[v]->name, temperature, top_p);
    toy_close(&toy);
    CHECK(tests > (ops == &toy_backend ? 250 : 100), "only %d tests", tests);
    CHECK(worst_p > FALSE_ALARMS / 4 / tests, "%s: p = %g", worst, worst_p);
}

static void check_pairs(const struct esp_backend_ops *ops, int nodes, double temperature,
                        double top_p)
{
    check_drafts(ops, false, nodes, temperature, top_p);
}

TEST(pairs_follow_the_target)
{
    check_pairs(&toy_backend, 64, 1, 1);
}

TEST(pairs_follow_the_target_at_low_temperature)
{
    check_pairs(&toy_backend, 64, 0.4, 1);
}

TEST(pairs_follow_the_target_with_top_p)
{
    check_pairs(&toy_backend, 64, 1.3, 0.8);
}

TEST(pairs_follow_the_target_when_trees_do_not_fit)
{
    check_pairs(&toy_backend, 5, 1, 1);
}

/* If every call has to wait for a device, drafters draw children before they know whether these
 * children are needed. */
TEST(pairs_follow_the_target_when_children_are_drawn_ahead)
{
    const struct esp_backend_ops ops = toy_backend_that_waits();
    check_pairs(&ops, 64, 1, 1);
}

#ifndef __SANITIZE_ADDRESS__
/* The program refuses some pairs of drafter and verifier, because they would change the
 * distribution. With lossy=allow they run, and the test must detect the change. */
TEST(refused_pairs_change_the_distribution)
{
    static const char *const pairs[][2] = {
        {"fixed:D=3", "traversal:lossy=allow"},
        {"fixed:D=3", "naivetree:lossy=allow"},
        {"fixed:D=3", "swor:lossy=allow"},
        {"dynatree:draws=topk", "bv:lossy=allow"},
        {"dynatree:draws=topk", "khisti:lossy=allow"},
        {"linear:draws=topk", "naive:lossy=allow"},
        {"dynatree:draws=topk", "spectr:lossy=allow"},
        {"dynatree:draws=topk", "specinfer:lossy=allow"},
        {"iid:K=3,L=3", "greedy:lossy=allow"},
    };
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 3);
    toy.closeness = 0.2;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct esp_session *session = open_session(pairs[i][0], pairs[i][1], 1, 1, 1);
        CHECK(session, "%s", err);
        struct esp_lossless result = measure(session, TRIALS);
        CHECK(result.test[ESP_LOSSLESS_ratio].p < 1e-6, "%s with %s: p = %g", pairs[i][0],
              pairs[i][1], result.test[ESP_LOSSLESS_ratio].p);
        esp_session_close(session);
    }
    toy_close(&toy);
}
#endif

/* The draft is a copy of the target in the target's KV cache. In the toy backend, a pass of the
 * target fails if it sees a row of the copy. */
TEST(own_copies_follow_the_target)
{
    check_drafts(&toy_backend, true, 64, 0.8, 0.95);
}
