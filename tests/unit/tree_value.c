/* Tests tree_value.c. It computes the mean number of tokens that a tree gives, with the
 * verifiers' formulas. On average, sessions with these verifiers must commit the same
 * number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"
#include "engine/train/tree_value.h"

enum { TOKENS = 6, SIMULATED = 3000, DRAWN = 600, QUICK = 10 };

static int repeat(int times)
{
    return check_quick() ? times / QUICK : times;
}

/* Holds the tokens that were drawn from the draft after the prompt, and both models'
 * distributions along these paths. */
struct roots {
    struct esp_rollouts rollouts;
    double p[ESP_ROLLOUT_ROWS][TOKENS], q[ESP_ROLLOUT_ROWS][TOKENS];
    const double *p_at[ESP_ROLLOUT_ROWS], *q_at[ESP_ROLLOUT_ROWS];
};

static void look(struct roots *r, int row, const struct drafting *d, const int32_t *more,
                 int count)
{
    int32_t text[DRAFTING_PROMPT + 2 * ESP_ACTION_LENGTH] = {1, 0, 1};
    memcpy(text + DRAFTING_PROMPT, more, (size_t)count * sizeof *more);
    toy_distribution(&d->toy, false, text, DRAFTING_PROMPT + count, r->p[row]);
    toy_distribution(&d->toy, true, text, DRAFTING_PROMPT + count, r->q[row]);
    r->p_at[row] = r->p[row];
    r->q_at[row] = r->q[row];
}

static int32_t draw(const double *q, unsigned long long *state)
{
    double u = check_uniform(state);
    int x = 0;
    while (x < TOKENS - 1 && u >= q[x])
        u -= q[x++];
    return x;
}

static void roll_out(struct roots *r, const struct drafting *d, unsigned long long *state)
{
    int32_t text[2 * ESP_ACTION_LENGTH];
    for (int stem = 0; stem <= ESP_ACTION_LENGTH; stem++) {
        look(r, stem, d, text, stem);
        for (int k = 0; k < ESP_ACTION_PATHS; k++)
            for (int i = 0, row = stem; i < ESP_ACTION_LENGTH; i++) {
                text[stem + i] = r->rollouts.path[stem][k][i] = draw(r->q[row], state);
                row = esp_rollout_row(stem, k, i);
                if (i < ESP_ACTION_LENGTH - 1)
                    look(r, row, d, text, stem + i + 1);
            }
        if (stem < ESP_ACTION_LENGTH)
            text[stem] = r->rollouts.stem[stem] = draw(r->q[stem], state);
    }
}

/* Returns the mean number of tokens of a session's iterations. Sets *error to its standard
 * error. */
static double simulate(struct drafting *d, const char *rule, struct esp_action action,
                       double *error)
{
    char spec[64];
    double sum = 0, square = 0;
    const int times = repeat(SIMULATED);
    snprintf(spec, sizeof spec, "delayed:K=%d,L1=%d,L2=%d", action.paths, action.stem,
             action.branch);
    drafting_set(d, "drafter", spec);
    drafting_set(d, "verifier", rule);
    for (int i = 0; i < times; i++) {
        int before, after;
        drafting_restart(d, (unsigned long long)i + 1);
        esp_session_tokens(d->session, &before);
        CHECK(drafting_step(d), "%s", d->err);
        esp_session_tokens(d->session, &after);
        sum += after - before;
        square += (double)(after - before) * (after - before);
    }
    const double mean = sum / times;
    *error = sqrt((square / times - mean * mean) / times);
    return mean;
}

static void check_rule(const char *rule)
{
    static const struct esp_action actions[] = {{1, 3, 0}, {3, 0, 2}, {2, 1, 2}, {4, 2, 1}};
    static struct roots roots;
    static float expected[ESP_ACTIONS];
    double sum[4] = {0}, square[4] = {0};
    unsigned long long state = 17;
    struct drafting d;
    drafting_open(&d, &(struct drafting_setup){.drafter = "delayed",
                                               .vocabulary = TOKENS,
                                               .temperature = 1,
                                               .draft_temp = "off"});
    const struct esp_distributions all = {TOKENS, roots.p_at, roots.q_at};
    const int times = repeat(DRAWN);
    CHECK(esp_tree_has_value(esp_verifier_find(rule)));
    for (int i = 0; i < times; i++) {
        roll_out(&roots, &d, &state);
        CHECK(esp_action_values(&roots.rollouts, &all, esp_verifier_find(rule), expected) == 0);
        for (int a = 0; a < 4; a++) {
            const double value = expected[esp_action_same(actions[a])];
            sum[a] += value / times;
            square[a] += value * value / times;
        }
    }
    CHECK(expected[0] == 1, "without a draft, an iteration commits %g tokens",
          (double)expected[0]);
    for (int a = 0; a < 4; a++) {
        double error, mean = simulate(&d, rule, actions[a], &error);
        error = sqrt(error * error + (square[a] - sum[a] * sum[a]) / times);
        CHECK(fabs(mean - sum[a]) < 4.5 * error,
              "%s, K=%d L1=%d L2=%d: %.4f, simulated %.4f +- %.4f", rule, actions[a].paths,
              actions[a].stem, actions[a].branch, sum[a], mean, error);
    }
    drafting_close(&d);
}

