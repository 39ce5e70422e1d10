/* block.h - one block of zeroed memory for many arrays. */
#ifndef ESP_BLOCK_H
#define ESP_BLOCK_H

#include <stddef.h>

/* For each ESP_ARRAY(pointer, count) up to NULL, sets the pointer to `count` elements, aligned
 * to a cache line. Returns the block, for free(); NULL: there is not so much memory. */
void *esp_block_take(void *first, ...) __attribute__((sentinel));
#define ESP_ARRAY(pointer, count) &(pointer), (size_t)(count), sizeof *(pointer)

#endif
