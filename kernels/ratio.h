/* ratio.h - classes of tokens by the ratio of two probabilities, the same on every backend.
 *
 * Verifiers that prefer drafts of larger p/q need the vocabulary in that order, but only
 * coarsely: 64 classes per factor of two, between 2^-12 and 2^12, with everything beyond in the
 * end classes. The class is taken from the bits of the quotient in single precision, correctly
 * rounded, so that every backend finds the same class for the same two numbers.
 */
#ifndef ESP_RATIO_H
#define ESP_RATIO_H

#include <stdint.h>
#include <string.h>

/* For functions that CUDA kernels call as well. */
#ifdef __CUDACC__
#define ESP_HOST_DEVICE __host__ __device__
#else
#define ESP_HOST_DEVICE
#endif

enum { ESP_RATIO_OCTAVES = 12, ESP_RATIO_CLASSES = 2 * ESP_RATIO_OCTAVES * 64 };

/* Returns 0 (p far below q) to ESP_RATIO_CLASSES - 1; class 0 if p = 0. */
static inline ESP_HOST_DEVICE int esp_ratio_class(double p, double q)
{
    const int32_t lowest = (127 - ESP_RATIO_OCTAVES) * 64;
    float ratio = (float)(p / q);
    int32_t bits;
    if (!(p > 0))
        return 0;
    memcpy(&bits, &ratio, sizeof bits);
    bits = (bits >> 17) - lowest;
    return bits < 0 ? 0 : bits < ESP_RATIO_CLASSES ? (int)bits : ESP_RATIO_CLASSES - 1;
}

#endif
