/* Tests verifiers at a single node with a small vocabulary. The tests enumerate every draw of
 * the children (weighted by q) and every outcome of the verifier, which runs once for each
 * outcome. The distribution of the token must equal the target's to 1e-12. The acceptance rates
 * and branching probabilities of the verifier must equal the results of published formulas. No
 * verifier may accept more often than the theoretical maximum (the ceiling). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/enumerate.h"
#include "engine/verifiers/verifier.h"

enum { MOST_TOKENS = 6, MOST_CHILDREN = 4 };
static const double EXACT = 1e-12;

struct node {
    int n, k;
    double p[MOST_TOKENS], q[MOST_TOKENS];
};

static struct rig rig;
static struct node node;
static unsigned long long seed;

/* After the tested node, the target's distribution is p and the draft's is q. After a child,
 * one token has probability 1. Therefore, only the tested node affects the result. */
static void distribution(void *user, bool draft, const int32_t *tokens, int count,
                         double *values)
{
    const struct node *at = user;
    (void)tokens;
    for (int x = 0; x < at->n; x++)
        values[x] = count > 0 ? x == 0 : draft ? at->q[x] : at->p[x];
}

static void open_rig(unsigned draws)
{
    rig_open(&rig, node.n, 16, draws);
    rig.distribution = distribution;
    rig.user = &node;
}

/* ------------------------------------------------------------------ distributions */

enum shape { MILD, PEAKED, EQUAL, DISJOINT, CERTAIN_P, CERTAIN_Q, HOLES, SHAPES };

static void normalise(double *v, int n)
{
    double sum = 0;
    for (int x = 0; x < n; x++)
        sum += v[x];
    for (int x = 0; x < n; x++)
        v[x] /= sum;
}

static void make_node(enum shape shape, int n, int k)
{
    double power = shape == PEAKED ? 6 : 2;
    node.n = n;
    node.k = k;
    for (int x = 0; x < n; x++) {
        node.p[x] = pow(check_uniform(&seed), power) + 1e-3;
        node.q[x] = pow(check_uniform(&seed), power) + 1e-3;
        if (shape == DISJOINT)
            *(x % 2 ? &node.p[x] : &node.q[x]) = 0;
        if (shape == HOLES && check_uniform(&seed) < 0.4)
            *(check_uniform(&seed) < 0.5 ? &node.p[x] : &node.q[x]) = 0;
        if (shape == CERTAIN_P)
            node.p[x] = x == n - 1;
        if (shape == CERTAIN_Q)
            node.q[x] = x == n - 1;
    }
    node.p[n - 1] += shape == HOLES;
    node.q[0] += shape == HOLES;
    normalise(node.p, n);
    normalise(node.q, n);
    if (shape == EQUAL)
        memcpy(node.q, node.p, sizeof node.q);
}

/* ------------------------------------------------------------------ enumeration */

struct law {
    double token[MOST_TOKENS]; /* probability of each token as the first output token */
    double accepted;           /* probability that the first output token is a child */
};

/* Runs all outcomes of the verifier for the current children. Adds their probabilities, times
 * `weight`, to *law. */
static void add_outcomes(const struct esp_verifier_ops *rule, double weight, struct law *law)
{
    enumerate_start(&rig.all);
    do {
        int32_t output[8];
        rig_run(&rig, rule);
        rig_output(&rig, output);
        double part = weight * rig.all.probability;
        law->token[output[0]] += part;
        if (rig.verify.path_length > 0)
            law->accepted += part;
    } while (enumerate_next(&rig.all));
}

/* For each current child, compares two probabilities: the branching probability from the
 * verifier's formula, and the probability that the verifier accepts the child. */
static void check_branching(const struct esp_verifier_ops *rule, const int32_t *children)
{
    struct law law = {{0}, 0};
    double branch[MOST_CHILDREN], sum = 0;
    int status = rule->branching(node.p, node.q, node.n, children, node.k, branch);
    CHECK(status == ESP_OK);
    add_outcomes(rule, 1, &law);
    for (int i = 0; i < node.k; i++) {
        double got = law.token[children[i]];
        bool first = true;
        CHECK(fabs(branch[i] - got) < EXACT,
              "%s: branching to %d: formula %.15f, verifier %.15f", rule->name, children[i],
              branch[i], got);
        for (int j = 0; j < i; j++)
            first = first && children[j] != children[i];
        sum += first ? branch[i] : 0;
    }
    CHECK(fabs(sum - law.accepted) < EXACT);
}

/* Draws child number `drawn` and all later children, in all possible ways. `weight` is the
 * probability of the children that were drawn before. For draws without replacement, `rest` is
 * q without these children, normalised. */
static void add_draws(const struct esp_verifier_ops *rule, bool replace, int drawn,
                      int32_t *children, const double *rest, double weight, struct law *law)
{
    if (drawn == node.k) {
        rig_reset(&rig);
        for (int i = 0; i < node.k; i++)
            esp_tree_draw(&rig.tree, 0, children[i], node.q[children[i]]);
        add_outcomes(rule, weight, law);
        if (rule->branching)
            check_branching(rule, children);
        return;
    }
    for (int x = 0; x < node.n; x++) {
        double left[MOST_TOKENS], sum = 0;
        if (!(rest[x] > 0))
            continue;
        for (int y = 0; y < node.n; y++)
            sum += left[y] = !replace && x == y ? 0 : rest[y];
        for (int y = 0; y < node.n && sum > 0; y++)
            left[y] /= sum;
        children[drawn] = x;
        if (sum > 0)
            add_draws(rule, replace, drawn + 1, children, left, weight * rest[x], law);
        else { /* all tokens with q > 0 have been drawn, so the node has fewer children */
            int k = node.k;
            node.k = drawn + 1;
            add_draws(rule, replace, node.k, children, left, weight * rest[x], law);
            node.k = k;
        }
    }
}

