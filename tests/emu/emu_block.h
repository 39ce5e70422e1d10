/* emu_block.h - runs the blocks and threads of one launch. */
#ifndef EMU_BLOCK_H
#define EMU_BLOCK_H

#include "tests/emu/emu_device.h"
#include "tests/emu/emu_launch.h"

/* Runs all blocks of the launch. `seed` determines the order of blocks, of warps and of lanes;
 * 0 means the natural order. */
void emu_run_kernel(const emu_launch_shape &launch, const emu_body &body, uint64_t seed);

/* Writes "kernel NAME, block (x, y, z), thread (x, y, z): ", or "" outside kernels. */
void emu_say_where(char *text, size_t bytes);

#endif
