/* linear.c - a single chain of K draft tokens (Leviathan et al., 2023).
 *
 * The chain takes the draft's likeliest token at each step, or samples it. One wrong guess
 * wastes all tokens after it; trees exist to avoid that.
 */
#include "engine/drafters/drafter.h"

enum { K, DRAWS, CACHE };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, 64, 6, .help = "tokens drafted per iteration"},
    [DRAWS] = ESP_PARAM_DRAWS("iid"),
    [CACHE] = ESP_PARAM_CACHE,
    {0},
};

static bool sampled(const struct esp_params *values, bool greedy)
{
    return esp_draws_sampled(esp_param(values, DRAWS), greedy);
}

static unsigned draws_with(const struct esp_params *values, bool greedy)
{
    return sampled(values, greedy) ? ESP_DRAW_IID : ESP_DRAW_TOPK;
}

static bool single_path(const struct esp_params *values)
{
    (void)values;
    return true;
}

static int draft(struct esp_draft *d)
{
    return esp_draft_chain(d, (int)esp_param(d->params, K), 0, sampled(d->params, d->greedy));
}

const struct esp_drafter_ops esp_drafter_linear = {
    .name = "linear",
    .summary = "one chain of K tokens",
    .source = "Leviathan et al. 2023",
    .differs = ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_IID,
    .needs_model = true,
    .params = params,
    .draws_with = draws_with,
    .single_path = single_path,
    .draft = draft,
};
