/* dynatree and fixed against a straight transcription of the papers' rules, on random
 * distributions.
 *
 * The transcription below works on whole distributions of the toy model, node by node in
 * breadth-first order, with none of the project's tree or draft code.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "toy.h"

enum { VOCABULARY = 12, MOST = 2000 };

struct plain_node {
    int parent, token, depth;
    double log_p;
    bool cut;
};

struct plain_rule {
    int d_max, b_min, b_mid, b_max, n;
    double d0, tauh, taul, rhostop, rhodeep, tau;
    bool depth, draft_root;
};

struct plain_tree {
    struct plain_node node[MOST];
    int count;
};

static void ranked(const double *p, int *order)
{
    for (int x = 0; x < VOCABULARY; x++) {
        int rank = 0;
        for (int y = 0; y < VOCABULARY; y++)
            rank += p[y] > p[x] || (p[y] == p[x] && y < x);
        order[rank] = x;
    }
}

static int context_of(const struct plain_tree *t, int u, const int32_t *text, int length,
                      int32_t *context)
{
    int depth = t->node[u].depth, n = length + depth;
    memcpy(context, text, (size_t)length * sizeof *context);
    for (; u > 0; u = t->node[u].parent)
        context[length + t->node[u].depth - 1] = t->node[u].token;
    return n;
}

static bool expandable(const struct plain_rule *r, const struct plain_node *u)
{
    int d = u->depth - r->draft_root;
    double p = exp(u->log_p);
    if (u->depth == 0 && r->draft_root)
        return true;
    if (p < r->tau * (1 - 1e-9))
        return false;
    if (!r->depth)
        return d < (int)floor(r->d0);
    return d < r->d_max && p >= r->rhostop && (d < (int)floor(r->d0) || p >= r->rhodeep);
}

static int by_log_p(const void *a, const void *b)
{
    const struct plain_node *x = a, *y = b;
    return (x->log_p < y->log_p) - (x->log_p > y->log_p);
}

/* One layer after the other, as the paper's breadth-first order does. */
static void transcribe(const struct toy *toy, const struct plain_rule *r, const int32_t *text,
                       int length, struct plain_tree *t)
{
    int layer_start = 0, layer_end = 1, kept = 0;
    t->count = 1;
    t->node[0] = (struct plain_node){-1, text[length - 1], 0, 0, false};
    while (layer_start < layer_end && kept < r->n) {
        struct plain_node next[MOST];
        int total = 0, alive = 0;
        for (int u = layer_start; u < layer_end; u++) {
            int32_t context[512];
            double q[VOCABULARY];
            int order[VOCABULARY];
            if (t->node[u].cut || !expandable(r, &t->node[u]))
                continue;
            int n = context_of(t, u, text, length, context);
            toy_distribution(toy, true, context, n, q);
            ranked(q, order);
            double c = q[order[0]];
            int b = c >= r->tauh ? r->b_min : c < r->taul ? r->b_max : r->b_mid;
            if (u == 0 && r->draft_root)
                b = 1;
            for (int j = 0; j < b; j++) {
                double log_p = t->node[u].log_p + log(q[order[j]]);
                bool cut = log_p < log(r->tau) && !(u == 0 && r->draft_root);
                next[total++] =
                    (struct plain_node){u, order[j], t->node[u].depth + 1, log_p, cut};
                alive += !cut;
            }
        }
        if (alive > r->n - kept) { /* the layer does not fit: highest P first */
            double line;
            struct plain_node sorted[MOST];
            int n = 0;
            for (int i = 0; i < total; i++)
                if (!next[i].cut)
                    sorted[n++] = next[i];
            qsort(sorted, (size_t)n, sizeof *sorted, by_log_p);
            line = sorted[r->n - kept - 1].log_p;
            for (int i = 0; i < total; i++)
                next[i].cut |= next[i].log_p < line;
            alive = r->n - kept;
        }
        kept += alive;
        layer_start = t->count;
        for (int i = 0; i < total; i++)
            t->node[t->count++] = next[i];
        layer_end = t->count;
    }
}

