/* selector_features.c - computes entropies and divergences of three distributions in one pass;
 * see selector_features.h.
 *
 * The sums have sixteen lanes of floats, which are added in a fixed order, so that results are
 * bit-identical in every build. The logarithm is computed as in temper.c, with an error below
 * 1e-7.
 */
#include "engine/selector/selector_features.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, SUMS = ESP_FEATURE_DISTANCE + 1 };

/* These types are vectors of 16 numbers each. On processors with narrower registers, the
 * compiler uses several registers for each vector. */
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_int __attribute__((vector_size(4 * LANES)));
typedef uint32_t lanes_bits __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))

#define LEAST 1e-9f

/* *y = log2(max(*x, LEAST)) */
INLINE void take_log2(lanes *y, const lanes *x)
{
    const lanes least = LEAST - (lanes){0};
    const lanes_int below = *x < least;
    const lanes_bits bounded =
        ((lanes_bits)*x & ~(lanes_bits)below) | ((lanes_bits)least & (lanes_bits)below);
    const lanes_bits shifted = bounded - 0x3f3504f3u; /* minus the bits of sqrt(1/2) */
    const lanes_int exponent = (lanes_int)shifted >> 23;
    const lanes m = (lanes)((shifted & 0x7fffffu) + 0x3f3504f3u);
    const lanes t = (m - 1.0f) / (m + 1.0f), s = t * t;
    const lanes series =
        t * (2.885390082f + s * (0.961796694f + s * (0.577078016f + s * 0.412198583f)));
    *y = __builtin_convertvector(exponent, lanes) + series;
}

/* Adds the contribution of LANES tokens to the sums, which are indexed by enum esp_feature. `x`
 * has the three distributions p, q and q_root. */
INLINE void add(lanes sums[SUMS], const float *const x[3], int at)
{
    lanes value[3], log[3];
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        memcpy(&value[i], x[i] + at, sizeof value[i]);
        take_log2(&log[i], &value[i]);
        sums[ESP_FEATURE_ENTROPY_P + i] -= value[i] * log[i];
    }
    sums[ESP_FEATURE_KL_PQ] += value[0] * (log[0] - log[1]);
    sums[ESP_FEATURE_KL_QP] += value[1] * (log[1] - log[0]);
    sums[ESP_FEATURE_DISTANCE] += (lanes)((lanes_int)(value[0] - value[1]) & 0x7fffffff);
}

INLINE void add_all(const float *const x[3], int n, float features[ESP_SCALARS])
{
    static const float ln2 = 0.693147181f;
    lanes sums[SUMS] = {{0}};
    float end[3][LANES] = {{0}};
    const float *const ends[3] = {end[0], end[1], end[2]};
    const int whole = n - n % LANES;
    for (int i = 0; i < whole; i += LANES)
        add(sums, x, i);
    for (int i = 0; i < 3; i++)
        memcpy(end[i], x[i] + whole, (size_t)(n - whole) * sizeof *end[i]);
    if (whole < n)
        add(sums, ends, 0);
    for (int s = 0; s < SUMS; s++) {
        double sum = 0;
        for (int l = 0; l < LANES; l++)
            sum += sums[s][l];
        features[s] = s == ESP_FEATURE_DISTANCE ? (float)sum : ln2 * (float)sum;
    }
}

/* Defines a version of add_all() that is compiled for an instruction set. */
#define ADD_ON(name, ...)                                                                      \
    __VA_ARGS__ static void name(const float *const x[3], int n, float features[ESP_SCALARS])  \
    {                                                                                          \
        add_all(x, n, features);                                                               \
    }
ADD_ON(add_plainly)
#ifdef __x86_64__
ADD_ON(add_avx2, __attribute__((target("avx2"))))
ADD_ON(add_avx512, __attribute__((target("avx512f"))))
#endif

void esp_features_of(const float *p, const float *q, const float *root, int n,
                     float features[ESP_SCALARS])
{
    const float *const x[3] = {p, q, root};
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        add_avx512(x, n, features);
    else if (__builtin_cpu_supports("avx2"))
        add_avx2(x, n, features);
    else
#endif
        add_plainly(x, n, features);
}
