/* tree_right.h - draws the rows of a draft tree (tree_view.h) as a tree that grows to the
 * right.
 *
 *     · " and" ┬─ " the" .81 ✓ ── " old" .44 ✓ ┬─ " king" .71 ✓ ── " fell" +
 *              └─ " he" .11                    └┄ " had" .08 cut
 *
 * The rows decide which nodes are shown, and tidy.h places them. The available width decides
 * how much detail a node has: whether its probability is shown, and how long its token can be.
 */
#ifndef ESP_TREE_RIGHT_H
#define ESP_TREE_RIGHT_H

#include "viz/tidy.h"
#include "viz/tree_view.h"

struct esp_tree_right {
    struct esp_tidy_box *box; /* (rows->count) */
    int width, height;        /* size of the whole drawing */
    int detail;               /* 0 (shortened tokens) to 2 (probabilities and words) */
};

/* Places all rows, with as much detail as fits into `columns` columns. Returns 0 or
 * ESP_E_MEMORY; esp_tree_right_free() frees the result. */
int esp_tree_right_place(struct esp_tree_right *right, const struct esp_tree_rows *rows,
                         const struct esp_iteration *it, const struct esp_tree_look *look,
                         int columns, bool ascii);
void esp_tree_right_free(struct esp_tree_right *right);

/* Fills the view of the canvas with the part of the drawing that begins at column x and row y.
 * Ignores look->first. */
void esp_tree_right_draw(struct esp_canvas *canvas, const struct esp_tree_right *right,
                         const struct esp_tree_rows *rows, const struct esp_iteration *it,
                         const struct esp_tree_look *look, int x, int y);

#endif
