/* temper.c - computes two sums that show how another temperature would change a distribution:
 * its mean log probability, and the sum of its values raised to a power.
 *
 * These are plain loops over sixteen lanes. The compiler turns them into instructions of each
 * instruction set. Every operation is one IEEE operation per lane, and the lanes are added in a
 * fixed order, so all builds give bit-identical results.
 *
 * The logarithm writes x as m 2^e with m in [sqrt(1/2), sqrt(2)). It computes log m = 2
 * atanh((m - 1) / (m + 1)) as a series, with an error below 1e-7. The exponential computes 2^f
 * for f in [-1/2, 1/2] as a series, with an error below 2e-7. Values too small for a normal
 * float are treated as 0: a whole vocabulary of such values would add less than 1e-30.
 */
#include "kernels/cpu/isa/parts.h"

enum { LANES = ESP_LANES };

static const float LEAST = 0x1p-126f;

struct lanes {
    float mean[LANES], power[LANES];
};

static inline float log2_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t shifted = bits - 0x3f3504f3u; /* minus the bits of sqrt(1/2) */
    const int32_t exponent = (int32_t)shifted >> 23;
    const uint32_t mantissa = (shifted & 0x7fffffu) + 0x3f3504f3u;
    float m;
    memcpy(&m, &mantissa, sizeof m);
    const float t = (m - 1.0f) / (m + 1.0f), s = t * t;
    const float series =
        t * (2.885390082f + s * (0.961796694f + s * (0.577078016f + s * 0.412198583f)));
    return (float)exponent + series;
}

static inline float exp2_of(float y)
{
    const float bounded = y < -126.0f ? -126.0f : y > 126.0f ? 126.0f : y;
    const float shifted = bounded + 0x1.8p23f; /* the low bits contain the rounded integer */
    const float f = bounded - (shifted - 0x1.8p23f);
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    const uint32_t scale = (bits + 127u) << 23;
    float power;
    memcpy(&power, &scale, sizeof power);
    const float series =
        1.0f +
        f * (0.693147181f +
             f * (0.240226507f +
                  f * (0.0555041087f +
                       f * (0.00961812911f + f * (0.00133335581f + f * 0.000154035304f)))));
    return series * power;
}

static inline void add(struct lanes *sum, int lane, float x, float power)
{
    const float sound = x >= LEAST ? x : 1.0f; /* log 1 = 0 adds nothing to sum->mean */
    const float log2x = log2_of(sound);
    const float raised = exp2_of(power * log2x);
    sum->mean[lane] += sound * log2x;
    sum->power[lane] += x >= LEAST ? raised : 0.0f;
}

void ISA(temper)(const float *x, int n, double power, double *mean_log, double *power_sum)
{
    const float exponent = (float)power;
    struct lanes sum = {{0}, {0}};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            add(&sum, lane, x[i + lane], exponent);
    for (int lane = 0; i + lane < n; lane++)
        add(&sum, lane, x[i + lane], exponent);
    double mean = 0.0, total = 0.0;
    for (int lane = 0; lane < LANES; lane++) {
        mean += sum.mean[lane];
        total += sum.power[lane];
    }
    *mean_log = mean * 0.69314718055994531;
    *power_sum = total;
}
