/* fixed.c - the fixed tree of the first DynaTree paper: every node down to depth D has its B
 * likeliest children.
 *
 * Nodes with a cumulative draft probability below tau are never expanded, and with prune=cut
 * they are not verified either (dynatree-fixed-tree, sec. 3.3). The tree has at most N nodes.
 * With tau=0 it is the full B-ary tree, up to N nodes.
 */
#include "engine/drafters/drafter.h"

#include <math.h>

enum { D, B, TAU, N, PRUNE, ROOT, CACHE };

static const struct esp_param params[] = {
    [D] = {"D", ESP_INT, 1, 64, 6, .help = "depth of the tree"},
    [B] = {"B", ESP_INT, 1, ESP_MAX_TOP, 2, .help = "children of every node"},
    [TAU] = {"tau", ESP_REAL, 0, 1, 0.05, .help = "cut paths less likely than this"},
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 256, .help = "maximum number of nodes"},
    [PRUNE] = ESP_PARAM_PRUNE,
    [ROOT] = ESP_PARAM_ROOT,
    [CACHE] = ESP_PARAM_CACHE,
    {0},
};

static bool expand(const void *drafter, const struct esp_node *node, enum esp_reason *reason)
{
    const struct esp_params *values = drafter;
    /* With root=draft, as the paper literally says, the draft's first guess has depth 0. */
    int depth = node->depth - (int)esp_param(values, ROOT);
    *reason = ESP_REASON_DEPTH;
    return depth < (int)esp_param(values, D);
}

static int breadth(const void *drafter, const struct esp_node *node)
{
    (void)node;
    return (int)esp_param(drafter, B);
}

static int draft(struct esp_draft *d)
{
    struct esp_layer_rule rule = {
        .drafter = d->params,
        .expand = expand,
        .breadth = breadth,
        .most = (int)esp_param(d->params, B),
        .budget = (int)esp_param(d->params, N),
        .log_least = log(esp_param(d->params, TAU)),
        .cut = esp_param(d->params, PRUNE) == ESP_PRUNE_CUT,
        .draft_root = esp_param(d->params, ROOT) != 0,
    };
    return esp_draft_grow(d, &rule);
}

const struct esp_drafter_ops esp_drafter_fixed = {
    .name = "fixed",
    .summary = "a tree of fixed depth and breadth, with unlikely paths cut",
    .source = "dynatree-fixed-tree, sec. 3.3",
    .differs =
        "if a layer exceeds N, its likeliest nodes are kept instead of its first nodes. "
        "prune=cut follows sec. 3.3. prune=stop follows alg. 1 and the released program, "
        "which verify leaves below tau without expanding them. "
        "root=draft,cache=rebuild,prune=stop is exactly alg. 1, except for the choice of "
        "the nodes that are kept. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK,
    .params = params,
    .draft = draft,
};
