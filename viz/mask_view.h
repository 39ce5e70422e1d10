/* mask_view.h - the tree attention mask as a picture.
 *
 * Row i of the target's pass sees row j of the tree iff j is i or one of its ancestors (all of
 * them see the whole text before the tree). The largest of these forms that fits is drawn:
 *
 *     labelled   one entry in two columns, each row with its token
 *     blocks     two entries above each other in one cell (half blocks)
 *     braille    2 x 4 entries in one cell
 *
 * If the glyph set has neither, each entry is one character, and the rest is clipped.
 */
#ifndef ESP_MASK_VIEW_H
#define ESP_MASK_VIEW_H

#include "viz/tree_view.h"

/* Fills the view of the canvas. The row of `node` is marked; -1: none. */
void esp_mask_draw(struct esp_canvas *canvas, const struct esp_iteration *it,
                   const struct esp_tokens *tokens, int node);

#endif
