/* Tests that the sentences about a node describe what happened to it. Every verifier runs with
 * every drafter that works on the toy models, at several temperatures. Numbers in the sentences
 * are compared with the events and with the models' distributions. The test computes these
 * distributions again from the text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/toy.h"
#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/formula.h"

enum { VOCABULARY = 12, CONTEXT = 160, TOKENS = 60, PROMPT = 8 };

static struct toy toy;
static char err[512];

static const char *token_text(void *user, int32_t token, size_t *length)
{
    static char text[VOCABULARY + 1][8];
    (void)user;
    char *to = text[token >= 0 && token < VOCABULARY ? token : VOCABULARY];
    *length = (size_t)snprintf(to, sizeof text[0], "t%d", token);
    return to;
}

/* The kinds of sentences that can describe a node. Two sentences of the same kind differ only
 * in their numbers and tokens. */
enum sentence {
    TEST_PASSED,
    TEST_FAILED,
    DRAWN,
    LEFT,
    MISSED,
    MISSED_LEFT,
    PATH,
    SIBLING,
    ANCESTOR,
    FIRST,
    NOT_FIRST,
    SENTENCES
};

static struct {
    const struct esp_session *session;
    const struct esp_iteration *it;
    const char *drafter;
    double temperature;
    int nodes, seen[SENTENCES]; /* `nodes` counts the nodes of this verifier so far */
} now;

/* ------------------------------------------------------------------ the events */

/* Computes the distribution that the verifier uses after a node. */
static void distribution_after(bool draft, int node, double *values)
{
    const struct esp_node *nodes = now.it->tree.nodes;
    int32_t text[CONTEXT + 64];
    const int length = now.it->position;
    double sum = 0;
    memcpy(text, now.session->text, sizeof(int32_t) * (size_t)length);
    for (int u = node; u > 0; u = nodes[u].parent)
        text[length - 1 + nodes[u].depth] = nodes[u].token;
    toy_distribution(&toy, draft, text, length + nodes[node].depth, values);
    for (int x = 0; now.temperature > 0 && x < VOCABULARY; x++)
        sum += values[x] = pow(values[x], 1 / now.temperature);
    for (int x = 0; now.temperature > 0 && x < VOCABULARY; x++)
        values[x] /= sum;
}

/* Returns the token that follows a node in the text. The node must be on the path that became
 * text.
 */
static int32_t token_after(int node)
{
    const struct esp_iteration *it = now.it;
    const int depth = it->tree.nodes[node].depth;
    CHECK(node == 0 || it->path[depth - 1] == node);
    return depth < it->path_length ? it->tree.nodes[it->path[depth]].token : it->bonus;
}

/* Returns whether the verifier tested children of a node before it drew a token. */
static bool was_tested(int node)
{
    const struct esp_session *s = now.session;
    return !s->set.verifier->without_q && s->verify.q_row[node] >= 0;
}

/* ------------------------------------------------------------------ the sentences */

static void fail(int node, const char *text, const char *why)
{
    const struct esp_node *n = &now.it->tree.nodes[node];
    CHECK(false, "%s with %s, temperature %g: \"%s\": %s (verdict %d, u %g, acceptance %g)",
          now.it->verifier, now.drafter, now.temperature, text, why, n->verdict, (double)n->u,
          (double)n->acceptance);
}

static double number_at(const char *text)
{
    return text[0] == '.' || (text[0] >= '0' && text[0] <= '9') ? atof(text) : NAN;
}

/* Returns the number after the words `before`, which the text must contain. */
static double number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    CHECK(at, "'%s' is missing in: %s", before, text);
    return number_at(at + strlen(before));
}

/* Returns whether `value`, rounded to two significant digits or to 1.0, is `shown`. */
static bool rounds_to(double shown, double value)
{
    return fabs(shown - value) <= 0.0051 || fabs(shown - value) <= 0.051 * value;
}

/* Checks a sentence such as "the random number .31 (u) is below its chance of .90", which
 * describes the test of node `tested`. */
