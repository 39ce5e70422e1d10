/* block.c - see block.h. */
#include "engine/train/block.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

/* Sets the pointers to consecutive parts of the memory at `at`. If `at` is NULL, only adds up
 * the sizes of the arrays. Returns the size of all arrays, or SIZE_MAX if it is too large. */
static size_t place(char *at, void *pointer, va_list list)
{
    size_t used = 0;
    for (; pointer; pointer = va_arg(list, void *)) {
        const size_t count = va_arg(list, size_t), size = va_arg(list, size_t);
        size_t bytes;
        if (at)
            memcpy(pointer, &(char *){at + used}, sizeof at);
        if (__builtin_mul_overflow(count, size, &bytes) ||
            __builtin_add_overflow(used, bytes, &used) || used > SIZE_MAX - 2 * LINE)
            return SIZE_MAX;
        used = (used + LINE - 1) / LINE * LINE;
    }
    return used;
}

void *esp_block_take(void *first, ...)
{
    va_list list;
    va_start(list, first);
    const size_t bytes = place(NULL, first, list);
    va_end(list);
    char *block = bytes < SIZE_MAX ? calloc(bytes + LINE, 1) : NULL;
    va_start(list, first);
    if (block)
        place(block + LINE - (uintptr_t)block % LINE, first, list);
    va_end(list);
    return block;
}
