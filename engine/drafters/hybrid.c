/* hybrid.c - puts the draft model's likeliest nodes and retrieved guesses into one tree of at
 * most N nodes. For copied passages, the tree has only retrieved guesses.
 *
 * There are two kinds of guesses. The guesses of the draft model form the tree of drafter
 * `salf`. Retrieved guesses need no draft pass (retrieval.h): they are copied from the text or
 * the expected text, or they are recycled tokens. After every iteration it is known how many
 * tokens of the retrieved guesses were correct, even if they were not verified. Therefore the
 * mean path length of retrieved trees is learned for each class of guesses, and also the mean
 * path length of the model's trees. If the retrieved tree is expected to have at least as long
 * a path as the model's tree, it is verified alone, so a copied passage costs no draft pass.
 *
 * Otherwise the model's tree is grown, and retrieved nodes are added to it. A retrieved node
 * that the model's tree already has is not added again. Any other retrieved node is added if it
 * is among the N likeliest nodes. The q of a copied node is its frequency times the rate at
 * which such tokens were correct.
 */
#include "engine/drafters/retrieval.h"

#include <math.h>

enum { N, B, TH, K, FACTOR, LEAST, RECYCLE };

static const double FADE = 0.9;  /* a new sample multiplies the older sums by this */
static const double RIGHT = 0.5; /* fraction of correct guesses that is assumed at first */

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 8, .help = "maximum number of nodes"},
    [B] = {"B", ESP_INT, 1, ESP_MAX_TOP, 2, .help = "nodes expanded per pass, at most N"},
    [TH] = {"th", ESP_REAL, 0, 1, 0.3,
            .help = "stop when the next B nodes together are less likely than this"},
    [K] = {"K", ESP_INT, 1, 64, 24, .help = "maximum depth of retrieved guesses"},
    [FACTOR] = {"factor", ESP_REAL, 0.25, 64, 2,
                .help = "maximum number of nodes for each token of the match"},
    [LEAST] = {"least", ESP_REAL, 0, 1, 0.1, .help = "minimum frequency of a retrieved guess"},
    [RECYCLE] = {"recycled", ESP_CHOICE, 0, 1, 1, .choices = "off|on",
                 .help = "also draft what the target found likely after the same token"},
    {0},
};

/* A decaying sum of samples, and the sum of their weights. */
struct rate {
    double sum, weight;
};

struct state {
    struct esp_retrieval retrieval;
    bool alone;                            /* the draft model was not used */
    int joined;                            /* index of the first node that is not from the draft
                                              model */
    struct rate length[ESP_MATCH_CLASSES]; /* path length in retrieved trees of each class */
    struct rate right[ESP_MATCH_CLASSES];  /* fraction of correct guesses of each class */
    struct rate model;                     /* number of accepted nodes from the draft model */
};

static void learn(struct rate *r, double value)
{
    r->sum = FADE * r->sum + value;
    r->weight = FADE * r->weight + 1;
}

/* Returns the mean of the samples and the value `before`, which has the weight of one
 * sample. */
static double mean(const struct rate *r, double before)
{
    return (r->sum + before) / (r->weight + 1);
}

/* Returns the factor that makes the frequency of a guess comparable with the draft model's q.
 * For a recycled token it is 1, because its q is a measured rate already. */
static double trust(const struct state *s, const struct esp_guess *g)
{
    return s->alone || g->class == ESP_MATCH_RECYCLED ? 1 : mean(&s->right[g->class], RIGHT);
}

/* Adds the retrieved nodes to the tree. */
static void join(struct esp_draft *d, struct state *s, int budget)
{
    struct esp_retrieval *r = &s->retrieval;
    struct esp_tree_builder *b = d->tree;
    for (int i = 0; i < r->count; i++) {
        const struct esp_guess *g = &r->guesses[i];
        const int32_t parent = esp_retrieval_parent(r, i);
        r->node[i] = -1;
        if (parent < 0 || b->tree.nodes[parent].verdict == ESP_CUT)
            continue;
        r->node[i] = esp_tree_find(b, parent, g->token);
        if (r->node[i] >= 0)
            continue;
        const float q = (float)(g->q * trust(s, g));
        const struct esp_candidate c = {
            .parent = parent,
            .token = g->token,
            .q = q,
            .cumulative_log_q = b->tree.nodes[parent].cumulative_log_q + logf(q),
        };
        const int count = b->tree.count;
        const int kept = esp_draft_offer(d, &c, 1, budget, ESP_REASON_BUDGET, &r->node[i]);
        if (b->tree.count > count)
            esp_retrieval_tell(r, i, &b->tree.nodes[count]);
        if (kept > 0) {
            b->tree.nodes[parent].reason = ESP_REASON_NONE;
            b->tree.nodes[r->node[i]].reason = ESP_REASON_BUDGET;
        }
    }
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    struct esp_guess_plan plan = {
        .nodes = (int)esp_param(d->params, N),
        .depth = (int)esp_param(d->params, K),
        .factor = esp_param(d->params, FACTOR),
        .least = esp_param(d->params, LEAST),
    };
    const int most = d->tree->capacity, budget = plan.nodes < most ? plan.nodes : most;
    s->retrieval.prior = RIGHT;
    int status =
        esp_retrieval_find(&s->retrieval, d, &plan, esp_param(d->params, RECYCLE) != 0);
    if (status < 0)
        return status;
    const double length = mean(&s->length[s->retrieval.class], 0);
    s->alone = s->retrieval.count > 0 && length >= mean(&s->model, 1);
    if (!s->alone)
        status =
            esp_draft_best(d, budget, (int)esp_param(d->params, B), esp_param(d->params, TH));
    s->joined = d->tree->tree.count;
    if (status == ESP_OK)
        join(d, s, budget);
    return status;
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    struct esp_retrieval *r = &s->retrieval;
    int own = 0;
    while (own < it->path_length && it->path[own] < s->joined)
        own++;
    if (!s->alone)
        learn(&s->model, own);
    if (r->count == 0)
        return;
    const int length = esp_retrieval_learn(r, it->committed, it->committed_count);
    learn(&s->length[r->class], length);
    for (int i = 0; i < length; i++)
        learn(&s->right[r->class], 1);
    if (length < it->committed_count)
        learn(&s->right[r->class], 0);
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct state *s = d->state;
    const int match = s->retrieval.match, class = s->retrieval.class;
    g[0] = (struct esp_gauge){"match", .after = match, .maximum = 1000};
    g[1] = (struct esp_gauge){"retrieved", .after = mean(&s->length[class], 0), .maximum = 64};
    g[2] = (struct esp_gauge){"model", .after = mean(&s->model, 1), .maximum = 64};
    return 3;
}

static void finish(void *memory)
{
    esp_retrieval_close(&((struct state *)memory)->retrieval);
}

const struct esp_drafter_ops esp_drafter_hybrid = {
    .name = "hybrid",
    .summary = "the draft's likeliest nodes and copied passages in one tree",
    .source = "salf-talf, alg. 2; SuffixDecoding, Oliaro et al. 2024, sec. 4.3",
    .differs =
        "SuffixDecoding uses either the model's tree or the retrieved tree, and a threshold "
        "decides. Here both form one tree. The retrieved tree is used alone if retrieved "
        "trees have been accepted at least as deep as the model's trees. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK,
    .asks = ESP_ASK_EXPECTED | ESP_ASK_RECYCLED,
    .params = params,
    .state_size = sizeof(struct state),
    .close = finish,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
