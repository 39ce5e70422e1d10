/* dtype.c - converts numbers of every stored type to and from float32; see dtype.h.
 *
 * Blocks, in the layouts of GGUF (little-endian; d and dmin are F16):
 *   Q8_0    d, 32 signed bytes q                                         x = d q
 *   Q4_0    d, 16 bytes: q 0-15 in the low halves, 16-31 in the high     x = d (q - 8)
 *   Q5_0    d, 32 fifth bits, 16 bytes as Q4_0                           x = d (q - 16)
 *   IQ4_NL  d, 16 bytes as Q4_0                                          x = d table[q]
 *   MXFP4   a byte e, 16 bytes as Q4_0                         x = 2^(e - 128) table[q]
 *   Q4_K    d, dmin, 12 bytes of scales, 128 bytes                       x = d s q - dmin m
 *   Q5_K    d, dmin, 12 bytes of scales, 32 bytes of fifth bits, 128     the same
 *   Q6_K    128 bytes of low halves, 64 of upper two bits, 16 signed
 *           bytes of scales, d                                           x = d s (q - 32)
 * MXFP4 is defined in the OCP Microscaling Formats (2023): its table contains the values of
 * E2M1 floats, doubled. In GGUF, e = 255 is not NaN but the scale 2^127. Q4_K and Q5_K have a
 * six-bit scale s and a six-bit minimum m for every 32 of their 256 numbers. Q6_K has a scale
 * for every 16 numbers. In the K types, the half-bytes or two-bit parts of a byte belong to
 * numbers that are 32 or 64 apart.
 */
#include "kernels/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256, FIELDS = 5 };

