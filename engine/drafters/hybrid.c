/* hybrid.c - the draft model's likeliest nodes and retrieved guesses in one tree under one
 * budget; for copied passages, the retrieved tree alone.
 *
 * There are two sources of guesses: the draft model, with the tree of `salf`, and the text
 * (suffix_automaton.h). The retrieved tree needs no draft pass. After every iteration it is
 * known how far it would have got, whichever tree was verified. So its mean path length is
 * learned online per match length, and likewise that of the model's trees. If the retrieved
 * tree is expected to get at least as far as the model's, it is verified alone: a copied
 * passage costs no draft pass.
 *
 * Otherwise the model's tree is grown and retrieved nodes join it. A node that it already has
 * is shared; any other must be among the N likeliest. Their q is the frequency times the rate
 * at which retrieved tokens were right.
 */
#include "engine/drafters/drafter.h"

#include <math.h>

#include "engine/drafters/suffix_automaton.h"

enum { N, B, TH, K, FACTOR, LEAST };

/* Classes of matches: 1, 2, 3-4, 5-8, and more tokens. */
enum { CLASSES = 5 };

static const double FADE = 0.9; /* decay of the means per sample */

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 8, .help = "maximum number of nodes"},
    [B] = {"B", ESP_INT, 1, ESP_MAX_TOP, 2, .help = "nodes expanded per pass, at most N"},
    [TH] = {"th", ESP_REAL, 0, 1, 0.3, .help = "stop when B nodes together are less likely"},
    [K] = {"K", ESP_INT, 1, 64, 24, .help = "maximum depth of retrieved guesses"},
    [FACTOR] = {"factor", ESP_REAL, 0.25, 64, 2, .help = "maximum nodes per matching token"},
    [LEAST] = {"least", ESP_REAL, 0, 1, 0.1, .help = "minimum frequency of a retrieved guess"},
    {0},
};

/* A decaying mean, 0 at first. */
struct rate {
    double sum, weight;
};

struct state {
    struct esp_suffix suffix;
    struct esp_guess guesses[ESP_GUESSES];
    int32_t node[ESP_GUESSES];   /* of the tree, or -1 */
    int count, match;            /* of this iteration */
    bool alone;                  /* the draft model was not used */
    int joined;                  /* first node that is not the model's */
    struct rate length[CLASSES]; /* of a retrieved tree's path, by match */
    struct rate right[CLASSES];  /* of retrieved tokens that were tested */
    struct rate model;           /* length of the path in the model's nodes */
};

static void learn(struct rate *r, double value)
{
    r->sum = FADE * r->sum + value;
    r->weight = FADE * r->weight + 1;
}

/* `before` counts as one sample. */
static double mean(const struct rate *r, double before)
{
    return (r->sum + before) / (r->weight + 1);
}

static int class_of(int match)
{
    int class = 0;
    for (int most = 1; most < match && class < CLASSES - 1; most *= 2)
        class ++;
    return class;
}

static void retrieve(struct esp_draft *d, struct state *s)
{
    struct esp_guess_plan plan = {
        .nodes = (int)esp_param(d->params, N),
        .depth = (int)esp_param(d->params, K),
        .factor = esp_param(d->params, FACTOR),
        .least = esp_param(d->params, LEAST),
    };
    plan.nodes = plan.nodes < d->tree->room ? plan.nodes : d->tree->room;
    plan.depth = plan.depth < d->max_depth ? plan.depth : d->max_depth;
    s->count = esp_suffix_guess(&s->suffix, &plan, s->guesses, &s->match);
}

