/* emu_banks.h - what emu_banks.cpp is told of a kernel, see there. */
#ifndef EMU_BANKS_H
#define EMU_BANKS_H

#include "tests/emu/emu_control.h"

extern bool emu_banks_counted;

/* Thread `thread` of the block accesses `bytes` bytes of shared memory in the function `where`.
 */
void emu_banks_touch(int thread, const void *at, size_t bytes, const char *where);
/* `function`: the kernel, as the compiler writes it. */
void emu_banks_end_block(const char *function);

#endif
