/* iid.c - K independent paths of length L from the root (delayed-tree-expansion, sec. 3.2).
 *
 * Most multi-path verifiers are defined on this tree. Paths with a common beginning share
 * nodes; the tree also stores how often and in which order each was drawn.
 */
#include "engine/drafters/drafter.h"

enum { K, L };

enum { LONGEST = 64 };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, ESP_MAX_TOP, 4, .help = "paths"},
    [L] = {"L", ESP_INT, 1, LONGEST, 4, .help = "tokens of each path"},
    {0},
};

static bool single_path(const struct esp_params *values)
{
    return esp_param(values, K) == 1;
}

static int draft(struct esp_draft *d)
{
    int width[LONGEST];
    struct esp_path_rule rule = {.width = width, .levels = (int)esp_param(d->params, L)};
    for (int i = 0; i < rule.levels; i++)
        width[i] = i == 0 ? (int)esp_param(d->params, K) : 1;
    return esp_draft_paths(d, &rule);
}

const struct esp_drafter_ops esp_drafter_iid = {
    .name = "iid",
    .summary = "K independently sampled paths of length L",
    .source = "delayed-tree-expansion, sec. 3.2",
    .differs = ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_IID,
    .needs_model = true,
    .params = params,
    .single_path = single_path,
    .draft = draft,
};
