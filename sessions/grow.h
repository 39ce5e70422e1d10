/* grow.h - growable arrays. */
#ifndef ESP_GROW_H
#define ESP_GROW_H

#include <limits.h>
#include <stdlib.h>

#include "engine/espalier.h"

/* Makes room for one more entry. `array` points to a pointer to entries of `size` bytes, of
 * which `count` are used. Returns 0, or ESP_E_MEMORY and changes nothing. */
static inline int esp_grow(void *array, int count, int *capacity, size_t size)
{
    void *grown, **place = array;
    if (count < *capacity)
        return ESP_OK;
    if (count > INT_MAX / 2)
        return ESP_E_MEMORY;
    int wanted = count > 0 ? 2 * count : 64;
    grown = realloc(*place, (size_t)wanted * size);
    if (!grown)
        return ESP_E_MEMORY;
    *place = grown;
    *capacity = wanted;
    return ESP_OK;
}

#endif
