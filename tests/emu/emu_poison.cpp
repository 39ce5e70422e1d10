/* emu_poison.cpp - see emu_poison.h. */
#include "tests/emu/emu_poison.h"

#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif

static const unsigned char pattern = 0xff; /* a float that consists of these bytes is NaN */

#ifdef EMU_ASAN
#include <sanitizer/asan_interface.h>

void emu_poison(void *address, size_t bytes)
{
    __asan_poison_memory_region(address, bytes);
}

void emu_unpoison(void *address, size_t bytes)
{
    __asan_unpoison_memory_region(address, bytes);
}
#else
void emu_poison(void *, size_t)
{
}

void emu_unpoison(void *, size_t)
{
}
#endif

void emu_guard(unsigned char *block, size_t bytes, size_t before, size_t after)
{
    emu_unpoison(block - before, before + bytes + after);
    memset(block - before, pattern, before);
    memset(block + bytes, pattern, after);
    emu_poison(block - before, before);
    emu_poison(block + bytes, after);
}

__attribute__((no_sanitize_address)) bool
emu_guards_hold(const unsigned char *block, size_t bytes, size_t before, size_t after)
{
    unsigned char damage = 0;
    for (size_t i = 0; i < before; i++)
        damage |= (unsigned char)(block[(ptrdiff_t)i - (ptrdiff_t)before] ^ pattern);
    for (size_t i = 0; i < after; i++)
        damage |= (unsigned char)(block[bytes + i] ^ pattern);
    return damage == 0;
}