static void check_test(const char *text, int node, int tested)
{
    const struct esp_node *n = &now.it->tree.nodes[tested];
    const char *first = strstr(text, "the random number "),
               *second = strstr(text, "chance of ");
    if (!first || !second)
        fail(node, text, "the sentence has no numbers");
    const double u = number_at(first + 18), chance = number_at(second + 10);
    const bool below = strstr(text, "(u) is below its") != NULL;
    if (!below && !strstr(text, "(u) is above its"))
        fail(node, text, "the sentence has no comparison");
    if (below ? !(u < chance) : !(u > chance))
        fail(node, text, "the sentence contradicts its own numbers");
    if (!rounds_to(u, (double)n->u) || !rounds_to(chance, (double)n->acceptance))
        fail(node, text, "the numbers of the sentence and of the event differ");
    if (below != (n->verdict == ESP_ACCEPTED) || n->drawn)
        fail(node, text,
             "the event says that the node was not tested or had the opposite result");
}

/* Returns the token that is quoted after the words `before`. */
static int32_t quoted(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    int32_t token = -1;
    CHECK(at && sscanf(at + strlen(before), "\"t%d\"", &token) == 1, "%s", text);
    return token;
}

static void check_drawn(const char *text, int node, bool whole)
{
    const struct esp_node *n = &now.it->tree.nodes[node];
    double p[VOCABULARY], q[VOCABULARY], left = 0;
    const double chance = number_after(text, whole ? "its chance was " : "chance there was ");
    if (n->verdict != ESP_ACCEPTED || token_after(n->parent) != n->token)
        fail(node, text, "the quoted token does not occur in the text");
    if (whole == was_tested(n->parent))
        fail(node, text, "the distribution of the draw is wrong");
    distribution_after(false, n->parent, p);
    distribution_after(true, n->parent, q);
    for (int x = 0; x < VOCABULARY; x++)
        left += fmax(p[x] - q[x], 0);
    if (whole && !rounds_to(chance, p[n->token]))
        fail(node, text, "the number is not the target's probability");
    if (!whole && strncmp(now.it->verifier, "naivetree", 9) == 0 &&
        !rounds_to(chance, fmax(p[n->token] - q[n->token], 0) / left))
        fail(node, text, "the number is not the token's probability in the residual");
}

static void check_missed(const char *text, int node)
{
    const struct esp_node *n = &now.it->tree.nodes[node];
    const char *chance = strstr(text, "the chance of this one was ");
    double p[VOCABULARY];
    const int32_t token = quoted(text, "the target drew ");
    if (n->verdict != ESP_REJECTED || isfinite(n->u) || token == n->token ||
        token != token_after(n->parent))
        fail(node, text, "the target drew a different token");
    if (!chance == !was_tested(n->parent))
        fail(node, text, "the distribution of the draw is wrong");
    distribution_after(false, n->parent, p);
    if (chance && !rounds_to(number_at(chance + 27), p[n->token]))
        fail(node, text, "the number is not the target's probability");
}

/* Checks a sentence such as "accepted with the path to "t5": there the random number ...". */
static void check_through(const char *text, int node)
{
    const struct esp_iteration *it = now.it;
    int below = it->tree.nodes[node].depth;
    while (below < it->path_length && !isfinite(it->tree.nodes[it->path[below]].u))
        below++;
    if (it->tree.nodes[node].verdict != ESP_ACCEPTED || isfinite(it->tree.nodes[node].u) ||
        below == it->path_length)
        fail(node, text, "no path through the node was accepted");
    if (quoted(text, "the path to ") != it->tree.nodes[it->path[below]].token)
        fail(node, text, "the event has a different accepted path");
    check_test(text, node, it->path[below]);
}

static void check_sibling(const char *text, int node)
{
    const struct esp_node *nodes = now.it->tree.nodes, *n = &nodes[node];
    const int32_t token = quoted(text, "not tested: ");
    for (int i = 0; i < now.it->tree.count; i++)
        if (i != node && nodes[i].parent == n->parent && nodes[i].token == token &&
            nodes[i].verdict == ESP_ACCEPTED && n->verdict == ESP_UNVISITED)
            return;
    fail(node, text, "no sibling was accepted");
}

