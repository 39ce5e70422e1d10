/* emu.h - emulates a GPU: compiles CUDA C++ as C++17 and runs it on one host thread.
 *
 * If ESP_EMULATE is defined, kernels/cuda/device.h includes this header instead of the CUDA
 * headers. README.md says which faults tests can find with the emulator, and which not.
 */
#ifndef EMU_H
#define EMU_H

#include "tests/emu/emu_types.h"
#include "tests/emu/emu_math.h"
#include "tests/emu/emu_device.h"
#include "tests/emu/emu_runtime.h"
#include "tests/emu/emu_launch.h"
#include "tests/emu/emu_lt.h"

#endif
