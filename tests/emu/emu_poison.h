/* emu_poison.h - detects accesses outside a block of memory.
 *
 * A block lies between two guards. AddressSanitizer reports an access to a guard immediately.
 * Without AddressSanitizer, guards contain a pattern, which is checked later.
 */
#ifndef EMU_POISON_H
#define EMU_POISON_H

#include <cstddef>

void emu_poison(void *address, size_t bytes);
void emu_unpoison(void *address, size_t bytes);

/* Turns the `before` bytes before a block and the `after` bytes after it into guards. */
void emu_guard(unsigned char *block, size_t bytes, size_t before, size_t after);
bool emu_guards_hold(const unsigned char *block, size_t bytes, size_t before, size_t after);

#endif