/* Adds the retrieved nodes to the tree. */
static void join(struct esp_draft *d, struct state *s, int budget)
{
    const double trust = s->alone ? 1 : mean(&s->right[class_of(s->match)], 0.5);
    struct esp_tree_builder *b = d->tree;
    for (int i = 0; i < s->count; i++) {
        const struct esp_guess *g = &s->guesses[i];
        const int32_t parent = g->parent < 0 ? 0 : s->node[g->parent];
        s->node[i] = -1;
        if (parent < 0 || b->tree.nodes[parent].verdict == ESP_CUT)
            continue;
        s->node[i] = esp_tree_find(b, parent, g->token);
        if (s->node[i] >= 0)
            continue;
        const float q = (float)(g->q * trust);
        const struct esp_candidate c = {
            .parent = parent,
            .token = g->token,
            .q = q,
            .cumulative_log_q = b->tree.nodes[parent].cumulative_log_q + logf(q),
        };
        const int count = b->tree.count;
        const int kept = esp_draft_offer(d, &c, 1, budget, ESP_REASON_BUDGET, &s->node[i]);
        if (b->tree.count > count)
            b->tree.nodes[count].copied = esp_suffix_back(&s->suffix, g);
        if (kept > 0) {
            b->tree.nodes[parent].reason = ESP_REASON_NONE;
            b->tree.nodes[s->node[i]].reason = ESP_REASON_BUDGET;
        }
    }
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    int budget = (int)esp_param(d->params, N);
    budget = budget < d->tree->capacity ? budget : d->tree->capacity;
    int status = esp_suffix_read(&s->suffix, d->text, d->text_length);
    if (status < 0)
        return status;
    retrieve(d, s);
    const int class = class_of(s->match);
    s->alone = s->count > 0 && mean(&s->length[class], 0) >= mean(&s->model, 1);
    if (!s->alone) {
        const struct esp_best_rule rule = {
            .budget = budget,
            .batch = (int)esp_param(d->params, B),
            .threshold = esp_param(d->params, TH),
        };
        status = esp_draft_best(d, &rule);
    }
    s->joined = d->tree->tree.count;
    if (status == ESP_OK)
        join(d, s, budget);
    return status;
}

/* Length of the retrieved tree's path along the committed tokens. */
static int length_of(const struct state *s, const struct esp_iteration *it)
{
    int length = 0;
    int32_t at = -1;
    for (int i = 0; i < s->count; i++) {
        const struct esp_guess *g = &s->guesses[i];
        if (g->parent == at && length < it->committed_count &&
            g->token == it->committed[length]) {
            at = i;
            length++;
            i = at; /* children come later */
        }
    }
    return length;
}

static void adapt(void *memory, const struct esp_params *values, const struct esp_iteration *it)
{
    struct state *s = memory;
    (void)values;
    int own = 0;
    while (own < it->path_length && it->path[own] < s->joined)
        own++;
    if (!s->alone)
        learn(&s->model, own);
    if (s->count == 0)
        return;
    const int class = class_of(s->match), length = length_of(s, it);
    learn(&s->length[class], length);
    for (int i = 0; i < length; i++)
        learn(&s->right[class], 1);
    if (length < it->committed_count)
        learn(&s->right[class], 0);
}

static int gauges(const void *memory, const struct esp_params *values, struct esp_gauge *g)
{
    const struct state *s = memory;
    const int class = class_of(s->match);
    (void)values;
    g[0] = (struct esp_gauge){"match", .after = s->match, .maximum = 1000};
    g[1] = (struct esp_gauge){"retrieved", .after = mean(&s->length[class], 0), .maximum = 64};
    g[2] = (struct esp_gauge){"model", .after = mean(&s->model, 1), .maximum = 64};
    return 3;
}

static void finish(void *memory)
{
    esp_suffix_close(&((struct state *)memory)->suffix);
}

const struct esp_drafter_ops esp_drafter_hybrid = {
    .name = "hybrid",
    .summary = "the draft's likeliest nodes and copied passages in one tree",
    .source = "salf-talf, alg. 2; SuffixDecoding, Oliaro et al. 2024, sec. 4.3",
    .differs =
        "SuffixDecoding uses either the model's tree or the retrieved one, by a threshold; "
        "here both form one tree, and the retrieved one is used alone if it was accepted as "
        "far before"
        "; " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK,
    .needs_model = true,
    .params = params,
    .state_size = sizeof(struct state),
    .close = finish,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
