/* arrays.h - allocates the heap arrays of one object, filled with zeros. The caller checks
 * once, after all allocations, whether one of them failed. One call frees all arrays. */
#ifndef ESP_ARRAYS_H
#define ESP_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>

/* Stores pointers to the heap arrays of one object. A zero-initialised struct is valid and has
 * no arrays. */
struct esp_arrays {
    void *array[24];
    int count;
    bool failed; /* at least one esp_arrays_add() returned NULL */
};

/* Allocates one more array, filled with zeros. Returns NULL if there is no memory, or if all
 * entries of `array` are used. */
void *esp_arrays_add(struct esp_arrays *arrays, size_t count, size_t size);

void esp_arrays_free(struct esp_arrays *arrays);

#endif
