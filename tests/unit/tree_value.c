/* tree_value: the mean tokens of a tree, by the verifiers' formulas, are those that sessions
 * with these verifiers commit. */
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

/* All distributions of the rollouts behind the prompt, and the tokens, drawn from the draft. */
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

/* Mean tokens of an iteration of a session, and the error of the mean. */
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
    CHECK(expected[0] == 1, "no draft brings %g tokens", (double)expected[0]);
    for (int a = 0; a < 4; a++) {
        double error, mean = simulate(&d, rule, actions[a], &error);
        error = sqrt(error * error + (square[a] - sum[a] * sum[a]) / times);
        CHECK(fabs(mean - sum[a]) < 4.5 * error,
              "%s, K=%d L1=%d L2=%d: %.4f, simulated %.4f +- %.4f", rule, actions[a].paths,
              actions[a].stem, actions[a].branch, sum[a], mean, error);
    }
    drafting_close(&d);
}

TEST(nss_brings_what_its_formula_says)
{
    check_rule("nss");
}
TEST(naivetree_brings_what_its_formula_says)
{
    check_rule("naivetree");
}
TEST(spectr_brings_what_its_formula_says)
{
    check_rule("spectr");
}
TEST(specinfer_brings_what_its_formula_says)
{
    check_rule("specinfer");
}
TEST(khisti_brings_what_its_formula_says)
{
    check_rule("khisti");
}
TEST(traversal_brings_what_its_order_says)
{
    check_rule("traversal");
}

/* With one draft the formulas of all verifiers that read q are speculative sampling's, so that
 * the shortcut for one draft is theirs. */
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
