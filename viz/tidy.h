/* tidy.h - places the boxes of a tree that grows to the right; each box is one row high.
 *
 *     root ┬─ a ── b
 *          ├─ c ┬─ d
 *          └─ e └─ f
 *
 * A box starts `gap` columns to the right of its parent's end. Boxes may differ in width, and
 * levels may be unaligned (van der Ploeg, "Drawing non-layered tidy trees in linear time",
 * 2014, after Reingold and Tilford 1981). Invariants of a drawing:
 *
 *     no two boxes or edges meet; a leaf is followed by at least one blank column
 *     a parent is in the middle between its first and its last child
 *     children keep their order, and each subtree is as close as possible to the subtree above
 *     equal subtrees look the same everywhere
 */
#ifndef ESP_TIDY_H
#define ESP_TIDY_H

struct esp_tidy_box {
    /* Index of the parent, which is lower than the index of the box; -1 for box 0. Siblings are
     * drawn in the order of their indices. */
    int parent;
    int width; /* columns */
    int x, y;  /* results: first column, and row; the root has x = 0, the topmost box y = 0 */
};

/* Places all boxes. Sets *width and *height to the number of columns and rows of the drawing.
 * Returns 0 or ESP_E_MEMORY. */
int esp_tidy_place(struct esp_tidy_box *box, int count, int gap, int *width, int *height);

#endif
