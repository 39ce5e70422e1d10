/* emu.h - a GPU for those who have none: CUDA C++ as plain C++17 on one host thread.
 *
 * kernels/cuda/device.h includes this instead of the CUDA headers if ESP_EMULATE is defined.
 * README.md says what it proves and what it cannot.
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
