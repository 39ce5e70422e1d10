/* walk_view.h - draws the order in which the target's pass visits the rows of a tree to compute
 * the states of recurrent layers (kernels/walk.h).
 *
 * There is a row for each step and a column for each level of the stack. Level 0 is the state
 * of the text in memory. In each step, one level is read and one is written; levels that a
 * later step reads are marked as kept.
 */
#ifndef ESP_WALK_VIEW_H
#define ESP_WALK_VIEW_H

#include "viz/tree_view.h"

/* The number of levels that the walk over a tree needs besides the state in memory. */
int esp_walk_levels(const struct esp_tree *tree);

enum { ESP_WALK_ROWS = 3 }; /* rows of a drawing besides one for each step */

/* The columns that a drawing needs. */
int esp_walk_width(const struct esp_tree *tree);
/* Fills the view of the canvas. The row of `node` is marked, unless it is -1. */
void esp_walk_draw(struct esp_canvas *canvas, const struct esp_iteration *it,
                   const struct esp_tokens *tokens, int node);

#endif
