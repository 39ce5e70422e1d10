/* mask.c - computes the tree attention mask; see mask.h. */
#include "viz/mask.h"

#include <stdlib.h>

bool esp_mask_open(struct esp_mask *mask, const struct esp_tree *tree)
{
    int rows = mask->rows = tree->verified;
    mask->sees = NULL;
    if (rows < 1 || !tree->order)
        return false;
    int *row_of = calloc((size_t)tree->count, sizeof *row_of);
    mask->sees = calloc((size_t)rows * (size_t)rows, sizeof *mask->sees);
    if (!row_of || !mask->sees) {
        free(row_of);
        free(mask->sees);
        return false;
    }
    for (int i = 0; i < rows; i++) {
        bool *row = mask->sees + (size_t)i * (size_t)rows;
        row_of[tree->order[i]] = i;
        for (int at = tree->order[i]; at >= 0; at = tree->nodes[at].parent)
            row[row_of[at]] = true;
    }
    free(row_of);
    return true;
}

void esp_mask_close(struct esp_mask *mask)
{
    free(mask->sees);
    mask->sees = NULL;
}

bool esp_mask_sees(const struct esp_mask *mask, int row, int column)
{
    return row < mask->rows && column < mask->rows &&
           mask->sees[(size_t)row * (size_t)mask->rows + (size_t)column];
}

bool esp_mask_block(const struct esp_mask *mask, int block_row, int block_column)
{
    for (int i = 0; i < ESP_MASK_BLOCK; i++)
        for (int j = 0; j < ESP_MASK_BLOCK; j++)
            if (esp_mask_sees(mask, block_row * ESP_MASK_BLOCK + i,
                              block_column * ESP_MASK_BLOCK + j))
                return true;
    return false;
}
