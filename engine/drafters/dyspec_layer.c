/* dyspec_layer.c - grows the tree of drafter `dyspec` layer by layer, with a threshold (dyspec,
 * alg. 2).
 *
 * v and R are defined in dyspec.c. Below each node of a layer, siblings are drawn while v is at
 * least the threshold. Children with a v of at least the threshold form the next layer. If the
 * threshold equals the v of the last draw in dyspec.c, both trees are the same, but this one
 * needs only one pass per depth. The size is limited: if the draws of a round do not fit, only
 * the draws with the largest v are made, and this layer is the last.
 *
 * The resulting tree depends on the threshold. The threshold 1/N guarantees at least N nodes,
 * but it fills the tree with siblings in its first layers. threshold=0 predicts the threshold
 * from earlier trees, because the v of the N-th draw changes little from tree to tree. A tree
 * of n nodes changes the logarithm of the threshold by (n / N - 1) / 2, so that trees have N
 * nodes on average. A tree has at most 2 N nodes (alg. 2 has no limit).
 *
 * A round draws one more child below each node of the layer that still has a large enough v. As
 * in dyspec.c, whether to draw depends only on v, never on the drawn token.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/drafters/drafter.h"

enum { THRESHOLD, N };

/* Initial value and limits of the predicted threshold. FIRST and LEAST are divided by N. */
static const double FIRST = 4, LEAST = 0.01, MOST = 0.5;

static const struct esp_param params[] = {
    [THRESHOLD] = {"threshold", ESP_REAL, 0, 1, 0,
                   .help = "draw while the value v is at least this; 0: "
                           "predict it for N nodes"},
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 64,
           .help = "maximum number of nodes; with threshold=0 the mean number, at most 2 N"},
    {0},
};

struct entry {
    double v; /* v of the next draw below the node */
    int32_t node;
};

struct state {
    double threshold; /* the next tree's threshold, if it is predicted */
    int draws;        /* number of draws in the last tree */
    struct entry active[ESP_MAX_NODES + 1], next[ESP_MAX_NODES + 1];
    int32_t nodes[ESP_MAX_NODES + 1], children[ESP_MAX_NODES + 1];
};

static int by_falling_v(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->v != y->v)
        return x->v < y->v ? 1 : -1;
    return x->node - y->node;
}

/* Makes one draw below each active node. Nodes that get another draw stay active. Children that
 * will be expanded are added to the next layer. */
static int draw_round(struct esp_draft *d, struct state *s, int *active, int *next,
                      double threshold)
{
    int count = *active;
    for (int i = 0; i < count; i++)
        s->nodes[i] = s->active[i].node;
    int status = esp_draft_draw(d, s->nodes, count, ESP_DRAW_SWOR, s->children);
    if (status < 0)
        return status;
    *active = 0;
    for (int i = 0; i < count; i++) {
        if (s->children[i] < 0)
            continue;
        struct entry e = s->active[i];
        struct esp_node *node = &d->tree->tree.nodes[s->children[i]];
        double r = esp_draft_share(d, s->children[i]);
        node->value = (float)e.v;
        node->reason = ESP_REASON_THRESHOLD;
        if (e.v * r >= threshold && node->depth >= d->max_depth)
            node->reason = ESP_REASON_DEPTH;
        else if (e.v * r >= threshold)
            s->next[(*next)++] = (struct entry){e.v * r, s->children[i]};
        e.v *= 1 - r;
        if (e.v >= threshold && e.v > 0)
            s->active[(*active)++] = e;
    }
    return ESP_OK;
}

/* Expands the layer in s->next and draws below it; returns the size of the next layer. */
static int grow_layer(struct esp_draft *d, struct state *s, int count, int *room,
                      double threshold)
{
    int active = count, next = 0;
    for (int i = 0; i < count; i++) {
        s->active[i] = s->next[i];
        s->nodes[i] = s->next[i].node;
        d->tree->tree.nodes[s->nodes[i]].reason = ESP_REASON_NONE;
    }
    int status = esp_draft_expand(d, s->nodes, count, 0);
    while (status == ESP_OK && active > 0 && *room > 0) {
        if (active > *room) {
            qsort(s->active, (size_t)active, sizeof *s->active, by_falling_v);
            active = *room;
        }
        *room -= active;
        status = draw_round(d, s, &active, &next, threshold);
    }
    return status < 0 ? status : next;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    double threshold = esp_param(d->params, THRESHOLD);
    int budget = (int)esp_param(d->params, N) * (threshold == 0 ? 2 : 1), count = 1;
    int room = budget < d->tree->room ? budget : d->tree->room;
    const int most = room;
    if (threshold == 0)
        threshold = s->threshold;
    s->next[0] = (struct entry){1, 0};
    while (count > 0 && room > 0) {
        count = grow_layer(d, s, count, &room, threshold);
        if (count < 0)
            return count;
        esp_draft_layer_done(d);
    }
    for (int i = 0; i < count; i++)
        d->tree->tree.nodes[s->next[i].node].reason = ESP_REASON_BUDGET;
    s->draws = most - room;
    return ESP_OK;
}

static void init(void *memory, const struct esp_params *values, int changed)
{
    struct state *s = memory;
    if (changed < 0 || changed == N || changed == THRESHOLD)
        s->threshold = fmin(FIRST / esp_param(values, N), MOST);
}

/* Predicts the next threshold. If the memory for trees is too small, trees cannot reach N
 * nodes. The limits then keep the threshold from falling forever. */
static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    const double n = esp_param(d->params, N);
    (void)it;
    if (s->draws > 0)
        s->threshold = fmin(fmax(s->threshold * exp((s->draws / n - 1) / 2), LEAST / n), MOST);
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct state *s = d->state;
    const double own = esp_param(d->params, THRESHOLD);
    g[0] = (struct esp_gauge){"threshold", .after = own > 0 ? own : s->threshold, .maximum = 1};
    return 1;
}

const struct esp_drafter_ops esp_drafter_dyspec_layer = {
    .name = "dyspec-layer",
    .summary = "nodes sampled layer by layer, while acceptance is likely enough",
    .source = "dyspec, alg. 2",
    .differs =
        "trees have a size limit, unlike in alg. 2: if a round of draws would exceed it, "
        "only the draws with the largest v are made. With threshold=0, the threshold "
        "that gives N nodes is predicted from earlier trees; the paper sets a fixed threshold. "
        "--draft-temp 0.6 is the setting of sec. 5.1. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_SWOR,
    .params = params,
    .state_size = sizeof(struct state),
    .init = init,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