static void check_ancestor(const char *text, int node)
{
    const struct esp_node *nodes = now.it->tree.nodes;
    const int32_t token = quoted(text, "not reached: ");
    for (int up = nodes[node].parent; up > 0; up = nodes[up].parent)
        if (nodes[up].verdict != ESP_ACCEPTED) {
            if (nodes[up].token != token || nodes[node].verdict != ESP_UNVISITED)
                fail(node, text, "the sentence names the wrong node");
            return;
        }
    fail(node, text, "all ancestors of the node were accepted");
}

static void check_first(const char *text, int node, bool accepted)
{
    const struct esp_node *n = &now.it->tree.nodes[node];
    double p[VOCABULARY];
    int best = 0;
    distribution_after(false, n->parent, p);
    for (int x = 1; x < VOCABULARY; x++)
        best = p[x] > p[best] ? x : best;
    if ((best == n->token) != accepted || accepted != (n->verdict == ESP_ACCEPTED) ||
        (!accepted && quoted(text, "first choice is ") != best))
        fail(node, text, "it is not");
}

static enum sentence check_sentence(const char *text, int node)
{
    const bool accepted = strncmp(text, "accepted", 8) == 0;
    const struct esp_node *n = &now.it->tree.nodes[node];
    if (strncmp(text, "accepted with the path to ", 26) == 0) {
        check_through(text, node);
        return PATH;
    }
    if (strstr(text, "the random number ")) {
        check_test(text, node, node);
        const char *next = strstr(text, "; next is ");
        if (next && quoted(text, "; next is ") != token_after(n->parent))
            fail(node, text, "the text has a different token at this position");
        return accepted ? TEST_PASSED : TEST_FAILED;
    }
    if (strstr(text, "the target drew this token at random")) {
        const bool left =
            strstr(text, "from the probability that the rejected guesses left") != NULL;
        check_drawn(text, node, !left);
        return left ? LEFT : DRAWN;
    }
    if (strstr(text, "rejected: the target drew ")) {
        check_missed(text, node);
        return strstr(text, "guesses left") ? MISSED_LEFT : MISSED;
    }
    if (strstr(text, "rejected without a test; then the target drew the same token")) {
        if (isfinite(n->u) || n->verdict != ESP_REJECTED || token_after(n->parent) != n->token)
            fail(node, text, "it did not");
        return MISSED;
    }
    if (strstr(text, "not tested: ")) {
        check_sibling(text, node);
        return SIBLING;
    }
    if (strstr(text, "not reached: ")) {
        check_ancestor(text, node);
        return ANCESTOR;
    }
    if (strstr(text, "first choice")) {
        check_first(text, node, accepted);
        return accepted ? FIRST : NOT_FIRST;
    }
    fail(node, text, "the test does not know this sentence");
    return SENTENCES;
}

/* Checks the arithmetic of "accepted with probability min(1, .24/.40) = .60, u = .31". */
static void check_formula(int node)
{
    const struct esp_node *n = &now.it->tree.nodes[node];
    char text[400];
    double above, below, factor = 1;
    esp_formula_text(text, sizeof text, now.it, node);
    const char *u = strstr(text, ", u = "), *ratio = strstr(text, " = min(1, .");
    if (!u) {
        if (isfinite(n->u) && !strstr(text, " drew it"))
            fail(node, text, "the formula lacks a number");
        return;
    }
    const char *equal = u;
    while (equal > text && *equal != '=')
        equal--;
    if (n->drawn || (number_at(u + 6) < number_at(equal + 2)) != (n->verdict == ESP_ACCEPTED))
        fail(node, text, "the verdict contradicts the formula");
    if (!ratio || ratio > u)
        return;
    const bool scaled =
        sscanf(ratio, " = min(1, %lf/(%lf x %lf)", &above, &factor, &below) == 3;
    if (!scaled && sscanf(ratio, " = min(1, %lf/%lf)", &above, &below) != 2)
        fail(node, text, "no ratio");
    const double shown = number_at(equal + 2), value = fmin(1, above / (factor * below));
    if (above > 0.05 && below > 0.05 && fabs(shown - value) > 0.15 * value)
        fail(node, text, "the numbers of the formula do not give its value");
}