static const struct {
    const char *name;
    int numbers;
    size_t bytes;
    struct esp_dtype_field field[FIELDS + 1];
} types[] = {
#define X(name, gguf, numbers, bytes, ...)                                                     \
    [ESP_##name] = {#name, numbers, bytes, {__VA_ARGS__}},
    ESP_DTYPES(X)
#undef X
};

const char *esp_dtype_name(enum esp_dtype dtype)
{
    return types[dtype].name;
}

enum esp_dtype esp_dtype_find(const char *name)
{
    int i = 0;
    while (i < ESP_DTYPE_COUNT && strcmp(types[i].name, name) != 0)
        i++;
    return (enum esp_dtype)i;
}

bool esp_dtype_quantised(enum esp_dtype dtype)
{
    return types[dtype].numbers > 1;
}

int esp_dtype_block(enum esp_dtype dtype)
{
    return types[dtype].numbers;
}

size_t esp_dtype_block_bytes(enum esp_dtype dtype)
{
    return types[dtype].bytes;
}

const struct esp_dtype_field *esp_dtype_fields(enum esp_dtype dtype)
{
    return types[dtype].field;
}

size_t esp_dtype_row_bytes(enum esp_dtype dtype, int columns)
{
    return (size_t)(columns / types[dtype].numbers) * types[dtype].bytes;
}

/* ------------------------------------------------------------------ floats */

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float esp_half_to_float(uint16_t half)
{
    uint32_t rest = half & 0x7fffu;
    float size = rest >= 0x7c00u ? float_from_bits(rest << 13 | 0x7f800000u)
                                 : float_from_bits(rest << 13) * 0x1p112f;
    return half & 0x8000u ? -size : size;
}

uint16_t esp_float_to_half(float x)
{
    const uint32_t sign = bits_of(x) >> 16 & 0x8000u, size = bits_of(x) & 0x7fffffffu;
    if (size > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) /* at least halfway between the largest F16 number and 2^16 */
        return (uint16_t)(sign | 0x7c00u);
    if (size < 0x38800000u) /* becomes a subnormal F16 number: a multiple of 2^-24 */
        return (uint16_t)(sign | (bits_of(float_from_bits(size) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13));
}

static uint16_t float_to_bf16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static uint16_t load_16(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static float load_half(const uint8_t *p)
{
    return esp_half_to_float(load_16(p));
}

/* Stores x as F16; returns the stored value. */
static float store_half(uint8_t *p, float x)
{
    uint16_t half = esp_float_to_half(x);
    memcpy(p, &half, sizeof half);
    return esp_half_to_float(half);
}

/* ------------------------------------------------------------------ integers of a block */

static const int8_t nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

/* The values of MXFP4 (E2M1), doubled. */
static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Returns 2^(e - 128) for a byte e; the result is subnormal if it is below 2^-126. */
static float half_scale(uint8_t e)
{
    return float_from_bits(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23);
}

/* Reads scale i and minimum i (0 <= i < 8), six bits each, from the 12 bytes of a Q4_K or Q5_K
 * block. */
static void load_scale(const uint8_t *s, int i, int *scale, int *minimum)
{
    if (i < 4) {
        *scale = s[i] & 63;
        *minimum = s[i + 4] & 63;
    } else {
        *scale = (s[i + 4] & 15) | s[i - 4] >> 6 << 4;
        *minimum = s[i + 4] >> 4 | s[i] >> 6 << 4;
    }
}

/* Writes scale i and minimum i. Before the first call, all bytes of `s` must be 0. */
static void store_scale(uint8_t *s, int i, int scale, int minimum)
{
    if (i < 4) {
        s[i] = (uint8_t)scale;
        s[i + 4] = (uint8_t)minimum;
    } else {
        s[i + 4] = (uint8_t)((scale & 15) | minimum << 4);
        s[i - 4] = (uint8_t)(s[i - 4] | scale >> 4 << 6);
        s[i] = (uint8_t)(s[i] | minimum >> 4 << 6);
    }
}

/* Describes where a block stores some bits of every number. There are `each` bits per number.
 * The first of them are in byte `from` of the block. Numbers that share a byte are `run` apart.
 * each = 0 means that the type has no such bits. */
struct bits {
    uint8_t from, run, each;
};

/* Describes how the blocks of a type are read and written. */
struct codec {
    void (*read)(const struct codec *c, const uint8_t *block, float *out);
    /* tries: number of scales to try on each side of the first guess; TRIES or 0 */
    void (*write)(const struct codec *c, const float *x, int tries, uint8_t *block);
    struct bits low, above; /* the low bits of an integer q, and the bits above them */
    /* The integer q stands for table[q]. Without a table, it stands for q + lowest, and the
     * largest such value is `highest`. */
    int lowest, highest;
    const int8_t *table;
};

static void load_bits(const uint8_t *block, int n, const struct bits *bits, int up, uint8_t *q)
{
    const uint8_t *from = block + bits->from;
    const int mask = (1 << bits->each) - 1;
    for (int i = 0; i < n && bits->each > 0; from += bits->run)
        for (int shift = 0; shift < 8; shift += bits->each)
            for (int k = 0; k < bits->run; k++, i++)
                q[i] |= (uint8_t)((from[k] >> shift & mask) << up);
}

static void store_bits(uint8_t *block, int n, const struct bits *bits, int up, const uint8_t *q)
{
    uint8_t *to = block + bits->from;
    const int mask = (1 << bits->each) - 1;
    memset(to, 0, (size_t)(n * bits->each / 8));
    for (int i = 0; i < n && bits->each > 0; to += bits->run)
        for (int shift = 0; shift < 8; shift += bits->each)
            for (int k = 0; k < bits->run; k++, i++)
                to[k] |= (uint8_t)((q[i] >> up & mask) << shift);
}

static void load_integers(const struct codec *c, const uint8_t *block, int n, uint8_t *q)
{
    memset(q, 0, (size_t)n);
    load_bits(block, n, &c->low, 0, q);
    load_bits(block, n, &c->above, 4, q);
}

static void store_integers(const struct codec *c, uint8_t *block, int n, const uint8_t *q)
{
    store_bits(block, n, &c->low, 0, q);
    store_bits(block, n, &c->above, 4, q);
}

/* ------------------------------------------------------------------ to floats */

static void read_bytes(const struct codec *c, const uint8_t *block, float *out)
{
    const float d = load_half(block);
    (void)c;
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)(int8_t)block[2 + i];
}

static void read_small(const struct codec *c, const uint8_t *block, float *out)
{
    const float d = c->table == doubled ? half_scale(block[0]) : load_half(block);
    uint8_t q[SMALL];
    load_integers(c, block, SMALL, q);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)(c->table ? c->table[q[i]] : q[i] + c->lowest);
}

static void read_minima(const struct codec *c, const uint8_t *block, float *out)
{
    const float d = load_half(block), dmin = load_half(block + 2);
    uint8_t q[LARGE];
    load_integers(c, block, LARGE, q);
    for (int i = 0; i < LARGE; i++) {
        int scale, minimum;
        load_scale(block + 4, i / 32, &scale, &minimum);
        out[i] = d * (float)scale * (float)q[i] - dmin * (float)minimum;
    }
}

static void read_scales(const struct codec *c, const uint8_t *block, float *out)
{
    const float d = load_half(block + 208);
    uint8_t q[LARGE];
    load_integers(c, block, LARGE, q);
    for (int i = 0; i < LARGE; i++)
        out[i] = d * (float)(int8_t)block[192 + i / 16] * (float)(q[i] + c->lowest);
}

/* ------------------------------------------------------------------ from floats */

/* Returns the integer nearest to x, limited to low..high. NaN gives an arbitrary integer from
 * low to high. */
static int nearest(float x, int low, int high)
{
    if (!(x > (float)low))
        return low;
    return x < (float)high ? (int)roundf(x) : high;
}

/* Returns the value nearest to x among the values that the integers of this type stand for. */
static int level(const struct codec *c, float x)
{
    int i = 0;
    if (!c->table)
        return nearest(x, c->lowest, c->highest);
    while (i < 15 && x > 0.5f * (float)(c->table[i] + c->table[i + 1]))
        i++;
    return c->table[i];
}

static void weigh(const float *x, int n, float *weight)
{
    float squares = 0.0f;
    for (int i = 0; i < n; i++)
        squares += x[i] * x[i];
    const float rms = sqrtf(squares / (float)n);
    for (int i = 0; i < n; i++)
        weight[i] = fabsf(x[i]) + rms;
}

/* The number of scales to try on each side of the scale that fits the largest number. */
enum { TRIES = 9 };

/* Finds a scale s for which the weighted squared error, the sum of w (x - s level(x / s))^2,
 * is small. Given the levels l found with some scale, the best scale is sum w x l / sum w l^2,
 * and it reduces the error by (sum w x l)^2 / sum w l^2. Scales are tried around two first
 * guesses: one maps the number with the largest magnitude to the lowest level, the other maps
 * it to the highest level. */
static float fit_scale(const struct codec *c, const float *x, int n, int tries)
{
    const float lowest = (float)level(c, -1e9f), highest = (float)level(c, 1e9f);
    float weight[SMALL], largest = 0.0f, best = 0.0f, gain = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(largest))
            largest = x[i];
    if (largest == 0.0f)
        return 0.0f;
    weigh(x, n, weight);
    for (int k = -tries; k <= 2 * tries + 1 + tries; k++) {
        const bool low = k <= tries;
        const float end = low ? lowest : highest;
        const float stretch = 1.0f + 0.012f * (float)(low ? k : k - 2 * tries - 1);
        const float inverse = end * stretch / largest;
        float xl = 0.0f, ll = 0.0f;
        for (int i = 0; i < n; i++) {
            const float l = (float)level(c, x[i] * inverse);
            xl += weight[i] * x[i] * l;
            ll += weight[i] * l * l;
        }
        if (ll > 0.0f && xl * xl > gain * ll) {
            gain = xl * xl / ll;
            best = xl / ll;
        }
    }
    return best;
}

