/* tree_value.h - how many tokens an iteration with a given tree brings on average: E[tau + 1 |
 * tree] of delayed-tree-expansion, eq. 3.
 *
 * The mean over the verifier's random decisions is exact; what is left to chance is which tree
 * was drawn. Verifiers that decide node by node have a branching probability for each child
 * (def. 5.3), and the sum goes over the nodes. Traversal tests nodes in an order that depends
 * on the tree alone, as long as it refuses them, so its mean is a sum over that order.
 */
#ifndef ESP_TREE_VALUE_H
#define ESP_TREE_VALUE_H

#include "engine/selector/actions.h"
#include "engine/verifiers/verifier.h"

/* Distributions of target and draft by row, over n tokens each. */
struct esp_distributions {
    int n;
    const double *const *p, *const *q;
};

/* One tree of each action: a path of ESP_ACTION_LENGTH tokens (the stem), and behind each of
 * its nodes ESP_ACTION_PATHS paths of as many tokens, all drawn from the draft. Action (K, L1,
 * L2) has the first L1 tokens of the stem, and the first L2 of K of the paths behind the last.
 */
struct esp_rollouts {
    int32_t stem[ESP_ACTION_LENGTH];
    int32_t path[ESP_ACTION_LENGTH + 1][ESP_ACTION_PATHS][ESP_ACTION_LENGTH];
};

enum {
    ESP_ROLLOUT_STEM = ESP_ACTION_LENGTH + 1, /* rows of the stem, the root first */
    ESP_ROLLOUT_ROWS =
        ESP_ROLLOUT_STEM + ESP_ROLLOUT_STEM * ESP_ACTION_PATHS * (ESP_ACTION_LENGTH - 1),
};

/* The row of the distributions after token `at` (0..6) of path `path` behind stem node `stem`;
 * the stem's own are rows 0..8. What follows a path's last token is never asked for. */
int esp_rollout_row(int stem, int path, int at);

/* value[a] becomes E[tau + 1 | tree] of the rollouts' tree of each canonical action; others get
 * 0. The mean over independent rollouts is E^ of sec. 5 (there of s = 4). The verifier has
 * `branching`, or is Traversal. 0 or a negative status. */
int esp_action_values(const struct esp_rollouts *rollouts, const struct esp_distributions *d,
                      const struct esp_verifier_ops *rule, float value[ESP_ACTIONS]);

/* Can trees be valued under this verifier? */
bool esp_tree_has_value(const struct esp_verifier_ops *rule);

#endif
