/* actions.h - defines the selector's actions: the tree shapes from which it chooses. A shape is
 * (K, L1, L2), the parameters of drafter delayed (delayed-tree-expansion, app. E, eq. 8).
 *
 * There are 324 actions. Some actions give the same tree: with K = 1 or L2 = 0, the tree is a
 * chain of L1 + L2 tokens. Of the actions with the same tree, the selector uses only one, the
 * canonical action. For chains it is the one with K = 1 and the largest L1.
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

/* The first function returns the action with index 0..ESP_ACTIONS-1. The second function
 * returns the index of an action. */
struct esp_action esp_action_at(int index);
int esp_action_index(struct esp_action action);

/* Returns whether the action is canonical. */
bool esp_action_canonical(int index);

/* Returns the index of the canonical action with the same tree. */
int esp_action_same(struct esp_action action);

/* Returns the maximum number of rows in the target's pass: 1 + L1 + K L2. There are fewer if
 * several draws give the same token, because such draws share a row. */
int esp_action_rows(struct esp_action action);

/* Returns the length of the longest path: L1 + L2. */
int esp_action_depth(struct esp_action action);

/* Writes a text such as "K 2, L1 3, L2 4", "chain of 5" or "no draft". */
void esp_action_print(struct esp_action action, char *text, size_t size);

#endif
