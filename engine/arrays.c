/* arrays.c - see arrays.h. */
#include "engine/arrays.h"

#include <stdlib.h>

void *esp_arrays_add(struct esp_arrays *a, size_t count, size_t size)
{
    const bool room = a->count < (int)(sizeof a->array / sizeof *a->array);
    void *array = room ? calloc(count, size) : NULL;
    a->failed = a->failed || !array;
    if (array)
        a->array[a->count++] = array;
    return array;
}

void esp_arrays_free(struct esp_arrays *a)
{
    while (a->count > 0)
        free(a->array[--a->count]);
    a->failed = false;
}
