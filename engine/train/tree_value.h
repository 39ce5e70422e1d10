/* tree_value.h - computes how many tokens an iteration with a given tree commits on average:
 * E[tau + 1 | tree] of delayed-tree-expansion, eq. 3.
 *
 * The mean over the verifier's random decisions is exact; only the tree itself was drawn at
 * random. Verifiers that decide node by node have a branching probability for each child (def.
 * 5.3), and the mean is a sum over the nodes. While verifier `traversal` rejects nodes, the
 * order in which it tests them depends only on the tree. Its mean is therefore a sum over that
 * order.
 */
#ifndef ESP_TREE_VALUE_H
#define ESP_TREE_VALUE_H

#include "engine/selector/actions.h"
#include "engine/verifiers/verifier.h"

/* Holds the distributions of target and draft over n tokens, one distribution per row. */
struct esp_distributions {
    int n;
    const double *const *p, *const *q;
};

/* These draws contain one tree for each action. The stem is a path of ESP_ACTION_LENGTH tokens.
 * After the root and after each stem node, there are ESP_ACTION_PATHS paths of the same length.
 * All tokens are drawn from the draft. The tree of action (K, L1, L2) is the first L1 tokens of
 * the stem and, after the last of them, the first L2 tokens of K paths. */
struct esp_rollouts {
    int32_t stem[ESP_ACTION_LENGTH];
    int32_t path[ESP_ACTION_LENGTH + 1][ESP_ACTION_PATHS][ESP_ACTION_LENGTH];
};

enum {
    ESP_ROLLOUT_STEM = ESP_ACTION_LENGTH + 1, /* rows of the stem, the root first */
    ESP_ROLLOUT_ROWS =
        ESP_ROLLOUT_STEM + ESP_ROLLOUT_STEM * ESP_ACTION_PATHS * (ESP_ACTION_LENGTH - 1),
};

/* Returns the row of the distributions after token `at` (0..6) of path `path` below stem node
 * `stem`. Rows 0..8 are the rows after the root and the tokens of the stem. There is no row
 * after the last token of a path, because it is never needed. */
int esp_rollout_row(int stem, int path, int at);

/* value[a] becomes E[tau + 1 | tree] for the tree of each canonical action a; other actions get
 * 0. The mean of value[a] over independent rollouts is E^ of sec. 5; the paper uses s = 4
 * rollouts. The verifier must have `branching` or be `traversal`. Returns 0 or a negative
 * status. */
int esp_action_values(const struct esp_rollouts *rollouts, const struct esp_distributions *d,
                      const struct esp_verifier_ops *rule, float value[ESP_ACTIONS]);

/* Returns whether esp_action_values() works with this verifier. */
bool esp_tree_has_value(const struct esp_verifier_ops *rule);

#endif
