/* Tests the recording of the probabilities that formulas give (esp_session_explain). Recorded
 * values must equal those that the formula functions give for the distributions at each node.
 * The test computes these distributions again from the text. Recording must not change a token.
 * Without a request, no values may be recorded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "viz/formula.h"
#include "tests/toy.h"
#include "engine/verifiers/verifier.h"

enum { VOCABULARY = 12, CONTEXT = 140, TOKENS = 60 };

static const char *const drafters[] = {"iid:K=3,L=3", "delayed",   "linear", "dyspec:N=10",
                                       "dynatree",    "specinfer", "ngram"};
enum { DRAFTERS = sizeof drafters / sizeof *drafters };

static struct toy toy;
static char err[512];

static struct esp_session *open_session(const char *drafter, const char *verifier)
{
    struct esp_session_options options = {
        .drafter = drafter,
        .verifier = verifier,
        .values = {.temperature = 1, .draft_temp = ESP_DRAFT_OFF, .seed = 5}};
    struct esp_session *session;
    int32_t prompt[4] = {3, 4, 3, 4};
    if (esp_session_open(&session, &toy.engine, &options, err, sizeof err) < 0)
        return NULL;
    CHECK(esp_session_prompt(session, prompt, 4, err, sizeof err) == ESP_OK, "%s", err);
    return session;
}

static void write_text(struct esp_session *session)
{
    esp_session_allow(session, TOKENS);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    CHECK(session->length == 4 + TOKENS, "%s", err);
}

/* ------------------------------------------------------------------ numbers */

static void distribution_after(const struct esp_session *s, bool draft, int node,
                               double *values)
{
    const struct esp_node *nodes = s->tree.tree.nodes;
    int32_t text[CONTEXT];
    int length = s->iteration.position;
    memcpy(text, s->text, sizeof(int32_t) * (size_t)length);
    for (int u = node; u > 0; u = nodes[u].parent)
        text[length - 1 + nodes[u].depth] = nodes[u].token;
    toy_distribution(&toy, draft, text, length + nodes[node].depth, values);
}

static bool same(float recorded, double formula)
{
    return isnan(formula) ? isnan(recorded) : fabs(recorded - formula) < 2e-5;
}

static void check_node(const struct esp_session *s, int node)
{
    const struct esp_verifier_ops *rule = s->set.verifier;
    const struct esp_node *nodes = s->tree.tree.nodes, *n = &nodes[node];
    double p[VOCABULARY], q[VOCABULARY], branch[ESP_MAX_TESTED], these = 0;
    int32_t draws[ESP_MAX_TESTED], tokens[ESP_MAX_TESTED];
    int k = esp_tree_draws(&s->tree, node, draws, ESP_MAX_TESTED);
    if (k == 0) {
        CHECK(isnan(n->acceptance_rate) && isnan(n->ceiling));
        return;
    }
    distribution_after(s, false, node, p);
    distribution_after(s, true, node, q);
    for (int i = 0; i < k; i++)
        tokens[i] = nodes[draws[i]].token;
    if (rule->branching) {
        CHECK(rule->branching(p, q, VOCABULARY, tokens, k, branch) == ESP_OK);
        for (int i = 0; i < k; i++)
            CHECK(same(nodes[draws[i]].branching, branch[i]), "%s: %g, not %g", rule->name,
                  (double)nodes[draws[i]].branching, branch[i]);
        these = esp_formula_goes_on(&s->iteration, node);
        CHECK(these >= 0 && these <= 1 + 1e-6);
    } else {
        CHECK(isnan(nodes[draws[0]].branching));
    }
    if (s->verify.draws == ESP_DRAW_IID) {
        CHECK(same(n->ceiling, esp_acceptance_ceiling(p, q, VOCABULARY, k)));
        CHECK(same(n->acceptance_rate,
                   rule->acceptance_rate ? rule->acceptance_rate(p, q, VOCABULARY, k) : NAN));
        CHECK(!(n->acceptance_rate > n->ceiling + 1e-5f), "%s above the ceiling", rule->name);
    } else if (s->verify.draws == ESP_DRAW_TOPK) {
        CHECK(same(n->acceptance_rate, these) && n->acceptance_rate <= n->ceiling + 1e-6f);
    } else {
        CHECK(isnan(n->acceptance_rate) && isnan(n->ceiling));
    }
}

static int checked;

static void check_tree(void *user, const struct esp_event *event)
{
    const struct esp_session *s = *(struct esp_session **)user;
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_SELECT)
        return;
    for (int i = 0; i < s->tree.tree.verified; i++, checked++)
        check_node(s, s->tree.tree.order[i]);
}

TEST(the_record_holds_what_the_formulas_give)
{
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 7);
    for (int d = 0; d < DRAFTERS; d++)
        for (int v = 0; esp_verifiers[v]; v++) {
            struct esp_session *session = open_session(drafters[d], esp_verifiers[v]->name);
            if (!session)
                continue;
            session->observer = check_tree;
            session->user = &session;
            esp_session_explain(session, true);
            write_text(session);
            esp_session_close(session);
        }
    toy_close(&toy);
    CHECK(checked > 5000, "only %d nodes were checked", checked);
}