TEST(nss_gives_the_tokens_of_its_formula)
{
    check_rule("nss");
}
TEST(naivetree_gives_the_tokens_of_its_formula)
{
    check_rule("naivetree");
}
TEST(spectr_gives_the_tokens_of_its_formula)
{
    check_rule("spectr");
}
TEST(specinfer_gives_the_tokens_of_its_formula)
{
    check_rule("specinfer");
}
TEST(khisti_gives_the_tokens_of_its_formula)
{
    check_rule("khisti");
}
TEST(traversal_gives_the_tokens_of_its_order)
{
    check_rule("traversal");
}

/* ------------------------------------------------------------------ all possible trees */

enum { FEW = 3, TREES = FEW * FEW * FEW * FEW * FEW };

/* Holds a pair of models in which the next token depends only on the previous token. The root
 * is token 0. */
struct chain {
    double p[FEW][FEW], q[FEW][FEW];
    const double *p_at[ESP_ROLLOUT_ROWS], *q_at[ESP_ROLLOUT_ROWS];
    struct esp_rollouts rollouts;
};

static void make_chain(struct chain *c, unsigned long long *state)
{
    for (int last = 0; last < FEW; last++) {
        double sum[2] = {0};
        for (int x = 0; x < FEW; x++) {
            sum[0] += c->p[last][x] = 0.05 + check_uniform(state);
            sum[1] += c->q[last][x] = 0.05 + check_uniform(state);
        }
        for (int x = 0; x < FEW; x++) {
            c->p[last][x] /= sum[0];
            c->q[last][x] /= sum[1];
        }
    }
}

static int32_t draw_after(struct chain *c, int row, int32_t last, int next_row,
                          unsigned long long *state)
{
    double u = check_uniform(state);
    int x = 0;
    while (x < FEW - 1 && u >= c->q[last][x])
        u -= c->q[last][x++];
    c->p_at[row] = c->p[last];
    c->q_at[row] = c->q[last];
    c->p_at[next_row] = c->p[x];
    c->q_at[next_row] = c->q[x];
    return x;
}

static void draw_rollouts(struct chain *c, unsigned long long *state)
{
    int32_t end = 0;
    for (int stem = 0; stem <= ESP_ACTION_LENGTH; stem++) {
        for (int k = 0; k < ESP_ACTION_PATHS; k++)
            for (int i = 0, row = stem, last = end; i < ESP_ACTION_LENGTH; i++) {
                const int next = i < ESP_ACTION_LENGTH - 1 ? esp_rollout_row(stem, k, i) : row;
                const double *p = c->p_at[row], *q = c->q_at[row];
                last = c->rollouts.path[stem][k][i] = draw_after(c, row, last, next, state);
                if (next == row) { /* the last token of a path has no row in the tree */
                    c->p_at[row] = p;
                    c->q_at[row] = q;
                }
                row = next;
            }
        if (stem < ESP_ACTION_LENGTH)
            end = c->rollouts.stem[stem] = draw_after(c, stem, end, stem + 1, state);
    }
}

/* Returns the probability that a verifier continues from a node to its child `which`. The
 * node's token is `last`, and its children have the tokens `draws`. For one child, this follows
 * the definition of speculative sampling. Otherwise it uses the verifier's formula. */
static double step(const struct chain *c, const struct esp_verifier_ops *rule, int32_t last,
                   const int32_t *draws, int count, int which)
{
    double branch[2];
    const double p = c->p[last][draws[which]], q = c->q[last][draws[which]];
    if (count == 1 && !rule->without_q)
        return p < q ? p / q : 1;
    CHECK(rule->branching(c->p[last], c->q[last], FEW, draws, count, branch) == 0);
    return branch[which];
}

