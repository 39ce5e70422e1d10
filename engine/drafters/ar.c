/* ar.c - plain autoregressive decoding: the tree is only its root, and every iteration gives
 * one token.
 *
 * All other drafters are compared with this drafter. They must generate exactly the same
 * tokens.
 */
#include "engine/drafters/drafter.h"

static int draft(struct esp_draft *d)
{
    (void)d;
    return ESP_OK;
}

static const struct esp_param params[] = {ESP_PARAM_CACHE, {0}};

static int widths(const struct esp_params *values, int width[ESP_MAX_LEVELS])
{
    (void)values, (void)width;
    return 0;
}

const struct esp_drafter_ops esp_drafter_ar = {
    .name = "ar",
    .summary = "plain decoding, one token per target pass",
    .source = "the baseline",
    .draws = ESP_DRAW_TOPK | ESP_DRAW_IID | ESP_DRAW_SWOR, /* an empty tree fits every kind of
                                                              draw */
    .without_model = true,
    .params = params,
    .widths = widths,
    .draft = draft,
};
