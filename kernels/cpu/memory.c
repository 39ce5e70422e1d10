/* memory.c - allocates zeroed memory that is aligned to a cache line, and refuses
 * sizes that overflow. */
#include "kernels/cpu/cpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/system.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

void *esp_cpu_alloc(size_t count, size_t size)
{
    size_t bytes, all;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)2 * ALIGNMENT, &all))
        return NULL;
    char *memory = calloc(all, 1);
    if (!memory)
        return NULL;
    char *aligned = memory + sizeof(void *);
    aligned += (ALIGNMENT - (uintptr_t)aligned % ALIGNMENT) % ALIGNMENT;
    memcpy(aligned - sizeof(void *), &memory, sizeof memory);
    return aligned;
}

void esp_cpu_free(void *memory)
{
    if (!memory)
        return;
    void *start;
    memcpy(&start, (char *)memory - sizeof(void *), sizeof start);
    free(start);
}

void esp_cpu_use_huge_pages(char *memory, size_t bytes)
{
    char *begin = memory + (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
    if (bytes >= 2 * HUGE_PAGE)
        esp_use_large_pages(begin,
                            (bytes - (size_t)(begin - memory)) & ~(size_t)(HUGE_PAGE - 1));
}
