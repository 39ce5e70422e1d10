/* walk.h - the order in which a pass computes the states that rows of a tree read.
 *
 * Such a state follows a chunk of tokens (state_plan.h) and is computed from the state before
 * the chunk. The walk is depth first. It stores the states that are still needed on a small
 * stack. Level 0 is the state of the text, which the text's own chunks overwrite. The last
 * child of a state is the one with most descendants, and overwrites the level of its parent. So
 * n states need only about log2(n) levels, whatever the depth is.
 */
#ifndef ESP_WALK_H
#define ESP_WALK_H

#include <stdint.h>

/* Entry `entry` reads the state at level `from` of the stack and writes the one at level `to`.
 */
struct esp_walk_step {
    int32_t entry;
    int16_t from, to;
};

/* Entries are states. The first `texts` of them are those after consecutive chunks of the text;
 * the others follow their parents. */
struct esp_state_walk {
    int count, texts;
    int32_t *parent;            /* (count) the entry before it; -1 means the state in memory */
    struct esp_walk_step *step; /* (count) the walk */
    int32_t *size, *heavy, *first, *next, *pending, *level; /* (count + 1) for the ordering */
};

/* Fills `step` from `count`, `texts` and `parent`. */
void esp_walk_order(struct esp_state_walk *walk);

#endif
