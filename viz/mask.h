/* mask.h - the tree attention mask of a flattened tree.
 *
 * A row of the target's pass attends to itself, to its ancestors in the tree, and to the whole
 * text before the tree.
 */
#ifndef ESP_MASK_H
#define ESP_MASK_H

#include "engine/espalier.h"

enum { ESP_MASK_BLOCK = 32 }; /* rows and columns of a block */

struct esp_mask {
    int rows;   /* tree->verified */
    bool *sees; /* (rows, rows) */
};

/* Makes the mask of a tree. Returns false if there is no memory, or if the tree has no rows.
 * esp_mask_close() frees it. */
bool esp_mask_open(struct esp_mask *mask, const struct esp_tree *tree);
void esp_mask_close(struct esp_mask *mask);

/* Returns whether row `row` attends to row `column`. Returns false beyond the last row or
 * column. */
bool esp_mask_sees(const struct esp_mask *mask, int row, int column);
/* Returns whether any row of a block attends to any column of the block. A block has 32 rows
 * and 32 columns; block_row and block_column are indices of blocks. */
bool esp_mask_block(const struct esp_mask *mask, int block_row, int block_column);

#endif
