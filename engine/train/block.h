/* block.h - allocates many arrays in one block of memory, filled with zeros. */
#ifndef ESP_BLOCK_H
#define ESP_BLOCK_H

#include <stddef.h>

/* Sets the pointer of each ESP_ARRAY(pointer, count) to an array of `count` elements, aligned
 * to a cache line. The list ends with NULL. Returns the block, or NULL if there is not enough
 * memory. The caller frees the block. */
void *esp_block_take(void *first, ...) __attribute__((sentinel));
#define ESP_ARRAY(pointer, count) &(pointer), (size_t)(count), sizeof *(pointer)

#endif
