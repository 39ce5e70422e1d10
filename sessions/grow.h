/* grow.h - enlarges dynamically allocated arrays. */
#ifndef ESP_GROW_H
#define ESP_GROW_H

#include <limits.h>
#include <stdlib.h>

#include "engine/espalier.h"

/* Makes room for `wanted` entries. `array` is the address of a pointer to the entries, and each
 * entry has `size` bytes. Returns 0, or ESP_E_MEMORY and changes nothing. */
static inline int esp_reserve(void *array, int wanted, int *capacity, size_t size)
{
    void *grown, **place = array;
    if (wanted <= *capacity)
        return ESP_OK;
    grown = realloc(*place, (size_t)wanted * size);
    if (!grown)
        return ESP_E_MEMORY;
    *place = grown;
    *capacity = wanted;
    return ESP_OK;
}

/* Makes room for one more entry after the first `count`. If this needs memory, the array
 * becomes about twice as large. Returns the same as esp_reserve(). */
static inline int esp_grow(void *array, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return ESP_OK;
    return count > INT_MAX / 2 ? ESP_E_MEMORY
                               : esp_reserve(array, count > 0 ? 2 * count : 64, capacity, size);
}

#endif
