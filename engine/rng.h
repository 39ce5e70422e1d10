/* rng.h - the session's random numbers: a counter-based generator.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Number
 * n of a stream is a function of (seed, stream, n) alone, so a run can be repeated exactly, and
 * what one part of the program draws never shifts what another part gets: each has a stream of
 * its own.
 */
#ifndef ESP_RNG_H
#define ESP_RNG_H

#include <stdint.h>

enum esp_rng_stream { ESP_RNG_DRAFT, ESP_RNG_VERIFY, ESP_RNG_CHECK };

struct esp_rng {
    uint64_t seed, stream, next;
};

/* Philox4x32-10: four 32-bit words of counter and two of key to four random words. */
void esp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The next number of the stream, uniform in [0, 1) with 53 bits. */
double esp_rng_uniform(struct esp_rng *rng);

#endif
