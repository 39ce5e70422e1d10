/* ratio.h - divides tokens into classes by the ratio of two probabilities, in the same way on
 * every backend.
 *
 * Some verifiers need the vocabulary sorted by p/q, but only coarsely. There are 64 classes per
 * factor of two, from 2^-12 to 2^12. The first class also includes all smaller ratios, and the
 * last class all larger ratios. The class comes from the bits of the correctly rounded quotient
 * in single precision, so every backend finds the same class for the same two numbers.
 */
#ifndef ESP_RATIO_H
#define ESP_RATIO_H

#include <stdint.h>
#include <string.h>

/* Marks functions that CUDA kernels also call. */
#ifdef __CUDACC__
#define ESP_HOST_DEVICE __host__ __device__
#else
#define ESP_HOST_DEVICE
#endif

enum { ESP_RATIO_OCTAVES = 12, ESP_RATIO_CLASSES = 2 * ESP_RATIO_OCTAVES * 64 };

/* Returns the class of p / q, from 0 (p is far below q) to ESP_RATIO_CLASSES - 1. If p = 0, the
 * class is 0. */
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