static void check_nothing(void *user, const struct esp_event *event)
{
    (void)user;
    for (int i = 0; event->iteration && i < event->iteration->tree.count; i++) {
        const struct esp_node *n = &event->iteration->tree.nodes[i];
        CHECK(isnan(n->branching) && isnan(n->acceptance_rate) && isnan(n->ceiling));
    }
}

TEST(explaining_changes_no_token_and_is_done_only_on_request)
{
    int32_t text[4 + TOKENS];
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 7);
    for (int d = 0; d < DRAFTERS; d++)
        for (int v = 0; esp_verifiers[v]; v++) {
            struct esp_session *session = open_session(drafters[d], esp_verifiers[v]->name);
            if (!session)
                continue;
            session->observer = check_nothing;
            write_text(session);
            memcpy(text, session->text, sizeof text);
            esp_session_close(session);
            session = open_session(drafters[d], esp_verifiers[v]->name);
            esp_session_explain(session, true);
            write_text(session);
            CHECK(memcmp(text, session->text, sizeof text) == 0, "%s with %s", drafters[d],
                  esp_verifiers[v]->name);
            esp_session_close(session);
        }
    toy_close(&toy);
}

/* ------------------------------------------------------------------ drawn tokens */

static void check_drawn(void *user, const struct esp_event *event)
{
    const char *rule = user;
    const struct esp_iteration *it = event->iteration;
    for (int i = 1; event->type == ESP_EVENT_ITERATION && i < it->tree.count; i++) {
        const struct esp_node *n = &it->tree.nodes[i];
        bool tests_only = strcmp(rule, "bv") == 0 || strcmp(rule, "traversal") == 0;
        CHECK(!n->drawn || (n->verdict == ESP_ACCEPTED && !tests_only));
        if (strcmp(rule, "nss") == 0)
            CHECK(n->drawn == (n->verdict == ESP_ACCEPTED));
    }
}

TEST(drawn_tokens_are_distinguished_from_accepted_ones)
{
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 7);
    for (int v = 0; esp_verifiers[v]; v++) {
        struct esp_session *session = open_session("iid:K=4,L=2", esp_verifiers[v]->name);
        if (!session)
            continue;
        session->observer = check_drawn;
        session->user = (void *)esp_verifiers[v]->name;
        write_text(session);
        esp_session_close(session);
    }
    toy_close(&toy);
}

/* ------------------------------------------------------ the verifier's numbers in a formula */

static int weights, remainders;

/* Returns whether the value, rounded to two digits, is the shown number. */
static bool close_to(double shown, double value)
{
    return fabs(shown - value) <= 0.006 * fmax(1, 10 * value);
}

/* Some numbers that a formula shows are not recorded. They are the weight at the end of a path
 * (bv), and the remainders of p and q after a rejected sibling (swor). Checks that the shown
 * numbers are the numbers that the verifier used. */
static void check_shown(void *user, const struct esp_event *event)
{
    const struct esp_session *s = *(struct esp_session **)user;
    const struct esp_node *nodes = s->tree.tree.nodes;
    bool bv = strcmp(s->set.verifier->name, "bv") == 0, deepest = true;
    char text[400];
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_SELECT)
        return;
    for (int u = s->tree.tree.count - 1; u > 0; u--) {
        const struct esp_node *n = &nodes[u];
        double shown, Q, p[VOCABULARY], q[VOCABULARY], left = 0;
        if (isnan(n->acceptance) || n->drawn)
            continue;
        esp_formula_text(text, sizeof text, event->iteration, u);
        if (bv && deepest) { /* if the node has no children, the formula shows w itself */
            const char *weight = strstr(text, ", w' of");
            while (weight && weight > text && *--weight != '=')
                continue;
            CHECK(weight && sscanf(weight, "= %lf", &shown) == 1, "%s", text);
            CHECK(close_to(shown, n->acceptance), "%s", text);
            weights++;
        }
        deepest = false;
        if (bv || n->rank != 1 || n->acceptance > 0.99f || n->acceptance < 0.01f ||
            sscanf(strstr(text, "= min(1, "), "= min(1, %lf/%lf", &shown, &Q) != 2)
            continue;
        distribution_after(s, false, n->parent, p);
        distribution_after(s, true, n->parent, q);
        for (int x = 0; x < VOCABULARY; x++)
            left += fmax(p[x] - q[x], 0);
        double P = fmax(p[n->token] - q[n->token], 0) / left;
        CHECK(close_to(shown, P) && close_to(Q, P / n->acceptance), "%s; P = %g", text, P);
        remainders++;
    }
}

TEST(derived_numbers_match_the_verifier)
{
    static const char *const pairs[][2] = {{"linear:K=4", "bv"}, {"dyspec:N=20", "swor"}};
    for (unsigned seed = 1; seed <= 32; seed++) {
        toy_open(&toy, VOCABULARY, CONTEXT, 64, seed);
        struct esp_session *session = open_session(pairs[seed % 2][0], pairs[seed % 2][1]);
        CHECK(session, "%s", err);
        session->observer = check_shown;
        session->user = &session;
        write_text(session);
        esp_session_close(session);
        toy_close(&toy);
    }
    CHECK(weights > 5 && remainders > 5, "only %d weights and %d remainders were compared",
          weights, remainders);
}
