/* pass_mixer.h - computes the recurrent layers of a pass. */
#ifndef ESP_CPU_PASS_MIXER_H
#define ESP_CPU_PASS_MIXER_H

#include "kernels/cpu/pass.h"

/* Computes steps 3 and 4 of a recurrent layer (forward.c numbers them). Reads the inputs and
 * gates of all rows of the batch from the cache, and updates the states. For the rows that
 * later layers need, writes the mixer's output to the cache's `mixed`. */
void esp_cpu_mix(struct esp_cpu_pass *p);

/* Begins a pass of a model with recurrent layers. Returns false if the states that the pass
 * needs are lost. */
bool esp_cpu_begin_states(struct esp_cpu_pass *p);
/* Must be called after a pass that succeeded, but not after a pass that failed, because a
 * failed pass loses the states. */
void esp_cpu_end_states(struct esp_cpu_pass *p);

#endif
