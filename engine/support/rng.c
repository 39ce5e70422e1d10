/* rng.c - computes Philox4x32-10; see rng.h. */
#include "engine/support/rng.h"

void esp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

struct esp_rng esp_rng_split(struct esp_rng *rng)
{
    const uint64_t part = rng->next++;
    return (struct esp_rng){.seed = rng->seed, .stream = rng->stream | (part + 1) << 8};
}

double esp_rng_uniform(struct esp_rng *rng)
{
    uint64_t n = rng->next++;
    uint32_t counter[4] = {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)rng->stream,
                           (uint32_t)(rng->stream >> 32)};
    uint32_t key[2] = {(uint32_t)rng->seed, (uint32_t)(rng->seed >> 32)};
    uint32_t out[4];
    esp_philox(counter, key, out);
    uint64_t bits = (uint64_t)out[0] << 32 | out[1];
    return (double)(bits >> 11) * 0x1p-53;
}

void esp_rng_shuffle(struct esp_rng *rng, int *numbers, int count)
{
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(esp_rng_uniform(rng) * (i + 1)), kept = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = kept;
    }
}
