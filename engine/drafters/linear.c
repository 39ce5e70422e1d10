/* linear.c - a single chain of K draft tokens (Leviathan et al., 2023).
 *
 * The chain takes the draft's likeliest token at each step, or samples it. After one wrong
 * guess, all later tokens of the chain are useless; trees avoid this.
 */
#include "engine/drafters/drafter.h"

enum { K, DRAWS, CACHE };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, 64, 6, .help = "tokens drafted per iteration"},
    [DRAWS] = ESP_PARAM_DRAWS("iid"),
    [CACHE] = ESP_PARAM_CACHE,
    {0},
};

static int widths(const struct esp_params *values, int width[ESP_MAX_LEVELS])
{
    return esp_chain_widths(width, (int)esp_param(values, K));
}

const struct esp_drafter_ops esp_drafter_linear = {
    .name = "linear",
    .summary = "one chain of K tokens",
    .source = "Leviathan et al. 2023",
    .differs = ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_IID,
    .params = params,
    .widths = widths,
};
