/* iid.c - K independent paths of length L from the root (delayed-tree-expansion, sec. 3.2).
 *
 * Most multi-path verifiers are defined on this tree. Paths with a common beginning share
 * nodes; the tree also stores how often and in which order each node was drawn.
 */
#include "engine/drafters/drafter.h"

enum { K, L };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, ESP_MAX_TOP, 4, .help = "number of paths"},
    [L] = {"L", ESP_INT, 1, 64, 4, .help = "tokens of each path"},
    {0},
};

static int widths(const struct esp_params *values, int width[ESP_MAX_LEVELS])
{
    const int levels = esp_chain_widths(width, (int)esp_param(values, L));
    width[0] = (int)esp_param(values, K);
    return levels;
}

const struct esp_drafter_ops esp_drafter_iid = {
    .name = "iid",
    .summary = "K independently sampled paths of length L",
    .source = "delayed-tree-expansion, sec. 3.2",
    .differs = ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_IID,
    .params = params,
    .widths = widths,
};
