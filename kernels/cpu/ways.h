/* ways.h - chooses between two ways to multiply by quantised weights on a processor with a
 * tile unit: VNNI instructions compute row by row; the unit computes up to sixteen rows
 * together, but needs more preparation.
 *
 * Both give bit-identical results (tests/unit/blocks.c), so the choice changes only the speed.
 * Which is faster depends on the processor, the type and the number of rows.
 * esp_cpu_time_ways() measures it, and the engine stores the times (engine/way_times.h). Until
 * they are measured, the choice is a guess.
 */
#ifndef ESP_CPU_WAYS_H
#define ESP_CPU_WAYS_H

#include "kernels/cpu/isa.h"

/* Returns whether to use the tile unit for a product with this many rows (at least 1). The unit
 * is used if it is faster according to `times` or, without measured times, according to a
 * guess. bytes: activations have 8 bits instead of 16. */
bool esp_cpu_takes_tiles(const struct esp_way_times *times, enum esp_dtype dtype, bool bytes,
                         int rows);

/* Measures both ways of an instruction set with two_ways for a quantised type, on this thread.
 * It takes a millisecond or two. Returns false if there is no memory; *times is then
 * unchanged. */
bool esp_cpu_time_ways(struct esp_way_times *times, const struct esp_cpu_isa *isa,
                       enum esp_dtype dtype, bool bytes);

#endif