/* The same set of kept nodes, each with its parent's path, and the same set of cut ones. */
static void compare(const struct plain_tree *want, const struct esp_tree *got, const char *what)
{
    CHECK(want->count == got->count, "%s: %d nodes, want %d", what, got->count, want->count);
    for (int i = 1; i < got->count; i++) {
        const struct plain_node *w = &want->node[i];
        const struct esp_node *g = &got->nodes[i];
        CHECK(w->parent == g->parent && w->token == g->token && w->depth == g->depth,
              "%s: node %d is token %d below %d, want %d below %d", what, i, g->token,
              g->parent, w->token, w->parent);
        CHECK(w->cut == (g->reason != ESP_REASON_NONE && g->verdict == ESP_CUT), "%s: node %d",
              what, i);
        CHECK(fabs(w->log_p - g->cumulative_log_q) < 1e-4, "%s: node %d", what, i);
    }
}

struct watch {
    const struct toy *toy;
    struct plain_rule rule;
    bool adaptive, mix; /* adaptive: the rule's D0, tauh, rhodeep come from the gauges */
    int seen;
    double a[64];
};

static double gauge(const struct esp_iteration *it, const char *name, bool before)
{
    for (int i = 0; i < it->gauge_count; i++)
        if (strcmp(it->gauges[i].name, name) == 0)
            return before ? it->gauges[i].before : it->gauges[i].after;
    return NAN;
}

static double clip(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* The controller's updates, transcribed (dynatree, sec. 3.3). */
static void check_history(struct watch *w, const struct esp_iteration *it)
{
    double mean = 0;
    int window = 4;
    CHECK(it->deepest > 0);
    w->a[w->seen++] = (double)it->path_length / it->deepest;
    if (window > w->seen)
        window = w->seen;
    for (int i = 0; i < window; i++)
        mean += w->a[w->seen - 1 - i] / window;
    double off = mean - 0.6;
    CHECK(fabs(gauge(it, "acceptance", false) - mean) < 1e-12);
    CHECK(fabs(gauge(it, "D0", false) -
               clip(gauge(it, "D0", true) + 0.5 * off, 1, w->rule.d_max - 1)) < 1e-12);
    CHECK(fabs(gauge(it, "tauh", false) -
               clip(gauge(it, "tauh", true) - 0.05 * off, w->rule.taul, 1)) < 1e-12);
    CHECK(fabs(gauge(it, "rhodeep", false) -
               clip(gauge(it, "rhodeep", true) - 0.05 * off, w->rule.rhostop, 1)) < 1e-12);
}

static struct watch watch;
static int32_t text[512];
static int text_length;

static void on_event(void *user, const struct esp_event *event)
{
    struct watch *w = user;
    static struct plain_tree want;
    if (event->type == ESP_EVENT_PROMPT)
        for (int i = 0; i < event->token_count; i++)
            text[text_length++] = event->tokens[i];
    if (event->type != ESP_EVENT_ITERATION)
        return;
    const struct esp_iteration *it = event->iteration;
    if (w->adaptive) {
        w->rule.d0 = gauge(it, "D0", true);
        w->rule.tauh = gauge(it, "tauh", true);
        w->rule.rhodeep = gauge(it, "rhodeep", true);
    }
    if (it->position + 40 < 256) /* away from the end, where the depth is limited */
        transcribe(w->toy, &w->rule, text, text_length, &want);
    if (it->position + 40 < 256) {
        compare(&want, &it->tree, it->drafter);
        if (w->adaptive)
            check_history(w, it);
    }
    memcpy(text + text_length, it->committed, (size_t)it->committed_count * sizeof *text);
    text_length += it->committed_count;
}

static void run(const char *drafter, struct plain_rule rule, bool adaptive, double sharpness,
                unsigned long long seed)
{
    struct toy toy;
    struct esp_session *session;
    char err[256] = "";
    int32_t prompt[3] = {1, 2, 3};
    toy_open(&toy, VOCABULARY, 256, 256, seed);
    toy.sharpness = sharpness;
    watch = (struct watch){.toy = &toy, .rule = rule, .adaptive = adaptive};
    text_length = 0;
    struct esp_session_options options = {
        .drafter = drafter, .observer = on_event, .user = &watch};
    CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) == ESP_OK, "%s",
          err);
    CHECK(esp_session_prompt(session, prompt, 3, err, sizeof err) == ESP_OK, "%s", err);
    esp_session_allow(session, 250);
    for (int i = 0; i < 40; i++) {
        int n = esp_session_step(session, err, sizeof err);
        CHECK(n >= 0, "%s", err);
        if (n == 0)
            break;
    }
    esp_session_close(session);
    toy_close(&toy);
}

