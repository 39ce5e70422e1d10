/* ways.h - chooses between two ways to multiply by quantised weights on a processor with a
 * tile unit. VNNI instructions compute row by row. The tile unit computes up to sixteen rows
 * together, but needs more preparation.
 *
 * Both ways give bit-identical results (tests/unit/blocks.c), so the choice changes only the
 * speed. Which way is faster depends on the processor, the type and the number of rows.
 * esp_cpu_time_ways() measures the times of both ways, and the engine stores the times
 * (engine/way_times.h). Until the times are measured, the choice is a guess.
 */
#ifndef ESP_CPU_WAYS_H
#define ESP_CPU_WAYS_H

#include "kernels/cpu/isa.h"

/* Returns whether to use the tile unit for a product with this many rows (at least 1). It is
 * used if it is faster according to `times`. If `times` has no measured times, a guess decides.
 * `bytes` is true if activations have 8 bits instead of 16. */
bool esp_cpu_takes_tiles(const struct esp_way_times *times, enum esp_dtype dtype, bool bytes,
                         int rows);

/* Measures both ways for a quantised type on this thread, with an instruction set that has
 * two_ways. This takes a millisecond or two. Returns false if there is not enough memory; then
 * *times does not change. */
bool esp_cpu_time_ways(struct esp_way_times *times, const struct esp_cpu_isa *isa,
                       enum esp_dtype dtype, bool bytes);

#endif
