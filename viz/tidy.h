/* tidy.h - places the boxes of a tree that grows to the right, one row high each.
 *
 *     root ┬─ a ── b
 *          ├─ c ┬─ d
 *          └─ e └─ f
 *
 * A box starts `gap` columns right of the end of its parent: boxes may differ in width, and
 * levels need not be aligned (van der Ploeg, "Drawing non-layered tidy trees in linear time",
 * 2014, after Reingold and Tilford 1981). Invariants of a drawing:
 *
 *     no two boxes or edges meet; a leaf is followed by at least one blank column
 *     a parent is in the middle between its first and its last child
 *     children keep their order, and each subtree is as close as possible to those above it
 *     equal subtrees are drawn alike everywhere
 */
#ifndef ESP_TIDY_H
#define ESP_TIDY_H

struct esp_tidy_box {
    int parent; /* index, below its own; -1 for box 0. Siblings in the order of their indices.
                 */
    int width;  /* columns */
    int x, y;   /* set: first column and row; the root has x = 0, the topmost box y = 0 */
};

/* Returns 0 or ESP_E_MEMORY. *width and *height: columns and rows of the drawing. */
int esp_tidy_place(struct esp_tidy_box *box, int count, int gap, int *width, int *height);

#endif
