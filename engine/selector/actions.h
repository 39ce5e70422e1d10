/* actions.h - the shapes of tree that the selector chooses from: (K, L1, L2) of drafter delayed
 * (delayed-tree-expansion, app. E, eq. 8).
 *
 * There are 324 of them. Several give the same tree: K = 1 or L2 = 0 is a chain of L1 + L2
 * tokens. The selector knows one of each kind, the canonical one: of chains that with K = 1 and
 * the longest L1.
 */
#ifndef ESP_ACTIONS_H
#define ESP_ACTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    ESP_ACTION_PATHS = 4,  /* K is 1..4 */
    ESP_ACTION_LENGTH = 8, /* L1 and L2 are 0..8 */
    ESP_ACTIONS = ESP_ACTION_PATHS * (ESP_ACTION_LENGTH + 1) * (ESP_ACTION_LENGTH + 1),
    ESP_ACTION_ROWS = 1 + ESP_ACTION_LENGTH + ESP_ACTION_PATHS * ESP_ACTION_LENGTH,
};

struct esp_action {
    int paths, stem, branch; /* K, L1, L2 */
};

/* Action number 0..ESP_ACTIONS-1, and the number of an action. */
struct esp_action esp_action_at(int index);
int esp_action_index(struct esp_action action);

/* Is this the one of its kind that the selector knows? */
bool esp_action_canonical(int index);

/* The canonical action with the same tree. */
int esp_action_same(struct esp_action action);

/* Rows of the target's pass: the root, L1 and K L2 nodes. Draws of the same token share one. */
int esp_action_rows(struct esp_action action);

/* The longest path: L1 + L2. */
int esp_action_depth(struct esp_action action);

/* Writes "K 2, L1 3, L2 4", "chain of 5" or "no draft". */
void esp_action_print(struct esp_action action, char *text, size_t size);

#endif
