/* emu_poison.h - memory of exactly the requested size.
 *
 * A block lies between two guards. With AddressSanitizer, an access to a guard is reported
 * immediately. Without it, guards contain a pattern that is checked later.
 */
#ifndef EMU_POISON_H
#define EMU_POISON_H

#include <cstddef>

void emu_poison(void *address, size_t bytes);
void emu_unpoison(void *address, size_t bytes);

/* Makes guards of the `before` bytes before a block and the `after` bytes after it. */
void emu_guard(unsigned char *block, size_t bytes, size_t before, size_t after);
bool emu_guards_hold(const unsigned char *block, size_t bytes, size_t before, size_t after);

#endif
