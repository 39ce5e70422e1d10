/* sequoia.c - the best tree shape for measured acceptance rates (Sequoia, Chen et al. 2024).
 *
 * r_k is the rate at which the k-th child of an accepted node is accepted; it is learned, with
 * a prior (rank_rates.h). A dynamic program (best_shape.h) finds the shape with the most
 * expected tokens. It runs again when an r_k has changed by more than a tenth. The shape is
 * fixed before anything is drawn, so it is independent of the tokens. Children are drawn
 * without replacement, or are the likeliest tokens. learn=off uses only the prior and no file.
 */
#include <math.h>
#include <stdio.h>

#include "engine/drafters/drafter.h"
#include "engine/drafters/rank_rates.h"

enum { N, DEPTH, LEARN, DRAWS };

static const double MOVED = 0.1;

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 64, .help = "number of nodes"},
    [DEPTH] = {"depth", ESP_INT, 1, ESP_SHAPE_DEPTH, 12, .help = "maximum depth"},
    [LEARN] = {"learn", ESP_FLAG, 0, 1, 1, .help = "measure acceptance rates and store them"},
    [DRAWS] = ESP_PARAM_DRAWS("swor"),
    {0},
};

struct state {
    struct esp_rank_rates rates;
    double planned[ESP_RANKS]; /* the rates for which the shape was made */
    int planned_nodes, planned_depth;
    double expected; /* expected tokens per iteration */
    struct esp_shape shape;
    struct esp_shape_table table;
    /* For each node of the shape: its index in the tree; -1 if the tree does not have it. */
    int32_t node[ESP_MAX_NODES + 1];
    /* Describe the layer that is being grown. `layer` has its nodes as indices in the shape,
     * `parents` has the same nodes as indices in the tree, and `children` has drawn
     * children. */
    int32_t layer[ESP_MAX_NODES + 1], parents[ESP_MAX_NODES + 1], children[ESP_MAX_NODES + 1];
};

/* Plans the best shape for the settings and the rates. */
static void plan(struct state *s, const struct esp_draft *d)
{
    char key[sizeof s->rates.key] = "";
    int nodes = (int)esp_param(d->params, N), depth = (int)esp_param(d->params, DEPTH);
    nodes = nodes < d->tree->capacity ? nodes : d->tree->capacity;
    if (*d->context->pair)
        snprintf(key, sizeof key, "%s, temperature %g, %s", d->context->pair, d->temperature,
                 d->draws == ESP_DRAW_SWOR ? "swor" : "topk");
    esp_rank_rates_turn(&s->rates, esp_param(d->params, LEARN) != 0 ? key : NULL);
    bool moved = nodes != s->planned_nodes || depth != s->planned_depth;
    for (int k = 0; k < ESP_RANKS && !moved; k++)
        moved = fabs(esp_rank_rate(&s->rates, k) - s->planned[k]) > MOVED * s->planned[k];
    if (!moved)
        return;
    for (int k = 0; k < ESP_RANKS; k++)
        s->planned[k] = esp_rank_rate(&s->rates, k);
    s->planned_nodes = nodes;
    s->planned_depth = depth;
    s->expected = esp_shape_best(&s->shape, &s->table, s->planned, ESP_RANKS, nodes, depth);
}

/* Lists the nodes of one layer of the shape, but only nodes that are in the tree and get
 * children. Returns their number and sets *most to the largest number of children. */
static int list_layer(struct state *s, const struct esp_draft *d, int first, int end, int *most)
{
    int count = 0;
    *most = 0;
    for (int u = first; u < end; u++) {
        if (s->node[u] < 0)
            continue;
        struct esp_node *node = &d->tree->tree.nodes[s->node[u]];
        bool deep = node->depth >= d->max_depth || node->depth >= s->planned_depth;
        node->reason = deep ? ESP_REASON_DEPTH : ESP_REASON_GAIN;
        if (deep || s->shape.children[u] == 0)
            continue;
        node->reason = ESP_REASON_NONE;
        s->layer[count] = u;
        s->parents[count++] = s->node[u];
        *most = s->shape.children[u] > *most ? s->shape.children[u] : *most;
    }
    return count;
}

static void add_likeliest(struct esp_draft *d, struct state *s, int count, int most)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < s->shape.children[s->layer[i]]; j++) {
            int from = i * most + j;
            if (d->top_q[from] > 0)
                s->node[s->shape.first_child[s->layer[i]] + j] =
                    esp_tree_add(d->tree, s->parents[i], d->top_token[from], d->top_q[from]);
        }
}

/* Adds drawn children in rounds. In each round, every node that still needs a child gets
 * one. */
static int add_drawn(struct esp_draft *d, struct state *s, int count, int most)
{
    int status = ESP_OK;
    for (int j = 0; j < most && status == ESP_OK; j++) {
        int n = 0;
        for (int i = 0; i < count; i++) {
            if (j >= s->shape.children[s->layer[i]])
                continue;
            s->layer[n] = s->layer[i];
            s->parents[n++] = s->parents[i];
        }
        count = n;
        status = esp_draft_draw(d, s->parents, n, ESP_DRAW_SWOR, s->children);
        for (int i = 0; i < n && status == ESP_OK; i++)
            s->node[s->shape.first_child[s->layer[i]] + j] = s->children[i];
    }
    return status;
}

static int draft(struct esp_draft *d)
{
    struct state *s = d->state;
    const bool drawn = d->draws == ESP_DRAW_SWOR;
    plan(s, d);
    for (int u = 0; u < s->shape.nodes; u++)
        s->node[u] = u == 0 ? 0 : -1;
    for (int first = 0, end = 1, most; first < end;) {
        int count = list_layer(s, d, first, end, &most);
        if (count == 0)
            break;
        int status = esp_draft_expand(d, s->parents, count, drawn ? 0 : most);
        if (status == ESP_OK && drawn)
            status = add_drawn(d, s, count, most);
        else if (status == ESP_OK)
            add_likeliest(d, s, count, most);
        if (status < 0)
            return status;
        esp_draft_layer_done(d);
        first = end;
        end = s->shape.first_child[end - 1] + s->shape.children[end - 1];
    }
    return ESP_OK;
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    if (esp_param(d->params, LEARN) != 0)
        esp_rank_rates_learn(&s->rates, it);
}

static void finish(void *memory)
{
    esp_rank_rates_save(&((struct state *)memory)->rates);
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    static const char *const names[] = {"r1", "r2", "r3", "r4"};
    const struct state *s = d->state;
    for (int k = 0; k < 4; k++)
        g[k] = (struct esp_gauge){names[k], .after = esp_rank_rate(&s->rates, k), .maximum = 1};
    g[4] = (struct esp_gauge){"expected", .after = s->expected, .maximum = ESP_SHAPE_DEPTH + 1};
    return 5;
}

const struct esp_drafter_ops esp_drafter_sequoia = {
    .name = "sequoia",
    .summary = "the shape with the most expected tokens, for measured acceptance rates",
    .source = "Chen et al. 2024",
    .differs =
        "rates are measured during generation, not beforehand. N and depth are parameters, "
        "while Sequoia fits them to the hardware. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_SWOR,
    .asks = ESP_ASK_PAIR,
    .params = params,
    .state_size = sizeof(struct state),
    .close = finish,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
