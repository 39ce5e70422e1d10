/* emu.h - emulates a GPU: compiles CUDA C++ as C++17 and runs it on one host thread.
 *
 * kernels/cuda/device.h includes this instead of the CUDA headers if ESP_EMULATE is defined.
 * README.md says what tests on it can prove and what they cannot.
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
