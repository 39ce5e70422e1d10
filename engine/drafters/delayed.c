/* delayed.c - one sampled path of L1 tokens, then K independent paths of L2 tokens each
 * (delayed-tree-expansion, def. 5.2).
 *
 * Draft and target agree best near the root, so branches near the root gain least. The branches
 * therefore start where the two models begin to differ. With L1=0, this drafter is the same as
 * drafter `iid`.
 */
#include "engine/drafters/drafter.h"

#include "kernels/status.h"

enum { K, L1, L2 };

enum { LONGEST = ESP_MAX_LEVELS / 2 };

static const struct esp_param params[] = {
    [K] = {"K", ESP_INT, 1, ESP_MAX_TOP, 3, .help = "paths after the branching point"},
    [L1] = {"L1", ESP_INT, 0, LONGEST, 2, .help = "tokens before the branching point"},
    [L2] = {"L2", ESP_INT, 0, LONGEST, 3,
            .help = "tokens of each path after the branching point"},
    {0},
};

static int check(const struct esp_params *values, char *err, size_t errlen)
{
    if (esp_param(values, L1) + esp_param(values, L2) < 1)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "delayed: L1 and L2 are both 0, so nothing would be drafted");
    return ESP_OK;
}

static int widths(const struct esp_params *values, int width[ESP_MAX_LEVELS])
{
    const int stem = (int)esp_param(values, L1), branch = (int)esp_param(values, L2);
    const int levels = esp_chain_widths(width, stem + branch);
    if (branch > 0)
        width[stem] = (int)esp_param(values, K);
    return levels;
}

const struct esp_drafter_ops esp_drafter_delayed = {
    .name = "delayed",
    .summary = "one sampled path that splits into K paths after L1 tokens",
    .source = "delayed-tree-expansion, def. 5.2",
    .differs =
        "K, L1 and L2 are parameters. The paper's neural selector (sec. 6), which is "
        "drafter nde in espalier, chooses them for every tree and must be trained for each "
        "pair and verifier. " ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_IID,
    .params = params,
    .check = check,
    .widths = widths,
};
