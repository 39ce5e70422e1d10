/* recurrent.c - the arithmetic of recurrent layers: convolves a row, and reads and updates 16
 * columns of a head's state.
 *
 * Each lane computes one column. Even and odd keys are added separately. So sums over keys have
 * the same order on every instruction set.
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

void ISA(products)(float *out, const float *x, const float *const *with, int count, int n)
{
    for (int i = 0; i < count; i++) {
        struct v16 sum = v16_set(0.0f);
        for (int k = 0; k < n; k += ESP_LANES) {
            const int part = n - k < ESP_LANES ? n - k : ESP_LANES;
            sum = v16_fma(v16_load_part(x + k, part, 0.0f),
                          v16_load_part(with[i] + k, part, 0.0f), sum);
        }
        out[i] = v16_sum(sum);
    }
}

/* Multiplies the state by `count` vectors. Callers pass a constant for `count`, so that the
 * sums stay in registers. */
V16 void read_some(const struct esp_state_read *r, const float *const *with, float *const *out,
                   const int count)
{
    struct v16 even[8], odd[8];
    for (int i = 0; i < count; i++)
        even[i] = odd[i] = v16_set(0.0f);
    for (int k = 0; k < r->keys; k += 2) {
        const struct v16 first = v16_load(r->state + k * ESP_LANES);
        const struct v16 second = v16_load(r->state + (k + 1) * ESP_LANES);
        for (int i = 0; i < count; i++) {
            even[i] = v16_fma(v16_set(with[i][k]), first, even[i]);
            odd[i] = v16_fma(v16_set(with[i][k + 1]), second, odd[i]);
        }
    }
    for (int i = 0; i < count; i++)
        v16_store(out[i], v16_add(even[i], odd[i]));
}

/* Each number that is loaded from the state is used for several vectors. There are registers
 * for the sums of up to 8 vectors with AVX-512, and of up to 2 vectors otherwise. */
void ISA(state_read)(const struct esp_state_read *r)
{
    int i = 0;
    for (; ESP_SIMD == 3 && i + 8 <= r->count; i += 8)
        read_some(r, r->with + i, r->out + i, 8);
    for (; ESP_SIMD == 3 && i + 4 <= r->count; i += 4)
        read_some(r, r->with + i, r->out + i, 4);
    for (; i + 2 <= r->count; i += 2)
        read_some(r, r->with + i, r->out + i, 2);
    for (; i < r->count; i++)
        read_some(r, r->with + i, r->out + i, 1);
}

void ISA(state_update)(const struct esp_state_update *u)
{
    const struct v16 left = v16_set(u->left), value = v16_load(u->value);
    struct v16 recalled = v16_set(0.0f), out = v16_set(0.0f);
    for (int i = 0; i < u->ancestors; i++) {
        const struct v16 before = v16_load(u->before[i]);
        if (u->by_key)
            recalled = v16_fma(v16_set(u->by_key[i]), before, recalled);
        out = v16_fma(v16_set(u->by_query[i]), before, out);
    }
    struct v16 change = value;
    if (u->by_key)
        change = v16_sub(value, v16_fma(left, v16_load(u->update), recalled));
    change = v16_mul(v16_set(u->write), change);
    out = v16_fma(left, v16_load(u->out), out);
    out = v16_fma(v16_set(u->own), change, out);
    v16_store(u->update, change);
    v16_store(u->out, v16_fma(value, v16_set(u->skip), out));
}

void ISA(state_fold)(const struct esp_state_fold *f)
{
    const struct v16 left = v16_set(f->left);
    struct v16 update[ESP_STATE_CHUNK];
    for (int i = 0; i < ESP_STATE_CHUNK; i++)
        update[i] = v16_mul(v16_set(f->weight[i]), v16_load(f->update[i]));
    for (int k = 0; k < f->keys; k += 4) {
        struct v16 state[4];
        for (int j = 0; j < 4; j++)
            state[j] = v16_mul(left, v16_load(f->from + (k + j) * ESP_LANES));
        for (int i = 0; i < ESP_STATE_CHUNK; i++)
            for (int j = 0; j < 4; j++)
                state[j] = v16_fma(update[i], v16_set(f->key[i][k + j]), state[j]);
        for (int j = 0; j < 4; j++)
            v16_store(f->to + (k + j) * ESP_LANES, state[j]);
    }
}