/* Returns the expected number of tokens of a tree with K = 2, L1 = 1, L2 = 2, with a formula
 * that holds only for this shape. The tree's stem is t[0], its paths are t[1] t[2] and t[3]
 * t[4]. */
static double value_by_hand(const struct chain *c, const struct esp_verifier_ops *rule,
                            const int32_t t[5])
{
    const int32_t first[2] = {t[1], t[3]}, second[2] = {t[2], t[4]};
    double below = 1;
    if (first[0] == first[1]) {
        double further = step(c, rule, first[0], second, 2, 0);
        if (second[0] != second[1])
            further += step(c, rule, first[0], second, 2, 1);
        below += step(c, rule, t[0], first, 2, 0) * (1 + further);
    } else {
        for (int k = 0; k < 2; k++)
            below += step(c, rule, t[0], first, 2, k) *
                     (1 + step(c, rule, first[k], second + k, 1, 0));
    }
    return 1 + step(c, rule, 0, t, 1, 0) * below;
}

/* Returns the mean value of all possible trees. Sets *variance to the variance. */
static double enumerate(const struct chain *c, const struct esp_verifier_ops *rule,
                        double *variance)
{
    double sum = 0, square = 0, total = 0;
    for (int i = 0; i < TREES; i++) {
        int32_t t[5];
        for (int j = 0, rest = i; j < 5; j++, rest /= FEW)
            t[j] = rest % FEW;
        const double chance = c->q[0][t[0]] * c->q[t[0]][t[1]] * c->q[t[1]][t[2]] *
                              c->q[t[0]][t[3]] * c->q[t[3]][t[4]];
        const double value = value_by_hand(c, rule, t);
        sum += chance * value;
        square += chance * value * value;
        total += chance;
    }
    CHECK(fabs(total - 1) < 1e-9);
    *variance = square - sum * sum;
    return sum;
}

/* The variance of the mean of n independent trees is the variance of one tree divided by n. The
 * limit is 4.5 standard deviations. By chance, this is exceeded once in 150,000 runs. */
TEST(the_estimate_is_unbiased)
{
    static const char *const rules[] = {"nss", "naivetree", "spectr", "specinfer", "khisti"};
    static struct chain c;
    static float value[ESP_ACTIONS];
    unsigned long long state = 23;
    const int a = esp_action_index((struct esp_action){2, 1, 2}), n = repeat(20000);
    const struct esp_distributions d = {FEW, c.p_at, c.q_at};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct esp_verifier_ops *rule = esp_verifier_find(rules[i]);
        double mean = 0, square = 0, variance;
        make_chain(&c, &state);
        const double exact = enumerate(&c, rule, &variance);
        for (int j = 0; j < n; j++) {
            draw_rollouts(&c, &state);
            CHECK(esp_action_values(&c.rollouts, &d, rule, value) == 0);
            mean += value[a] / n;
            square += (double)value[a] * value[a] / n;
        }
        CHECK(fabs(mean - exact) < 4.5 * sqrt(variance / n) + 1e-6,
              "%s: the mean of %d random trees is %.5f, the mean of all trees %.5f", rules[i],
              n, mean, exact);
        CHECK(fabs((square - mean * mean) / variance - 1) < 0.2, "%s: variance %g, not %g",
              rules[i], square - mean * mean, variance);
    }
}

/* With one draft, the formulas of all verifiers that read q give the same result as speculative
 * sampling. So the shortcut for one draft is valid for all of them. */
TEST(one_draft_is_speculative_sampling)
{
    static const char *const rules[] = {"naivetree", "spectr", "specinfer", "khisti"};
    unsigned long long state = 4;
    for (int round = 0; round < 50; round++) {
        double p[TOKENS], q[TOKENS], p_sum = 0, q_sum = 0;
        for (int x = 0; x < TOKENS; x++) {
            p_sum += p[x] = check_uniform(&state);
            q_sum += q[x] = check_uniform(&state);
        }
        for (int x = 0; x < TOKENS; x++) {
            p[x] /= p_sum;
            q[x] /= q_sum;
        }
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
            const int32_t token = round % TOKENS;
            double branch;
            CHECK(esp_verifier_find(rules[i])->branching(p, q, TOKENS, &token, 1, &branch) ==
                  0);
            CHECK(fabs(branch - esp_keep(p[token], q[token])) < 0.02, "%s: %g, not %g",
                  rules[i], branch, esp_keep(p[token], q[token]));
        }
    }
}
