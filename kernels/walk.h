/* walk.h - finds the order in which a pass computes the recurrent states that rows of a tree
 * read.
 *
 * Such a state follows a chunk of tokens (state_plan.h) and is computed from the state before
 * the chunk. The walk is depth first. It stores the states that are still needed on a small
 * stack. Level 0 is the state after the committed text, and chunks of that text overwrite it.
 * Among the children of a state, the child with the most descendants is visited last, and
 * overwrites the level of its parent. So n states need only about log2(n) levels, for any
 * depth.
 */
#ifndef ESP_WALK_H
#define ESP_WALK_H

#include <stdint.h>

/* A step of the walk: entry `entry` reads the state at level `from` of the stack and writes its
 * own state at level `to`. */
struct esp_walk_step {
    int32_t entry;
    int16_t from, to;
};

/* Each entry is a state. The first `texts` entries are the states after consecutive chunks of
 * the committed text. Every other entry comes after its parent. */
struct esp_state_walk {
    int count, texts;
    int32_t *parent;            /* (count) index of the parent; -1 means the state in memory */
    struct esp_walk_step *step; /* (count) the steps, in order */
    int32_t *size, *heavy, *first, *next, *pending, *level; /* (count + 1) scratch memory */
};

/* Fills `step` from `count`, `texts` and `parent`. */
void esp_walk_order(struct esp_state_walk *walk);

#endif
