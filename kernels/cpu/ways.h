/* ways.h - two ways to multiply by quantised weights, on a processor with a tile unit: VNNI's
 * instructions take the rows one after the other, the unit takes up to sixteen together and
 * needs more preparation.
 *
 * Both give the same bits (tests/unit/blocks.c), so the choice changes only the speed. It
 * depends on the processor, on the type and on the number of rows: esp_cpu_time_ways() measures
 * it, and the engine keeps the times (engine/way_times.h). Before that, the choice is a guess.
 */
#ifndef ESP_CPU_WAYS_H
#define ESP_CPU_WAYS_H

#include "kernels/cpu/isa.h"

/* Is the tile unit the quicker way for so many rows (1 or more), as far as `times` has them?
 * bytes: activations have 8 bits, not 16. */
bool esp_cpu_takes_tiles(const struct esp_way_times *times, enum esp_dtype dtype, bool bytes,
                         int rows);

/* Measures both ways of an instruction set with two_ways for a quantised type, on this thread.
 * It takes a millisecond or two. False: no memory, and nothing has changed. */
bool esp_cpu_time_ways(struct esp_way_times *times, const struct esp_cpu_isa *isa,
                       enum esp_dtype dtype, bool bytes);

#endif
