/* rng.h - generates the session's random numbers from a counter.
 *
 * The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011). Number n of a stream depends only on (seed, stream, n), so a run can be repeated
 * exactly. Each part of the program has its own stream, so the draws of one part do not change
 * the draws of others. A stream can be split into further streams. The draws for one node of a
 * tree then do not change the draws for another node, whatever their order.
 */
#ifndef ESP_RNG_H
#define ESP_RNG_H

#include <stdint.h>

enum esp_rng_stream { ESP_RNG_DRAFT, ESP_RNG_VERIFY, ESP_RNG_CHECK, ESP_RNG_TRAIN };

struct esp_rng {
    uint64_t seed, stream, next;
};

/* Philox4x32-10: makes four random 32-bit words from a counter and a key. */
void esp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Returns the next number of the stream, uniform in [0, 1) with 53 bits. */
double esp_rng_uniform(struct esp_rng *rng);

/* Splits off the next part of the stream and returns it as a new stream. The numbers of the
 * stream itself and of its parts are independent; there are up to 2^56 parts. */
struct esp_rng esp_rng_split(struct esp_rng *rng);

/* Puts `count` numbers into random order (Fisher and Yates). */
void esp_rng_shuffle(struct esp_rng *rng, int *numbers, int count);

#endif
