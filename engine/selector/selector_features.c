/* selector_features.c - entropies and divergences of three distributions in one pass; see
 * selector_features.h.
 *
 * Sixteen lanes of floats, added in a fixed order, so that every build gives the same bits. The
 * logarithm is that of temper.c: error below 1e-7.
 */
#include "engine/selector/selector_features.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

/* A compiler without such wide registers divides these among several. */
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_int __attribute__((vector_size(4 * LANES)));
typedef uint32_t lanes_bits __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))

static const char *const texts[] = {
#define X(name, text) text,
    ESP_FEATURES(X)
#undef X
};

const char *esp_feature_text(int feature)
{
    return texts[feature];
}

#define LEAST 1e-9f

/* *y = log2(max(*x, LEAST)) */
INLINE void take_log2(lanes *y, const lanes *x)
{
    const lanes least = LEAST - (lanes){0};
    const lanes_int below = *x < least;
    const lanes_bits bounded =
        ((lanes_bits)*x & ~(lanes_bits)below) | ((lanes_bits)least & (lanes_bits)below);
    const lanes_bits shifted = bounded - 0x3f3504f3u; /* of sqrt(1/2) */
    const lanes_int exponent = (lanes_int)shifted >> 23;
    const lanes m = (lanes)((shifted & 0x7fffffu) + 0x3f3504f3u);
    const lanes t = (m - 1.0f) / (m + 1.0f), s = t * t;
    const lanes series =
        t * (2.885390082f + s * (0.961796694f + s * (0.577078016f + s * 0.412198583f)));
    *y = __builtin_convertvector(exponent, lanes) + series;
}

enum sum { ENTROPY_P, ENTROPY_Q, ENTROPY_ROOT, KL_PQ, KL_QP, DISTANCE, SUMS };

INLINE void add(lanes sums[SUMS], const float *at_p, const float *at_q, const float *at_root)
{
    lanes p, q, root, log_p, log_q, log_root;
    memcpy(&p, at_p, sizeof p);
    memcpy(&q, at_q, sizeof q);
    memcpy(&root, at_root, sizeof root);
    take_log2(&log_p, &p);
    take_log2(&log_q, &q);
    take_log2(&log_root, &root);
    sums[ENTROPY_P] -= p * log_p;
    sums[ENTROPY_Q] -= q * log_q;
    sums[ENTROPY_ROOT] -= root * log_root;
    sums[KL_PQ] += p * (log_p - log_q);
    sums[KL_QP] += q * (log_q - log_p);
    sums[DISTANCE] += (lanes)((lanes_int)(p - q) & 0x7fffffff);
}

INLINE void add_all(float totals[SUMS], const float *p, const float *q, const float *root,
                    int n)
{
    lanes sums[SUMS] = {{0}};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        add(sums, p + i, q + i, root + i);
    if (i < n) {
        float end[3][LANES] = {{0}};
        memcpy(end[0], p + i, (size_t)(n - i) * sizeof *p);
        memcpy(end[1], q + i, (size_t)(n - i) * sizeof *q);
        memcpy(end[2], root + i, (size_t)(n - i) * sizeof *root);
        add(sums, end[0], end[1], end[2]);
    }
    for (int s = 0; s < SUMS; s++) {
        double sum = 0;
        for (int l = 0; l < LANES; l++)
            sum += sums[s][l];
        totals[s] = (float)sum;
    }
}

static void add_plainly(float totals[SUMS], const float *p, const float *q, const float *root,
                        int n)
{
    add_all(totals, p, q, root, n);
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void
add_avx512(float totals[SUMS], const float *p, const float *q, const float *root, int n)
{
    add_all(totals, p, q, root, n);
}

__attribute__((target("avx2"))) static void add_avx2(float totals[SUMS], const float *p,
                                                     const float *q, const float *root, int n)
{
    add_all(totals, p, q, root, n);
}
#endif

void esp_features_of(const float *p, const float *q, const float *root, int n,
                     float features[ESP_SCALARS])
{
    static const float ln2 = 0.693147181f;
    float totals[SUMS];
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        add_avx512(totals, p, q, root, n);
    else if (__builtin_cpu_supports("avx2"))
        add_avx2(totals, p, q, root, n);
    else
#endif
        add_plainly(totals, p, q, root, n);
    features[ESP_FEATURE_ENTROPY_P] = ln2 * totals[ENTROPY_P];
    features[ESP_FEATURE_ENTROPY_Q] = ln2 * totals[ENTROPY_Q];
    features[ESP_FEATURE_ENTROPY_ROOT] = ln2 * totals[ENTROPY_ROOT];
    features[ESP_FEATURE_KL_PQ] = ln2 * totals[KL_PQ];
    features[ESP_FEATURE_KL_QP] = ln2 * totals[KL_QP];
    features[ESP_FEATURE_DISTANCE] = totals[DISTANCE];
}
