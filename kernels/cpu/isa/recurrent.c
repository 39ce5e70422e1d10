/* recurrent.c - one step of a recurrent layer: the convolution of a row, and the update of 16
 * columns of a head's state by a token.
 *
 * Each lane is a column, so sums over keys have the same order on every instruction set: key i
 * is added to sum i % 4, and the four sums are added in pairs at the end.
 */
#include "kernels/cpu/isa/parts.h"

void ISA(convolve)(float *out, const float *const *taps, const float *weight, const float *bias,
                   int n, int kernel, size_t stride, bool silu)
{
    const struct v16 zero = v16_set(0.0f), one = v16_set(1.0f);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 sum = bias ? v16_load(bias + i) : zero;
        for (int t = 0; t < kernel; t++)
            sum = v16_fma(v16_load(weight + (size_t)t * stride + (size_t)i),
                          v16_load(taps[t] + i), sum);
        if (silu)
            sum = v16_div(sum, v16_add(one, v16_exp(v16_sub(zero, sum))));
        v16_store(out + i, sum);
    }
}

void ISA(unit)(float *x, int n, float epsilon, float scale)
{
    struct v16 sum = v16_set(0.0f);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_load_part(x + i, n - i < ESP_LANES ? n - i : ESP_LANES, 0.0f);
        sum = v16_fma(value, value, sum);
    }
    const struct v16 factor = v16_set(scale / sqrtf(v16_sum(sum) + epsilon));
    for (int i = 0; i < n; i += ESP_LANES) {
        const int part = n - i < ESP_LANES ? n - i : ESP_LANES;
        v16_store_part(x + i, part, v16_mul(v16_load_part(x + i, part, 0.0f), factor));
    }
}

void ISA(sigmoid)(float *x, const float *gate, int n)
{
    const struct v16 zero = v16_set(0.0f), one = v16_set(1.0f);
    for (int i = 0; i < n; i += ESP_LANES) {
        const int part = n - i < ESP_LANES ? n - i : ESP_LANES;
        struct v16 decay = v16_exp(v16_sub(zero, v16_load_part(gate + i, part, 0.0f)));
        struct v16 value = v16_load_part(x + i, part, 0.0f);
        v16_store_part(x + i, part, v16_div(value, v16_add(one, decay)));
    }
}

V16 struct v16 sum_of(const struct v16 *sums)
{
    return v16_add(v16_add(sums[0], sums[1]), v16_add(sums[2], sums[3]));
}

/* Returns the value that the decayed state has for the key. */
V16 struct v16 recall(const struct esp_state_step *s)
{
    const struct v16 decay = v16_set(s->decay);
    struct v16 sums[4] = {v16_set(0.0f), v16_set(0.0f), v16_set(0.0f), v16_set(0.0f)};
    for (int k = 0; k < s->keys; k += 4)
        for (int i = 0; i < 4; i++) {
            const struct v16 row = v16_mul(v16_load(s->from + (k + i) * ESP_LANES), decay);
            sums[i] = v16_fma(row, v16_set(s->key[k + i]), sums[i]);
        }
    return sum_of(sums);
}

void ISA(state_step)(const struct esp_state_step *s)
{
    const struct v16 decay = v16_set(s->decay), value = v16_load(s->value);
    struct v16 sums[4] = {v16_set(0.0f), v16_set(0.0f), v16_set(0.0f), v16_set(0.0f)};
    const struct v16 change = s->delta ? v16_sub(value, recall(s)) : value;
    const struct v16 u = v16_mul(v16_set(s->write), change);
    for (int k = 0; k < s->keys; k += 4)
        for (int i = 0; i < 4; i++) {
            struct v16 row = v16_mul(v16_load(s->from + (k + i) * ESP_LANES), decay);
            row = v16_fma(u, v16_set(s->key[k + i]), row);
            v16_store(s->to + (k + i) * ESP_LANES, row);
            sums[i] = v16_fma(row, v16_set(s->query[k + i]), sums[i]);
        }
    if (s->out)
        v16_store(s->out, v16_fma(value, v16_set(s->skip), sum_of(sums)));
}
