/* Compares drafters dynatree and fixed with a direct implementation of the papers' rules, on
 * random distributions.
 *
 * The implementation below works on whole distributions of the toy model, node by node in
 * breadth-first order, without the project's tree or draft code.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/toy.h"

enum { VOCABULARY = 12, MOST = 2000 };

struct plain_node {
    int parent, token, depth;
    double log_p;
    bool cut;
};

struct plain_rule {
    int d_max, b_min, b_mid, b_max, n;
    double d0, tauh, taul, rhostop, rhodeep, tau;
    bool depth, draft_root, stop;
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

/* Builds the tree layer by layer, in the paper's breadth-first order. */
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
                bool cut = !r->stop && log_p < log(r->tau) && !(u == 0 && r->draft_root);
                next[total++] =
                    (struct plain_node){u, order[j], t->node[u].depth + 1, log_p, cut};
                alive += !cut;
            }
        }
        /* if there are too many nodes, those with the highest P are kept */
        if (alive > r->n - kept) {
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

/* Checks that both trees have the same kept nodes and the same cut nodes, and that each node
 * has the same path from the root. */
static void compare(const struct plain_tree *want, const struct esp_tree *got, const char *what)
{
    CHECK(want->count == got->count, "%s: %d nodes, want %d", what, got->count, want->count);
    for (int i = 1; i < got->count; i++) {
        const struct plain_node *w = &want->node[i];
        const struct esp_node *g = &got->nodes[i];
        CHECK(w->parent == g->parent && w->token == g->token && w->depth == g->depth,
              "%s: node %d is token %d below node %d, want token %d below node %d", what, i,
              g->token, g->parent, w->token, w->parent);
        CHECK(w->cut == (g->reason != ESP_REASON_NONE && g->verdict == ESP_CUT), "%s: node %d",
              what, i);
        CHECK(fabs(w->log_p - g->cumulative_log_q) < 1e-4, "%s: node %d", what, i);
    }
}

struct watch {
    const struct toy *toy;
    struct plain_rule rule;
    /* true if the rule's D0, tauh, rhodeep, rhostop and tau are read from the gauges */
    bool adaptive;
    bool price; /* true if the controller uses the rule `price` instead of the paper's */
    double x;
    int seen, grown, shrunk, held;
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

/* Checks the controller's updates with a separate implementation (dynatree, sec. 3.3). */
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

/* Checks the rule `price` with a separate implementation, for the settings of the test below.
 * The update depends on two things: whether the path reached the deepest layer, and whether a
 * threshold or D0 ended the tree in that layer. */
static void check_price(struct watch *w, const struct esp_iteration *it)
{
    const double price = 0.4, step = 0.5;
    const bool reached = it->path_length == it->deepest;
    bool ended = false;
    for (int i = 0; i < it->tree.count; i++) {
        const struct esp_node *node = &it->tree.nodes[i];
        const double p = exp(node->cumulative_log_q);
        ended |= node->depth == it->deepest && node->verdict != ESP_CUT &&
                 node->depth < w->rule.d_max && p > 0 && isnan(node->confidence) &&
                 node->reason != ESP_REASON_BUDGET;
    }
    if (reached && ended)
        w->x = fmin(w->x + step * (1 - price), 6);
    if (!reached)
        w->x = fmax(w->x - step * price, -6);
    w->grown += reached && ended;
    w->held += reached && !ended;
    w->shrunk += !reached;
    CHECK(fabs(gauge(it, "D0", false) - clip(4 + w->x, 1, w->rule.d_max - 1)) < 1e-9);
    CHECK(fabs(gauge(it, "rhostop", false) - clip(0.05 * exp2(-w->x), 0, 1)) < 1e-9);
    CHECK(fabs(gauge(it, "rhodeep", false) - clip(0.2 * exp2(-w->x), 0, 1)) < 1e-9);
    CHECK(fabs(gauge(it, "tau", false) - clip(0.01 * exp2(-w->x), 0, 1)) < 1e-9);
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
        w->rule.rhostop = gauge(it, "rhostop", true);
        w->rule.tau = gauge(it, "tau", true);
    }
    if (it->position + 40 < 256) /* not near the end of the text, where the depth is limited */
        transcribe(w->toy, &w->rule, text, text_length, &want);
    if (it->position + 40 < 256) {
        compare(&want, &it->tree, it->drafter);
        if (w->price)
            check_price(w, it);
        else if (w->adaptive)
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
    watch = (struct watch){.toy = &toy,
                           .rule = rule,
                           .adaptive = adaptive,
                           .price = strstr(drafter, "history=price") != NULL};
    text_length = 0;
    struct esp_session_options options = {.drafter = drafter,
                                          .values.draft_temp = ESP_DRAFT_OFF,
                                          .observer = on_event,
                                          .user = &watch};
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

TEST(fixed_drafts_the_papers_tree)
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

/* With prune=stop, nodes that are not expanded are still verified. The programs that the
 * papers' authors released do the same. */
TEST(fixed_only_stops_at_the_threshold)
{
    struct plain_rule rule = {
        .b_min = 3, .b_mid = 3, .b_max = 3, .n = 60, .d0 = 4, .tau = 0.05, .stop = true};
    for (unsigned long long seed = 1; seed <= 6; seed++) {
        rule.draft_root = seed % 2;
        run(rule.draft_root ? "fixed:D=4,B=3,tau=0.05,N=60,root=draft,prune=stop"
                            : "fixed:D=4,B=3,tau=0.05,N=60,prune=stop",
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
        run("dynatree:D0=4,Dmax=7,rhostop=0.05,rhodeep=0.2,tau=0.01,W=4,target=0.6,history="
            "proportional",
            rule, true, (double)(1 + seed % 4), seed);
}

TEST(dynatree_depth_follows_the_cost_of_a_layer)
{
    struct plain_rule rule = {
        .d_max = 7, .b_min = 1, .b_mid = 2, .b_max = 3, .n = 12, .taul = 0.4, .depth = true};
    int grown = 0, shrunk = 0, held = 0;
    for (unsigned long long seed = 1; seed <= 9; seed++) {
        run("dynatree:D0=4,Dmax=7,rhostop=0.05,rhodeep=0.2,tau=0.01,N=12,history=price,"
            "price=0.4,etap=0.5",
            rule, true, (double)(1 + seed % 4), seed);
        grown += watch.grown;
        shrunk += watch.shrunk;
        held += watch.held;
    }
    CHECK(grown > 5 && shrunk > 5 && held > 5, "%d, %d and %d", grown, shrunk, held);
}

/* ---------------------------------------------------- the program that the authors released */

/* Holds the state of the authors' class TreeSpeculativeGeneratorV2AdaptiveV3. The two functions
 * below are methods of this class. */
struct released {
    double history[10];
    int length;
    double base_depth, high_conf, deep_expand;
};

static void update_history(struct released *r, double acceptance_rate)
{
    if (r->length == 10)
        memmove(r->history, r->history + 1, (size_t)--r->length * sizeof *r->history);
    r->history[r->length++] = acceptance_rate;
}

static const char *adjust_parameters(struct released *r, int max_depth)
{
    double sum = 0;
    if (r->length < 5)
        return "waits";
    for (int i = 0; i < r->length; i++)
        sum += r->history[i];
    if (sum / r->length > 0.7 + 0.1) {
        r->base_depth = fmin(r->base_depth + 1, max_depth - 1);
        r->high_conf = fmax(r->high_conf - 0.05, 0.5);
        r->deep_expand = fmax(r->deep_expand - 0.05, 0.3);
        return "more aggressive";
    }
    if (sum / r->length < 0.7 - 0.1) {
        r->base_depth = fmax(r->base_depth - 1, 2);
        r->high_conf = fmin(r->high_conf + 0.05, 0.95);
        r->deep_expand = fmin(r->deep_expand + 0.05, 0.8);
        return "more conservative";
    }
    return "stays";
}

static double rate_tokens, rate_rounds;
static const struct esp_iteration *last;

static void count_rate(void *user, const struct esp_event *event)
{
    static struct esp_iteration copy;
    (void)user;
    if (event->type != ESP_EVENT_ITERATION)
        return;
    copy = *event->iteration;
    last = &copy;
    rate_tokens += event->iteration->committed_count;
    rate_rounds++;
}

/* Runs generations with a good draft, then with a poor draft. */
static void check_released(const char *drafter, bool draft_root, int *up, int *down, int *stay)
{
    struct toy toy;
    struct esp_session *session;
    struct released r = {.base_depth = 4, .high_conf = 0.9, .deep_expand = 0.5};
    char err[256] = "";
    const int32_t prompt[3] = {1, 2, 3};
    toy_open(&toy, VOCABULARY, 256, 256, 3);
    struct esp_session_options options = {.drafter = drafter, .observer = count_rate};
    CHECK(esp_session_open(&session, &toy.engine, &options, err, sizeof err) == ESP_OK, "%s",
          err);
    for (int generation = 0; generation < 60; generation++) {
        toy.closeness = generation < 25 ? 1 : generation < 40 ? 0.1 : 0.97;
        toy.sharpness = generation < 25 ? 30 : 6;
        rate_tokens = rate_rounds = 0;
        esp_session_clear(session);
        CHECK(esp_session_prompt(session, prompt, 3, err, sizeof err) == ESP_OK, "%s", err);
        esp_session_allow(session, 40 + generation);
        while (esp_session_step(session, err, sizeof err) > 0) {
            CHECK(fabs(gauge(last, "D0", true) - r.base_depth) < 1e-9 &&
                      fabs(gauge(last, "tauh", true) - r.high_conf) < 1e-9 &&
                      fabs(gauge(last, "rhodeep", true) - r.deep_expand) < 1e-9,
                  "%s, generation %d: D0 %g, tauh %g, rhodeep %g, want %g, %g, %g", drafter,
                  generation, gauge(last, "D0", true), gauge(last, "tauh", true),
                  gauge(last, "rhodeep", true), r.base_depth, r.high_conf, r.deep_expand);
            CHECK(gauge(last, "D0", false) == gauge(last, "D0", true),
                  "D0 moves within a generation");
        }
        CHECK(!*err, "%s", err);
        update_history(&r, rate_tokens / (rate_rounds * (4 + 1 + draft_root)));
        const char *action = adjust_parameters(&r, 8);
        *up += strcmp(action, "more aggressive") == 0;
        *down += strcmp(action, "more conservative") == 0;
        *stay += strcmp(action, "stays") == 0;
    }
    esp_session_close(session);
    toy_close(&toy);
}

TEST(history_step_follows_the_released_program)
{
    int up = 0, down = 0, stay = 0;
    check_released("dynatree:D0=4,history=step", false, &up, &down, &stay);
    check_released("dynatree:D0=4,history=step,root=draft,prune=stop", true, &up, &down, &stay);
    CHECK(up > 3 && down > 3 && stay > 0, "%d, %d and %d", up, down, stay);
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
