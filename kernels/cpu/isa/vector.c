/* vector.c - operations on one row of activations between the matrix products: normalisation,
 * rotary position embedding, scaling and the MLP's activation function.
 *
 * Sums have 16 lanes: lane i sums elements i, i + 16, ..., and the lanes are added in a fixed
 * order at the end. RMSNorm is from Zhang and Sennrich 2019, LayerNorm from Ba et al. 2016, and
 * SwiGLU from Shazeer 2020. The rotary embedding is from Su et al. 2021; like Hugging Face's
 * code, it rotates element i together with element i + half.
 */
#include "kernels/cpu/isa/parts.h"

static void rmsnorm(float *out, const float *x, int n, const float *weight, float epsilon)
{
    struct v16 sum = v16_set(0.0f);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_load(x + i);
        sum = v16_fma(value, value, sum);
    }
    float factor = 1.0f / sqrtf(v16_sum(sum) / (float)n + epsilon);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_mul(v16_load(x + i), v16_set(factor));
        v16_store(out + i, v16_mul(value, v16_load(weight + i)));
    }
}

static void layernorm(float *out, const float *x, int n, const float *weight, const float *bias,
                      float epsilon)
{
    struct v16 sum = v16_set(0.0f), squares = v16_set(0.0f);
    for (int i = 0; i < n; i += ESP_LANES)
        sum = v16_add(sum, v16_load(x + i));
    float mean = v16_sum(sum) / (float)n;
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value =
            n - i < ESP_LANES ? v16_load_part(x + i, n - i, mean) : v16_load(x + i);
        value = v16_sub(value, v16_set(mean));
        squares = v16_fma(value, value, squares);
    }
    float factor = 1.0f / sqrtf(v16_sum(squares) / (float)n + epsilon);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_sub(v16_load(x + i), v16_set(mean));
        value = v16_mul(v16_mul(value, v16_set(factor)), v16_load(weight + i));
        v16_store(out + i, bias ? v16_add(value, v16_load(bias + i)) : value);
    }
}

void ISA(norm)(float *out, const float *x, int n, const float *weight, const float *bias,
               enum esp_norm kind, float epsilon)
{
    if (kind == ESP_NORM_RMS)
        rmsnorm(out, x, n, weight, epsilon);
    else
        layernorm(out, x, n, weight, bias, epsilon);
}

void ISA(rmsnorm_head)(float *x, int n, const float *weight, float epsilon)
{
    struct v16 sum = v16_set(0.0f);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_load_part(x + i, n - i < ESP_LANES ? n - i : ESP_LANES, 0.0f);
        sum = v16_fma(value, value, sum);
    }
    float factor = 1.0f / sqrtf(v16_sum(sum) / (float)n + epsilon);
    for (int i = 0; i < n; i += ESP_LANES) {
        int part = n - i < ESP_LANES ? n - i : ESP_LANES;
        struct v16 value = v16_mul(v16_load_part(x + i, part, 0.0f), v16_set(factor));
        v16_store_part(x + i, part, v16_mul(value, v16_load_part(weight + i, part, 0.0f)));
    }
}

void ISA(rope)(float *x, int half, const float *cosine, const float *sine)
{
    for (int i = 0; i < half; i += ESP_LANES) {
        int n = half - i < ESP_LANES ? half - i : ESP_LANES;
        struct v16 a = v16_load_part(x + i, n, 0.0f), b = v16_load_part(x + half + i, n, 0.0f);
        struct v16 c = v16_load_part(cosine + i, n, 0.0f);
        struct v16 s = v16_load_part(sine + i, n, 0.0f);
        v16_store_part(x + i, n, v16_sub(v16_mul(a, c), v16_mul(b, s)));
        v16_store_part(x + half + i, n, v16_fma(b, c, v16_mul(a, s)));
    }
}

void ISA(scale)(float *x, int n, float factor)
{
    for (int i = 0; i < n; i++)
        x[i] *= factor;
}

/* tanh y is computed as 1 - 2 / (1 + exp 2y). */
void ISA(cap)(float *x, int n, float cap)
{
    const struct v16 one = v16_set(1.0f), twice = v16_set(2.0f / cap), scale = v16_set(cap);
    for (int i = 0; i < n; i += ESP_LANES) {
        int part = n - i < ESP_LANES ? n - i : ESP_LANES;
        struct v16 e = v16_exp(v16_mul(v16_load_part(x + i, part, 0.0f), twice));
        struct v16 rest = v16_div(v16_set(2.0f), v16_add(one, e));
        v16_store_part(x + i, part, v16_mul(scale, v16_sub(one, rest)));
    }
}

/* Returns x / (1 + exp -x). */
V16 struct v16 silu(struct v16 x)
{
    struct v16 decay = v16_exp(v16_sub(v16_set(0.0f), x));
    return v16_div(x, v16_add(v16_set(1.0f), decay));
}

V16 struct v16 gelu(struct v16 x)
{
    struct v16 erf = v16_erf(v16_mul(x, v16_set(0x1.6a09e6p-1f)));
    return v16_mul(v16_mul(v16_set(0.5f), x), v16_add(v16_set(1.0f), erf));
}

/* Returns x (1 + tanh u) / 2 = x / (1 + exp -2u) with u = sqrt(2 / pi) (x + 0.044715 x^3)
 * (Hendrycks and Gimpel 2016, section 2). */
V16 struct v16 gelu_tanh(struct v16 x)
{
    struct v16 inner = v16_fma(v16_mul(x, x), v16_set(0.044715f), v16_set(1.0f));
    struct v16 u = v16_mul(v16_mul(x, inner), v16_set(-2 * 0x1.988454p-1f));
    return v16_div(x, v16_add(v16_set(1.0f), v16_exp(u)));
}

/* Returns the activation that struct esp_clamp describes. */
V16 struct v16 swiglu_clamped(struct v16 gate, struct v16 up, const struct esp_clamp *clamp)
{
    const struct v16 limit = v16_set(clamp->limit), one = v16_set(1.0f);
    gate = v16_min(limit, gate);
    up = v16_min(limit, v16_max(v16_set(-clamp->limit), up));
    const struct v16 decay = v16_exp(v16_mul(v16_set(-clamp->slope), gate));
    return v16_mul(v16_div(gate, v16_add(one, decay)), v16_add(up, one));
}

void ISA(activation)(float *out, const float *gate, const float *up, int n,
                     enum esp_activation kind, const struct esp_clamp *clamp)
{
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 value = v16_load(up + i);
        switch (kind) {
        case ESP_SWIGLU:
            value = v16_mul(silu(v16_load(gate + i)), value);
            break;
        case ESP_GEGLU:
            value = v16_mul(gelu_tanh(v16_load(gate + i)), value);
            break;
        case ESP_SWIGLU_CLAMPED:
            value = swiglu_clamped(v16_load(gate + i), value, clamp);
            break;
        case ESP_GELU:
            value = gelu(value);
            break;
        case ESP_GELU_TANH:
            value = gelu_tanh(value);
            break;
        case ESP_RELU2:
            value = v16_max(v16_set(0.0f), value);
            value = v16_mul(value, value);
            break;
        }
        v16_store(out + i, value);
    }
}
