/* naive.c - speculative sampling along one path (Leviathan et al. 2023, Chen et al. 2023).
 *
 * Every token x is kept with probability min(1, p(x) / q(x)). The first rejection ends the
 * path, and the next token is drawn from norm((p - q)+). With one child per node, that draw
 * never gives the rejected child, so this is `naivetree`. The name says that the tree is one
 * path (delayed-tree-expansion, sec. 3.1).
 */
#include "engine/verifiers/naivetree.h"

static const struct esp_param params[] = {ESP_PARAM_LOSSY, {0}};

const struct esp_verifier_ops esp_verifier_naive = {
    .name = "naive",
    .summary = "speculative sampling, token by token, along one path",
    .source = "Leviathan et al. 2023, Chen et al. 2023",
    .lossless = ESP_DRAW_IID,
    .single_path = true,
    .formula = "min(1, p/q)",
    .numbers = "min(1, $p/$q)",
    .params = params,
    .solve = esp_naivetree_solve,
    .acceptance_rate = esp_naivetree_acceptance,
    .branching = esp_naivetree_branching,
};