/* Finds scale and minimum of 32 numbers x = s q - m with q in 0..high and m >= 0. Like
 * fit_scale(), it tries several scales: each gives integers q, and weighted least squares then
 * gives s and m. */
static void fit_scale_and_minimum(const float *x, int high, int tries, float *scale,
                                  float *minimum)
{
    float weight[SMALL], low = 0.0f, top = x[0], least = INFINITY;
    for (int i = 0; i < SMALL; i++) {
        low = x[i] < low ? x[i] : low;
        top = x[i] > top ? x[i] : top;
    }
    *scale = 0.0f;
    *minimum = -low;
    if (!(top > low))
        return;
    weigh(x, SMALL, weight);
    for (int k = -tries; k <= tries; k++) {
        const float inverse = (float)high * (1.0f + 0.02f * (float)k) / (top - low);
        double w = 0, q1 = 0, q2 = 0, x1 = 0, xq = 0;
        for (int i = 0; i < SMALL; i++) {
            const double q = nearest((x[i] - low) * inverse, 0, high), wi = weight[i];
            w += wi;
            q1 += wi * q;
            q2 += wi * q * q;
            x1 += wi * x[i];
            xq += wi * q * x[i];
        }
        const double det = w * q2 - q1 * q1;
        double s = det > 0 ? (w * xq - q1 * x1) / det : 0;
        double m = det > 0 ? (q1 * xq - q2 * x1) / det : 0;
        if (m < 0 || det <= 0) {
            m = 0;
            s = q2 > 0 ? xq / q2 : 0;
        }
        if (!(s > 0))
            continue;
        double error = 0;
        for (int i = 0; i < SMALL; i++) {
            const double q = nearest((float)((x[i] + m) / s), 0, high);
            const double off = s * q - m - x[i];
            error += weight[i] * off * off;
        }
        if (error < (double)least) {
            least = (float)error;
            *scale = (float)s;
            *minimum = (float)m;
        }
    }
}