static void check_nodes(void *user, const struct esp_event *event)
{
    const struct esp_tokens tokens = {token_text, NULL};
    char text[400];
    (void)user;
    if (event->type != ESP_EVENT_STAGE || event->stage != ESP_STAGE_SELECT)
        return;
    now.it = event->iteration;
    for (int i = 1; i < now.it->tree.count; i++) {
        if (now.it->tree.nodes[i].verdict == ESP_CUT)
            continue;
        esp_explain_node(text, sizeof text, now.it, ESP_STAGES, i, &tokens);
        now.seen[check_sentence(text, i)]++;
        check_formula(i);
        now.nodes++;
    }
}

/* ------------------------------------------------------------------ all verifiers */

static void run_pair(const char *drafter, const char *verifier, double temperature)
{
    char spec[64];
    snprintf(spec, sizeof spec, "%s:lossy=allow", verifier);
    struct esp_session_options options = {
        .drafter = drafter,
        .verifier = spec,
        .observer = check_nodes,
        .values = {.temperature = temperature, .draft_temp = ESP_DRAFT_OFF, .seed = 5}};
    const int32_t prompt[PROMPT] = {3, 4, 5, 3, 4, 5, 3, 4};
    struct esp_session *session;
    if (esp_session_open(&session, &toy.engine, &options, err, sizeof err) < 0)
        return;
    now.session = session;
    now.drafter = drafter;
    now.temperature = temperature;
    CHECK(esp_session_prompt(session, prompt, PROMPT, err, sizeof err) == ESP_OK, "%s", err);
    esp_session_allow(session, TOKENS);
    while (esp_session_step(session, err, sizeof err) > 0)
        continue;
    CHECK(session->length == PROMPT + TOKENS, "%s with %s: %s", verifier, drafter, err);
    esp_session_close(session);
}

TEST(every_sentence_about_a_node_is_true)
{
    static const char *const shaped[] = {"iid:K=4,L=3", "fixed:D=4,B=3", "delayed"};
    static const double temperatures[] = {0, 0.6, 1, 1.5};
    struct esp_item verifier, drafter;
    toy_open(&toy, VOCABULARY, CONTEXT, 64, 7);
    toy.sharpness = 2;
    for (int v = 0; esp_item(ESP_VERIFIERS, v, &verifier); v++) {
        now.nodes = 0;
        for (int t = 0; t < 4; t++) {
            for (size_t i = 0; i < sizeof shaped / sizeof *shaped; i++)
                run_pair(shaped[i], verifier.name, temperatures[t]);
            for (int d = 0; esp_item(ESP_DRAFTERS, d, &drafter); d++)
                run_pair(drafter.name, verifier.name, temperatures[t]);
        }
        CHECK(now.nodes > 2000, "%s: only %d nodes", verifier.name, now.nodes);
    }
    for (int i = 0; i < SENTENCES; i++)
        CHECK(now.seen[i] > 20, "sentence %d occurred only %d times", i, now.seen[i]);
    toy_close(&toy);
}

/* If a sentence compares two numbers, they must be shown with enough digits to differ. */
TEST(compared_numbers_are_shown_with_enough_digits)
{
    char a[16], b[16];
    esp_probabilities_apart(a, 0.2041, b, 0.2049);
    CHECK(strcmp(a, ".204") == 0 && strcmp(b, ".205") == 0, "%s, %s", a, b);
    esp_probabilities_apart(a, 0.9971, b, 0.9983);
    CHECK(strcmp(a, ".997") == 0 && strcmp(b, ".998") == 0, "%s, %s", a, b);
    esp_probabilities_apart(a, 2e-7, b, 3e-7);
    CHECK(atof(a) < atof(b), "%s, %s", a, b);
    esp_probabilities_apart(a, 0.25, b, 0.75);
    CHECK(strcmp(a, ".25") == 0 && strcmp(b, ".75") == 0, "%s, %s", a, b);
    esp_probabilities_apart(a, 1, b, 1);
    CHECK(strcmp(a, "1.0") == 0 && strcmp(b, "1.0") == 0, "%s, %s", a, b);
}
