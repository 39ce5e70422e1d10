/* emu_poison.h - memory that is exactly as large as asked for.
 *
 * A block lies between two guards. Where the address sanitizer is compiled in, touching a guard
 * is reported at once; elsewhere guards hold a pattern that is looked at later.
 */
#ifndef EMU_POISON_H
#define EMU_POISON_H

#include <cstddef>

void emu_poison(void *address, size_t bytes);
void emu_unpoison(void *address, size_t bytes);

/* Makes what lies from `block - before` and to `block + bytes + after` a guard. */
void emu_guard(unsigned char *block, size_t bytes, size_t before, size_t after);
bool emu_guards_hold(const unsigned char *block, size_t bytes, size_t before, size_t after);

#endif
