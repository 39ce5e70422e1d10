/* walk.h - the order in which a pass visits the rows of a tree to compute the states of
 * recurrent layers.
 *
 * A node needs the state after its parent. The walk is depth first. It keeps the states that are
 * still needed on a small stack: level 0 is the state of the text, which the text's own rows
 * overwrite. The last child of a node is the one with most descendants, and overwrites the
 * node's level. So n rows need only about log2(n) levels, whatever the depth is.
 */
#ifndef ESP_WALK_H
#define ESP_WALK_H

#include <stdint.h>

/* Entry `entry` reads the state at level `from` of the stack and writes the one at level `to`. */
struct esp_walk_step {
    int32_t entry;
    int16_t from, to;
};

/* Entries are rows. The first `texts` of them are consecutive tokens of the text; the others
 * follow their parents. */
struct esp_state_walk {
    int count, texts;
    int32_t *parent;            /* (count) the entry before it; -1 means the state itself */
    struct esp_walk_step *step; /* (count) the walk */
    int32_t *size, *heavy, *first, *next, *pending, *level; /* (count + 1) for the ordering */
};

/* Fills `step` from `count`, `texts` and `parent`. */
void esp_walk_order(struct esp_state_walk *walk);

#endif
