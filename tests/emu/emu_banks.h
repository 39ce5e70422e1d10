/* emu_banks.h - declares the functions that count bank conflicts of shared memory. */
#ifndef EMU_BANKS_H
#define EMU_BANKS_H

#include "tests/emu/emu_control.h"

extern bool emu_banks_counted;

/* Call this when thread `thread` of the block accesses `bytes` bytes of shared memory in the
 * function `where`. */
void emu_banks_touch(int thread, const void *at, size_t bytes, const char *where);
/* Call this at the end of a block. `function` is the kernel's name as the compiler writes it.
 */
void emu_banks_end_block(const char *function);

#endif
