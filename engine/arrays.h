/* arrays.h - the arrays of one object: zeroed, checked together and freed together. */
#ifndef ESP_ARRAYS_H
#define ESP_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory holds no arrays. */
struct esp_arrays {
    void *array[24];
    int count;
    bool failed; /* memory ran out: an array is NULL */
};

/* Allocates one more array; NULL if there is no memory. */
void *esp_arrays_add(struct esp_arrays *arrays, size_t count, size_t size);

void esp_arrays_free(struct esp_arrays *arrays);

#endif
