/* emu.h - a GPU for those who have none: CUDA C++ as plain C++17 on one host thread.
 *
 * kernels/cuda/device.h includes this instead of the CUDA headers if ESP_EMULATE is defined.
 * README.md says what it proves and what it cannot.
 */
#ifndef EMU_H
#define EMU_H

#include "emu_types.h"
#include "emu_math.h"
#include "emu_device.h"
#include "emu_runtime.h"
#include "emu_launch.h"
#include "emu_lt.h"

#endif
