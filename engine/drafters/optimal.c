/* optimal.c - drafts exactly the N likeliest nodes (SpecExec; salf-talf, app. B, theorem 3),
 * with up to ESP_MAX_TOP children each.
 *
 * This is `salf` without its stopping rule. It needs more draft passes: at most one for each
 * depth and one for every B nodes.
 */
#include "engine/drafters/drafter.h"

enum { N, B };

static const struct esp_param params[] = {
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 60, .help = "number of nodes"},
    [B] = {"B", ESP_INT, 1, ESP_MAX_TOP, 10, .help = "nodes expanded per pass, at most N"},
    {0},
};

static int draft(struct esp_draft *d)
{
    return esp_draft_best(d, (int)esp_param(d->params, N), (int)esp_param(d->params, B), 0);
}

const struct esp_drafter_ops esp_drafter_optimal = {
    .name = "optimal",
    .summary = "the N likeliest nodes",
    .source = "SpecExec; salf-talf, app. B",
    .differs =
        "N is the number of candidates (app. D), so the root is not counted. Only the 64 "
        "likeliest children of a node are considered, which matters only for N above "
        "64. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK,
    .params = params,
    .draft = draft,
};
