/* walk_view.h - draws which states of recurrent layers the rows of the target's pass read, and
 * how many updates they add (kernels/state_plan.h).
 *
 * There is a line for each row and a column for each level of the stack of states
 * (kernels/walk.h). Level 0 is the state of the text in memory. Where a state is computed, one
 * level is read and another is written. Levels that are read again later are marked as kept.
 * A row adds the updates of some of its ancestors to the state that it reads. The last column
 * is the number of these ancestors.
 */
#ifndef ESP_WALK_VIEW_H
#define ESP_WALK_VIEW_H

#include "viz/tree_view.h"

/* Returns how many states the pass over an iteration's tree needs in addition to the state of
 * the text. */
int esp_walk_levels(const struct esp_iteration *it);

enum { ESP_WALK_ROWS = 3 }; /* lines of a drawing in addition to one for each row */

/* Returns the number of columns that a drawing needs. */
int esp_walk_width(const struct esp_iteration *it);
/* Fills the view of the canvas. The row of `node` is marked, unless it is -1. */
void esp_walk_draw(struct esp_canvas *canvas, const struct esp_iteration *it,
                   const struct esp_tokens *tokens, int node);

#endif
