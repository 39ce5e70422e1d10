/* selector_features.c - entropies and divergences of three distributions in one pass; see
 * selector_features.h.
 *
 * Sixteen lanes of floats, added in a fixed order, so that every build gives the same bits. The
 * logarithm is that of temper.c: error below 1e-7.
 */
#include "engine/selector/selector_features.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, GROUPS = LANES / 4 };

typedef float four __attribute__((vector_size(16)));
typedef int32_t four_int __attribute__((vector_size(16)));
typedef uint32_t four_bits __attribute__((vector_size(16)));

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

/* Base 2. x is at least LEAST. */
static inline four log2_of(four x)
{
    const four_bits shifted = (four_bits)x - 0x3f3504f3u; /* of sqrt(1/2) */
    const four_int exponent = (four_int)shifted >> 23;
    const four m = (four)((shifted & 0x7fffffu) + 0x3f3504f3u);
    const four t = (m - 1.0f) / (m + 1.0f), s = t * t;
    const four series =
        t * (2.885390082f + s * (0.961796694f + s * (0.577078016f + s * 0.412198583f)));
    return __builtin_convertvector(exponent, four) + series;
}

static inline four at_least(four x)
{
    const four_int below = x < LEAST;
    const four least = {LEAST, LEAST, LEAST, LEAST};
    return (four)(((four_int)x & ~below) | ((four_int)least & below));
}

static inline four size_of(four x)
{
    return (four)((four_int)x & 0x7fffffff);
}

struct sums {
    four entropy_p, entropy_q, entropy_root, kl_pq, kl_qp, distance;
};

static inline void add(struct sums *s, four p, four q, four root)
{
    const four log_p = log2_of(at_least(p)), log_q = log2_of(at_least(q));
    s->entropy_p -= p * log_p;
    s->entropy_q -= q * log_q;
    s->entropy_root -= root * log2_of(at_least(root));
    s->kl_pq += p * (log_p - log_q);
    s->kl_qp += q * (log_q - log_p);
    s->distance += size_of(p - q);
}

static inline four load(const float *x)
{
    four value;
    memcpy(&value, x, sizeof value);
    return value;
}

static float total(const struct sums *s, size_t offset)
{
    double sum = 0;
    for (int g = 0; g < GROUPS; g++) {
        four value;
        memcpy(&value, (const char *)&s[g] + offset, sizeof value);
        for (int i = 0; i < 4; i++)
            sum += value[i];
    }
    return (float)sum;
}

void esp_features_of(const float *p, const float *q, const float *root, int n,
                     float features[ESP_SCALARS])
{
    static const float ln2 = 0.693147181f;
    struct sums s[GROUPS];
    memset(s, 0, sizeof s);
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int g = 0; g < GROUPS; g++)
            add(&s[g], load(p + i + 4 * g), load(q + i + 4 * g), load(root + i + 4 * g));
    if (i < n) {
        float end[3][LANES] = {{0}};
        memcpy(end[0], p + i, (size_t)(n - i) * sizeof *p);
        memcpy(end[1], q + i, (size_t)(n - i) * sizeof *q);
        memcpy(end[2], root + i, (size_t)(n - i) * sizeof *root);
        for (int g = 0; g < GROUPS; g++)
            add(&s[g], load(end[0] + 4 * g), load(end[1] + 4 * g), load(end[2] + 4 * g));
    }
    features[ESP_FEATURE_ENTROPY_P] = ln2 * total(s, offsetof(struct sums, entropy_p));
    features[ESP_FEATURE_ENTROPY_Q] = ln2 * total(s, offsetof(struct sums, entropy_q));
    features[ESP_FEATURE_ENTROPY_ROOT] = ln2 * total(s, offsetof(struct sums, entropy_root));
    features[ESP_FEATURE_KL_PQ] = ln2 * total(s, offsetof(struct sums, kl_pq));
    features[ESP_FEATURE_KL_QP] = ln2 * total(s, offsetof(struct sums, kl_qp));
    features[ESP_FEATURE_DISTANCE] = total(s, offsetof(struct sums, distance));
}