TEST(fixed_is_the_papers_tree)
{
    struct plain_rule rule = {
        .b_min = 3, .b_mid = 3, .b_max = 3, .n = 60, .d0 = 4, .tau = 0.02};
    for (unsigned long long seed = 1; seed <= 6; seed++) {
        rule.draft_root = seed % 2;
        run(rule.draft_root ? "fixed:D=4,B=3,tau=0.02,N=60,root=draft,cache=rebuild"
                            : "fixed:D=4,B=3,tau=0.02,N=60",
            rule, false, 2, seed);
    }
}

TEST(fixed_without_threshold_is_the_full_tree)
{
    struct plain_rule rule = {.b_min = 2, .b_mid = 2, .b_max = 2, .n = 255, .d0 = 5, .tau = 0};
    run("fixed:D=5,B=2,tau=0,N=255", rule, false, 2, 3);
    rule.n = 20;
    run("fixed:D=5,B=2,tau=0,N=20", rule, false, 2, 4);
}

TEST(dynatree_expands_by_confidence_and_probability)
{
    struct plain_rule rule = {.d_max = 8,
                              .b_min = 1,
                              .b_mid = 2,
                              .b_max = 3,
                              .n = 30,
                              .d0 = 4,
                              .tauh = 0.8,
                              .taul = 0.4,
                              .rhostop = 0.02,
                              .rhodeep = 0.2,
                              .tau = 0.01,
                              .depth = true};
    for (unsigned long long seed = 1; seed <= 9; seed++) {
        rule.draft_root = seed % 3 == 0;
        run(rule.draft_root ? "dynatree:D0=4,tauh=0.8,rhostop=0.02,rhodeep=0.2,tau=0.01,N=30,"
                              "history=off,root=draft"
                            : "dynatree:D0=4,tauh=0.8,rhostop=0.02,rhodeep=0.2,tau=0.01,N=30,"
                              "history=off",
            rule, false, (double)(1 + seed % 4), seed);
    }
}

TEST(dynatree_controller_follows_the_paper)
{
    struct plain_rule rule = {.d_max = 7,
                              .b_min = 1,
                              .b_mid = 2,
                              .b_max = 3,
                              .n = 256,
                              .taul = 0.4,
                              .rhostop = 0.05,
                              .tau = 0.01,
                              .depth = true};
    for (unsigned long long seed = 1; seed <= 9; seed++)
        run("dynatree:D0=4,Dmax=7,rhostop=0.05,rhodeep=0.2,tau=0.01,W=4,target=0.6", rule, true,
            (double)(1 + seed % 4), seed);
}

TEST(dynatree_parts_can_be_switched_off)
{
    struct plain_rule rule = {
        .b_min = 2, .b_mid = 2, .b_max = 2, .n = 256, .d0 = 5, .tau = 0.05};
    run("dynatree:breadth=off,depth=off,history=off", rule, false, 2, 11);
    rule = (struct plain_rule){.b_min = 1,
                               .b_mid = 2,
                               .b_max = 3,
                               .n = 256,
                               .d0 = 5,
                               .tauh = 0.9,
                               .taul = 0.4,
                               .tau = 0.05};
    run("dynatree:depth=off,history=off", rule, false, 3, 12);
}

TEST(parameters_are_checked_against_each_other)
{
    static const char *const wrong[] = {
        "dynatree:D0=8",
        "dynatree:Bmin=3",
        "dynatree:Bmax=1",
        "dynatree:taul=0.95",
        "dynatree:rhostop=0.6",
        "dynatree:tau=2",
        "dynatree:Q=1",
        "nothing",
        "",
    };
    struct toy toy;
    toy_open(&toy, VOCABULARY, 64, 16, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct esp_session *session;
        char err[256] = "";
        struct esp_session_options options = {.drafter = wrong[i]};
        CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) ==
                  ESP_E_ARGUMENT,
              "%s", wrong[i]);
        CHECK(*err && !session, "%s", wrong[i]);
    }
    toy_close(&toy);
}
