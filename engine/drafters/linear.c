/* linear.c - a single chain of K draft tokens (Leviathan et al., 2023).
 *
 * The chain takes the draft's likeliest token at each step. One guess that is wrong wastes all behind
 * it, which is what trees are for.
 */
#include "drafter.h"

#include <math.h>

enum { K, CACHE };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, 64, 6, .help = "tokens drafted per iteration"},
    [CACHE] = ESP_PARAM_CACHE,
    {0},
};

static bool expand(const void *policy, const struct esp_node *node, enum esp_reason *reason)
{
    *reason = ESP_REASON_DEPTH;
    return node->depth < (int)esp_param(policy, K);
}

static int one_child(const void *policy, const struct esp_node *node)
{
    (void)policy;
    (void)node;
    return 1;
}

static int draft(struct esp_draft *d)
{
    struct esp_layer_rule rule = {
        .policy = d->params,
        .expand = expand,
        .breadth = one_child,
        .most = 1,
        .budget = (int)esp_param(d->params, K),
        .log_cut = -INFINITY,
    };
    return esp_draft_grow(d, &rule);
}

static bool single_path(const struct esp_params *values)
{
    (void)values;
    return true;
}

const struct esp_drafter_ops esp_drafter_linear = {
    .name = "linear",
    .summary = "one chain of K tokens",
    .source = "Leviathan et al. 2023",
    .draws = ESP_DRAW_TOPK,
    .needs_model = true,
    .params = params,
    .single_path = single_path,
    .draft = draft,
};