static float inverse_of(float x)
{
    return x == 0.0f ? 0.0f : 1.0f / x;
}

static void write_bytes(const struct codec *c, const float *x, int tries, uint8_t *block)
{
    float largest = 0.0f;
    (void)c, (void)tries;
    for (int i = 0; i < SMALL; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    const float d = largest / 127.0f, inverse = inverse_of(d);
    store_half(block, d);
    for (int i = 0; i < SMALL; i++)
        block[2 + i] = (uint8_t)(int8_t)nearest(x[i] * inverse, -127, 127);
}

static uint8_t integer_of(const struct codec *c, int l)
{
    uint8_t i = 0;
    while (c->table && c->table[i] != l)
        i++;
    return c->table ? i : (uint8_t)(l - c->lowest);
}

static void write_small(const struct codec *c, const float *x, int tries, uint8_t *block)
{
    uint8_t q[SMALL];
    const float inverse = inverse_of(store_half(block, fit_scale(c, x, SMALL, tries)));
    for (int i = 0; i < SMALL; i++)
        q[i] = integer_of(c, level(c, x[i] * inverse));
    store_integers(c, block, SMALL, q);
}

/* Returns the q for which doubled[q] is nearest to x. If two are equally near, returns the even
 * one. */
static uint8_t nearest_doubled(float x)
{
    const float size = fabsf(x);
    uint8_t q = 0;
    while (q < 7 && (size > 0.5f * (float)(doubled[q] + doubled[q + 1]) ||
                     (q % 2 && size == 0.5f * (float)(doubled[q] + doubled[q + 1]))))
        q++;
    return (uint8_t)(q | (x < 0 ? 8 : 0));
}

/* Writes to q the integers of 32 numbers for the scale half_scale(e), and returns their
 * weighted squared error. */
static float try_power(const float *x, const float *weight, uint8_t e, uint8_t *q)
{
    const float scale = half_scale(e);
    float error = 0.0f;
    for (int i = 0; i < SMALL; i++) {
        q[i] = nearest_doubled(x[i] / scale);
        const float off = scale * (float)doubled[q[i]] - x[i];
        error += weight[i] * off * off;
    }
    return error;
}

/* Writes an MXFP4 block. Tries three scales and uses the best. They are powers of two near the
 * smallest scale at which the largest number fits. */
static void write_powers(const struct codec *c, const float *x, int tries, uint8_t *block)
{
    enum { LEAST = 1, MOST = 254 };
    float weight[SMALL], largest = 0.0f, least = INFINITY;
    uint8_t q[SMALL], best[SMALL] = {0};
    int exponent = 0;
    (void)tries;
    for (int i = 0; i < SMALL; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    weigh(x, SMALL, weight);
    frexpf(fminf(largest, FLT_MAX), &exponent);
    block[0] = 0;
    for (int e = exponent + 123; e <= exponent + 125 && largest > 0; e++) {
        const uint8_t held = (uint8_t)(e < LEAST ? LEAST : e > MOST ? MOST : e);
        const float error = try_power(x, weight, held, q);
        if (error < least) {
            least = error;
            block[0] = held;
            memcpy(best, q, sizeof best);
        }
    }
    store_integers(c, block, SMALL, best);
}

static void write_minima(const struct codec *c, const float *x, int tries, uint8_t *block)
{
    float scale[8], minimum[8], most = 0.0f, deepest = 0.0f;
    uint8_t q[LARGE];
    for (int i = 0; i < 8; i++) {
        fit_scale_and_minimum(x + i * SMALL, c->highest, tries, &scale[i], &minimum[i]);
        most = scale[i] > most ? scale[i] : most;
        deepest = minimum[i] > deepest ? minimum[i] : deepest;
    }
    const float d = store_half(block, most / 63.0f),
                dmin = store_half(block + 2, deepest / 63.0f);
    memset(block + 4, 0, 12);
    for (int i = 0; i < 8; i++) {
        const int s = nearest(scale[i] * inverse_of(d), 0, 63);
        const int m = nearest(minimum[i] * inverse_of(dmin), 0, 63);
        const float step = inverse_of(d * (float)s), shift = dmin * (float)m;
        store_scale(block + 4, i, s, m);
        for (int j = i * SMALL; j < (i + 1) * SMALL; j++)
            q[j] = (uint8_t)nearest((x[j] + shift) * step, 0, c->highest);
    }
    store_integers(c, block, LARGE, q);
}

static void write_scales(const struct codec *c, const float *x, int tries, uint8_t *block)
{
    float scale[16], largest = 0.0f;
    uint8_t q[LARGE];
    for (int i = 0; i < 16; i++) {
        scale[i] = fit_scale(c, x + i * 16, 16, tries);
        if (fabsf(scale[i]) > fabsf(largest))
            largest = scale[i];
    }
    const float d = store_half(block + 208, largest / -128.0f);
    for (int i = 0; i < 16; i++) {
        const int s = nearest(scale[i] * inverse_of(d), -128, 127);
        const float step = inverse_of(d * (float)s);
        block[192 + i] = (uint8_t)(int8_t)s;
        for (int j = i * 16; j < (i + 1) * 16; j++)
            q[j] = integer_of(c, level(c, x[j] * step));
    }
    store_integers(c, block, LARGE, q);
}

/* ------------------------------------------------------------------ the types */

// clang-format off
static const struct codec
    codec_Q8_0 = {read_bytes, write_bytes, {0}, {0}, 0, 0, NULL},
    codec_Q4_0 = {read_small, write_small, {2, 16, 4}, {0}, -8, 7, NULL},
    codec_Q5_0 = {read_small, write_small, {6, 16, 4}, {2, 1, 1}, -16, 15, NULL},
    codec_IQ4_NL = {read_small, write_small, {2, 16, 4}, {0}, 0, 0, nonlinear},
    codec_MXFP4 = {read_small, write_powers, {1, 16, 4}, {0}, 0, 0, doubled},
    codec_Q4_K = {read_minima, write_minima, {16, 32, 4}, {0}, 0, 15, NULL},
    codec_Q5_K = {read_minima, write_minima, {48, 32, 4}, {16, 32, 1}, 0, 31, NULL},
    codec_Q6_K = {read_scales, write_scales, {0, 64, 4}, {128, 32, 2}, -32, 31, NULL};
// clang-format on

static const struct codec *const codecs[] = {
#define X(name, ...) [ESP_##name] = &codec_##name,
    ESP_BLOCK_TYPES(X)
#undef X
};

void esp_dequantise(enum esp_dtype dtype, const void *stored, int n, float *out)
{
    const uint8_t *p = stored;
    if (dtype == ESP_F32) {
        memcpy(out, stored, (size_t)n * sizeof *out);
        return;
    }
    const int numbers = types[dtype].numbers;
    if (dtype == ESP_F16)
        for (int i = 0; i < n; i++)
            out[i] = load_half(p + 2 * i);
    else if (dtype == ESP_BF16)
        for (int i = 0; i < n; i++)
            out[i] = float_from_bits((uint32_t)load_16(p + 2 * i) << 16);
    else
        for (int i = 0; i < n; i += numbers, p += types[dtype].bytes)
            codecs[dtype]->read(codecs[dtype], p, out + i);
}

static void quantise(enum esp_dtype dtype, const float *x, int n, int tries, void *stored)
{
    uint8_t *p = stored;
    if (dtype == ESP_F32) {
        memcpy(stored, x, (size_t)n * sizeof *x);
        return;
    }
    const int numbers = types[dtype].numbers;
    for (int i = 0; i < n; i += numbers, p += types[dtype].bytes)
        if (dtype == ESP_F16) {
            store_half(p, x[i]);
        } else if (dtype == ESP_BF16) {
            uint16_t bits = float_to_bf16(x[i]);
            memcpy(p, &bits, sizeof bits);
        } else {
            codecs[dtype]->write(codecs[dtype], x + i, tries, p);
        }
}

void esp_quantise(enum esp_dtype dtype, const float *x, int n, void *stored)
{
    quantise(dtype, x, n, TRIES, stored);
}

void esp_quantise_quickly(enum esp_dtype dtype, const float *x, int n, void *stored)
{
    quantise(dtype, x, n, 0, stored);
}
