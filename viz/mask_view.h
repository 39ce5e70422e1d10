/* mask_view.h - draws the tree attention mask as character cells.
 *
 * A row of the target's pass attends to itself, to its ancestors in the tree, and to all of the
 * text before the tree. The first of these forms that fits is drawn:
 *
 *     labelled   each entry takes two columns, and each row shows its token
 *     blocks     each cell shows two entries, one above the other (half blocks)
 *     braille    each cell shows 2 x 4 entries
 *
 * If the glyph set has neither half blocks nor braille, each entry is one character, and what
 * does not fit is clipped.
 */
#ifndef ESP_MASK_VIEW_H
#define ESP_MASK_VIEW_H

#include "viz/tree_view.h"

/* Fills the view of the canvas. The row of `node` is marked, unless it is -1. */
void esp_mask_draw(struct esp_canvas *canvas, const struct esp_iteration *it,
                   const struct esp_tokens *tokens, int node);

#endif
