/* assisted.c - a chain with adaptive length (assisted generation of the Hugging Face library).
 *
 * A chain has at most K tokens. K starts at the value of parameter K. It grows by 2 if all
 * drafted tokens were accepted; otherwise it falls by 1. A chain ends early after a token with
 * a draft probability below parameter `confidence`; that token is still verified. If all tokens
 * of such a shorter chain were accepted, K also grows, as in recent versions of the library.
 * Older versions required K accepted tokens. The confidence test only reads tokens that are
 * already in the tree, never the next one, so sampled chains stay unbiased.
 */
#include "engine/drafters/drafter.h"

enum { K, CONFIDENCE, DRAWS };

enum { LONGEST = 64, GROW = 2, SHRINK = 1 };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, LONGEST, 5, .help = "initial tokens per iteration"},
    [CONFIDENCE] = {"confidence", ESP_REAL, 0, 1, 0.4,
                    .help = "stop after a token less likely than this"},
    [DRAWS] = ESP_PARAM_DRAWS("iid"),
    {0},
};

struct state {
    int k;
};

static void init(void *memory, const struct esp_params *values, int changed)
{
    struct state *s = memory;
    if (changed < 0 || changed == K)
        s->k = (int)esp_param(values, K);
}

static int widths(const struct esp_params *values, int width[ESP_MAX_LEVELS])
{
    (void)values;
    return esp_chain_widths(width, LONGEST);
}

static int draft(struct esp_draft *d)
{
    const struct state *s = d->state;
    int width[ESP_MAX_LEVELS];
    const struct esp_path_rule rule = {.width = width,
                                       .levels = esp_chain_widths(width, s->k),
                                       .least_q = esp_param(d->params, CONFIDENCE)};
    return esp_draft_paths(d, &rule);
}

static void adapt(struct esp_draft *d, const struct esp_iteration *it)
{
    struct state *s = d->state;
    if (it->deepest == 0)
        return; /* nothing was drafted, so there is nothing to learn */
    s->k += it->path_length == it->deepest ? GROW : -SHRINK;
    s->k = s->k < 1 ? 1 : s->k > LONGEST ? LONGEST : s->k;
}

static int gauges(const struct esp_draft *d, struct esp_gauge *g)
{
    const struct state *s = d->state;
    g[0] = (struct esp_gauge){"K", .after = s->k, .minimum = 1, .maximum = LONGEST};
    return 1;
}

const struct esp_drafter_ops esp_drafter_assisted = {
    .name = "assisted",
    .summary = "a chain that grows when all of its tokens were accepted",
    .source = "Hugging Face assisted generation",
    .differs = ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK | ESP_DRAW_IID,
    .params = params,
    .state_size = sizeof(struct state),
    .init = init,
    .widths = widths,
    .draft = draft,
    .adapt = adapt,
    .gauges = gauges,
};