static struct law law_of(const struct esp_verifier_ops *rule, bool replace)
{
    int32_t children[MOST_CHILDREN];
    struct law law = {{0}, 0};
    add_draws(rule, replace, 0, children, node.q, 1, &law);
    return law;
}

static void check_rule(const struct esp_verifier_ops *rule, bool replace, enum shape shape)
{
    struct law law = law_of(rule, replace);
    double ceiling = esp_acceptance_ceiling(node.p, node.q, node.n, node.k);
    for (int x = 0; x < node.n; x++)
        CHECK(fabs(law.token[x] - node.p[x]) < EXACT,
              "%s, %d tokens, %d children, shape %d: token %d has %.15f, target %.15f",
              rule->name, node.n, node.k, shape, x, law.token[x], node.p[x]);
    if (!replace)
        return;
    CHECK(law.accepted < ceiling + EXACT, "%s accepts %.15f, ceiling %.15f", rule->name,
          law.accepted, ceiling);
    if (!rule->acceptance_rate)
        return;
    double rate = rule->acceptance_rate(node.p, node.q, node.n, node.k);
    if (strcmp(rule->name, "khisti") == 0) {
        CHECK(rate < law.accepted + EXACT, "khisti: bound %.15f, rule %.15f", rate,
              law.accepted);
        CHECK(law.accepted > ceiling - 0.01, "khisti accepts %.6f, ceiling %.6f", law.accepted,
              ceiling);
    } else {
        CHECK(fabs(rate - law.accepted) < EXACT, "%s: acceptance rate %.15f, rule %.15f",
              rule->name, rate, law.accepted);
    }
}

static void check_all_rules(enum shape shape, int n, int k)
{
    make_node(shape, n, k);
    for (int i = 0; esp_verifiers[i]; i++) {
        const struct esp_verifier_ops *rule = esp_verifiers[i];
        if (rule->greedy || (rule->single_path && k > 1))
            continue;
        if (rule->lossless & ESP_DRAW_IID) {
            open_rig(ESP_DRAW_IID);
            check_rule(rule, true, shape);
            rig_close(&rig);
        }
        if ((rule->lossless & ESP_DRAW_SWOR) && k <= n) {
            open_rig(ESP_DRAW_SWOR);
            check_rule(rule, false, shape);
            rig_close(&rig);
        }
    }
}

TEST(every_verifier_keeps_the_target_at_a_node)
{
    seed = 4;
    for (int n = 3; n <= 6; n++)
        for (int k = 1; k <= 4; k++)
            for (int trial = n + k < 8 ? 20 : n + k < 9 ? 8 : 3; trial > 0; trial--)
                check_all_rules(trial % 2 ? MILD : PEAKED, n, k);
}

TEST(every_verifier_keeps_the_target_in_degenerate_cases)
{
    seed = 5;
    for (enum shape shape = EQUAL; shape < SHAPES; shape++)
        for (int n = 2; n <= 4; n++)
            for (int k = 1; k <= 3; k++)
                check_all_rules(shape, n, k);
}

/* ----------------------------------------------------- faulty verifiers must fail the tests */

/* A faulty verifier with the most common mistake: after a rejection, it samples from p instead
 * of the residual. */
static int wrong_solve(struct esp_verify *v, const struct esp_site *site,
                       struct esp_residual *left)
{
    int first = site->draws[0];
    (void)left;
    return esp_verify_accept(v, first, esp_keep(v->p_of[first], v->q_of[first])) ? first : 0;
}

/* A faulty verifier with a less obvious mistake: in recursive rejection sampling, it subtracts
 * q only after the first rejection. */
static int forgetful_solve(struct esp_verify *v, const struct esp_site *site,
                           struct esp_residual *p)
{
    for (int i = 0; i < site->count; i++) {
        int draft = site->draws[i];
        if (esp_verify_accept(v, draft, esp_keep(esp_residual_of(v, p, draft), v->q_of[draft])))
            return draft;
        if (i == 0)
            esp_residual_refuse(v, site->node, 1, p, NULL);
    }
    return 0;
}

static double worst_error(int (*solve)(struct esp_verify *, const struct esp_site *,
                                       struct esp_residual *))
{
    const struct esp_verifier_ops wrong = {
        .name = "wrong", .lossless = ESP_DRAW_IID, .solve = solve};
    open_rig(ESP_DRAW_IID);
    struct law law = law_of(&wrong, true);
    double error = 0;
    rig_close(&rig);
    for (int x = 0; x < node.n; x++)
        error = fmax(error, fabs(law.token[x] - node.p[x]));
    return error;
}

TEST(wrong_residuals_are_detected)
{
    double wrong = 0, forgetful = 0;
    seed = 6;
    for (int trial = 0; trial < 10; trial++) {
        make_node(MILD, 4, 2);
        wrong = fmax(wrong, worst_error(wrong_solve));
        forgetful = fmax(forgetful, worst_error(forgetful_solve));
    }
    CHECK(wrong > 0.01 && forgetful > 0.001, "%g, %g", wrong, forgetful);
}
