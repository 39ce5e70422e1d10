/* bytes.h - sixty-four bytes and sixteen 32-bit integers at a time, the same on every
 * instruction set, beside the floats of simd.h.
 *
 * `struct b64` holds four columns of sixteen outputs: 32-bit lane j is output j. The bytes are
 * unsigned weights. s16_dots() adds to sums their products with activations of 16 bits,
 * s8_dots() with activations of 8. The sums are exact, so it does not matter that each
 * instruction set finds them in its own way:
 *
 *   VNNI              bytes by bytes (vpdpbusd); 16 bits are 256 high + low
 *   AVX-512, AVX2     16 bits: vpmaddwd, even and odd columns apart;
 *                     8 bits: vpmaddubsw where a pair's sum fits 16 bits, else as 16 bits
 *   portable C        one by one
 *
 * Activations of 16 bits lie as the instruction set wants them, which s16_store_block() knows.
 */
#ifndef ESP_CPU_BYTES_H
#define ESP_CPU_BYTES_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

/* Four columns make a group. */
enum {
    GROUPS = ESP_CUT_COLUMNS / 4,
    ESP_ROWS = 4, /* maximum rows of s8_dots() and s16_dots() */
};

#if ESP_SIMD == 1
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* A shift by a constant 0..7 of each 16-bit word, left or (negative) right. */
#define B64_SHIFTS(shift, left, right, v)                                                      \
    switch (shift) {                                                                           \
    case 4:                                                                                    \
        return left(v, 4);                                                                     \
    case 3:                                                                                    \
        return left(v, 3);                                                                     \
    case 2:                                                                                    \
        return left(v, 2);                                                                     \
    case 1:                                                                                    \
        return left(v, 1);                                                                     \
    case -1:                                                                                   \
        return right(v, 1);                                                                    \
    case -2:                                                                                   \
        return right(v, 2);                                                                    \
    case -3:                                                                                   \
        return right(v, 3);                                                                    \
    case -4:                                                                                   \
        return right(v, 4);                                                                    \
    default:                                                                                   \
        return v;                                                                              \
    }

#if ESP_SIMD == 3

struct b64 {
    __m512i v;
};
struct s16 {
    __m512i v;
};

V16 struct b64 b64_load(const void *p)
{
    return (struct b64){_mm512_loadu_si512(p)};
}

V16_VALUE __m512i b64_shift_words(__m512i v, const int shift){
    B64_SHIFTS(shift, _mm512_slli_epi16, _mm512_srli_epi16, v)}

V16_VALUE struct b64 b64_shift_and(struct b64 a, const int shift, const int mask)
{
    __m512i v = b64_shift_words(a.v, shift);
    return (struct b64){_mm512_and_si512(v, _mm512_set1_epi8((char)mask))};
}

V16_VALUE struct b64 b64_or(struct b64 a, struct b64 b)
{
    return (struct b64){_mm512_or_si512(a.v, b.v)};
}

/* Sets bit 4 of every byte of `a` if bit `which` of the same byte of `bits` is set. */
V16 struct b64 b64_set_fifth(struct b64 a, struct b64 bits, int which)
{
    const __mmask64 set = _mm512_test_epi8_mask(bits.v, _mm512_set1_epi8((char)(1 << which)));
    return (struct b64){_mm512_or_si512(a.v, _mm512_maskz_mov_epi8(set, _mm512_set1_epi8(16)))};
}

V16_VALUE struct b64 b64_flip_signs(struct b64 a)
{
    return (struct b64){_mm512_xor_si512(a.v, _mm512_set1_epi8((char)0x80))};
}

V16 struct b64 b64_look_up(const uint8_t table[16], struct b64 a)
{
    __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)table));
    return (struct b64){_mm512_shuffle_epi8(t, a.v)};
}

/* Bits 4 group..4 group + 3 of lane j to bit 4 of the lane's four bytes. */
V16_VALUE struct b64 b64_spread(struct s16 a, const int group)
{
    __m512i four = _mm512_srlv_epi32(a.v, _mm512_set1_epi32(4 * group));
    four = _mm512_and_si512(four, _mm512_set1_epi32(15));
    four = _mm512_mullo_epi32(four, _mm512_set1_epi32(0x02040810));
    return (struct b64){_mm512_and_si512(four, _mm512_set1_epi32(0x10101010))};
}

V16 struct s16 s16_load(const void *p)
{
    return (struct s16){_mm512_loadu_si512(p)};
}

V16_VALUE struct s16 s16_set(int32_t x)
{
    return (struct s16){_mm512_set1_epi32(x)};
}

V16_VALUE struct s16 s16_and(struct s16 a, uint32_t mask)
{
    return (struct s16){_mm512_and_si512(a.v, _mm512_set1_epi32((int)mask))};
}

V16_VALUE struct s16 s16_or(struct s16 a, struct s16 b)
{
    return (struct s16){_mm512_or_si512(a.v, b.v)};
}

V16_VALUE struct s16 s16_shift_right(struct s16 a, const int n)
{
    return (struct s16){_mm512_srlv_epi32(a.v, _mm512_set1_epi32(n))};
}

/* Byte k of each lane as a signed number. */
V16_VALUE struct s16 s16_signed_byte(struct s16 a, const int k)
{
    __m512i high = _mm512_sllv_epi32(a.v, _mm512_set1_epi32(24 - 8 * k));
    return (struct s16){_mm512_srav_epi32(high, _mm512_set1_epi32(24))};
}

V16_VALUE struct v16 s16_to_float(struct s16 a)
{
    return (struct v16){_mm512_cvtepi32_ps(a.v)};
}

/* 2^(e - 128) of sixteen bytes e; see half_power() in kernels/dtype.c. */
V16 struct v16 v16_load_half_powers(const void *p)
{
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
    const __m512i low = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000),
                                          _mm512_min_epu32(e, _mm512_set1_epi32(1)));
    const __m512i power = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    return (struct v16){_mm512_castsi512_ps(_mm512_max_epi32(power, low))};
}

V16_VALUE struct s16 s16_add(struct s16 a, struct s16 b)
{
    return (struct s16){_mm512_add_epi32(a.v, b.v)};
}

V16_VALUE struct s16 s16_times_256(struct s16 a)
{
    return (struct s16){_mm512_slli_epi32(a.v, 8)};
}

#ifdef ESP_VNNI

V16 __m512i s16_columns(const struct esp_cut *x, int at)
{
    int32_t four;
    memcpy(&four, (const char *)x->x + 4 * at, sizeof four);
    return _mm512_set1_epi32(four);
}

V16 void s16_dots(struct s16 sum[][2], const struct b64 w[2][GROUPS], const int from,
                  const int to, const struct esp_cut *x, const int rows)
{
    __m512i high[ESP_ROWS][2];
    UNROLL for (int r = 0; r < rows; r++) high[r][0] = high[r][1] = _mm512_setzero_si512();
    UNROLL for (int g = from; g < to; g++)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const __m512i a = s16_columns(x + r, g), b = s16_columns(x + r, GROUPS + g);
            high[r][0] = _mm512_dpbusd_epi32(high[r][0], w[0][g].v, a);
            high[r][1] = _mm512_dpbusd_epi32(high[r][1], w[1][g].v, a);
            sum[r][0].v = _mm512_dpbusd_epi32(sum[r][0].v, w[0][g].v, b);
            sum[r][1].v = _mm512_dpbusd_epi32(sum[r][1].v, w[1][g].v, b);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) for (int half = 0; half < 2; half++) sum[r][half].v =
        _mm512_add_epi32(_mm512_slli_epi32(high[r][half], 8), sum[r][half].v);
}

V16 void s8_dots(struct s16 sum[][2], const struct b64 w[2][GROUPS], const int from,
                 const int to, const struct esp_cut *x, const int rows, const bool narrow)
{
    (void)narrow;
    UNROLL for (int g = from; g < to; g++)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const __m512i a = s16_columns(esp_cut_skip(x, (size_t)r, true), g);
            sum[r][0].v = _mm512_dpbusd_epi32(sum[r][0].v, w[0][g].v, a);
            sum[r][1].v = _mm512_dpbusd_epi32(sum[r][1].v, w[1][g].v, a);
        }
    }
}

#else

V16_VALUE __m512i dot_8(__m512i w, __m512i x, const bool narrow)
{
    if (narrow)
        return _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1));
    const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8);
    const __m512i a = _mm512_madd_epi16(_mm512_and_si512(w, _mm512_set1_epi16(255)), even);
    const __m512i b = _mm512_madd_epi16(_mm512_srli_epi16(w, 8), _mm512_srai_epi16(x, 8));
    return _mm512_add_epi32(a, b);
}

V16 struct s16 s8_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                      const struct esp_cut *x, const bool narrow)
{
    __m512i sum = before.v;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t four;
        memcpy(&four, (const int8_t *)x->x + 4 * g, sizeof four);
        sum = _mm512_add_epi32(sum, dot_8(w[g].v, _mm512_set1_epi32(four), narrow));
    }
    return (struct s16){sum};
}

V16 struct s16 s16_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                       const struct esp_cut *x)
{
    const __m512i low = _mm512_set1_epi16(255);
    __m512i sum = before.v;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t even, odd;
        memcpy(&even, x->x + 4 * g, sizeof even);
        memcpy(&odd, x->x + 4 * g + 2, sizeof odd);
        __m512i a = _mm512_madd_epi16(_mm512_and_si512(w[g].v, low), _mm512_set1_epi32(even));
        __m512i b = _mm512_madd_epi16(_mm512_srli_epi16(w[g].v, 8), _mm512_set1_epi32(odd));
        sum = _mm512_add_epi32(sum, _mm512_add_epi32(a, b));
    }
    return (struct s16){sum};
}

#endif

#elif ESP_SIMD == 2

struct b64 {
    __m256i a, b; /* outputs 0-7, 8-15 */
};
struct s16 {
    __m256i a, b;
};

V16 struct b64 b64_load(const void *p)
{
    const __m256i *q = p;
    return (struct b64){_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}

V16_VALUE __m256i b64_shift_words(__m256i v, const int shift){
    B64_SHIFTS(shift, _mm256_slli_epi16, _mm256_srli_epi16, v)}

V16_VALUE struct b64 b64_shift_and(struct b64 x, const int shift, const int mask)
{
    const __m256i m = _mm256_set1_epi8((char)mask);
    return (struct b64){_mm256_and_si256(b64_shift_words(x.a, shift), m),
                        _mm256_and_si256(b64_shift_words(x.b, shift), m)};
}

V16_VALUE struct b64 b64_or(struct b64 x, struct b64 y)
{
    return (struct b64){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}

V16_VALUE __m256i fifth_of(__m256i bits, int which)
{
    const __m256i mask = _mm256_set1_epi8((char)(1 << which));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, mask), mask);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

V16_VALUE struct b64 b64_set_fifth(struct b64 x, struct b64 bits, int which)
{
    return (struct b64){_mm256_or_si256(x.a, fifth_of(bits.a, which)),
                        _mm256_or_si256(x.b, fifth_of(bits.b, which))};
}

V16_VALUE struct b64 b64_flip_signs(struct b64 x)
{
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    return (struct b64){_mm256_xor_si256(x.a, sign), _mm256_xor_si256(x.b, sign)};
}

V16 struct b64 b64_look_up(const uint8_t table[16], struct b64 x)
{
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));
    return (struct b64){_mm256_shuffle_epi8(t, x.a), _mm256_shuffle_epi8(t, x.b)};
}

V16_VALUE __m256i spread_8(__m256i v, const int group)
{
    __m256i four = _mm256_srlv_epi32(v, _mm256_set1_epi32(4 * group));
    four = _mm256_and_si256(four, _mm256_set1_epi32(15));
    four = _mm256_mullo_epi32(four, _mm256_set1_epi32(0x02040810));
    return _mm256_and_si256(four, _mm256_set1_epi32(0x10101010));
}

V16_VALUE struct b64 b64_spread(struct s16 x, const int group)
{
    return (struct b64){spread_8(x.a, group), spread_8(x.b, group)};
}

V16 struct s16 s16_load(const void *p)
{
    const __m256i *q = p;
    return (struct s16){_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}

V16_VALUE struct s16 s16_set(int32_t x)
{
    return (struct s16){_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}

V16_VALUE struct s16 s16_add(struct s16 x, struct s16 y)
{
    return (struct s16){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}

V16_VALUE struct s16 s16_times_256(struct s16 x)
{
    return (struct s16){_mm256_slli_epi32(x.a, 8), _mm256_slli_epi32(x.b, 8)};
}

V16_VALUE struct s16 s16_and(struct s16 x, uint32_t mask)
{
    const __m256i m = _mm256_set1_epi32((int)mask);
    return (struct s16){_mm256_and_si256(x.a, m), _mm256_and_si256(x.b, m)};
}

V16_VALUE struct s16 s16_or(struct s16 x, struct s16 y)
{
    return (struct s16){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}

V16_VALUE struct s16 s16_shift_right(struct s16 x, const int n)
{
    const __m256i count = _mm256_set1_epi32(n);
    return (struct s16){_mm256_srlv_epi32(x.a, count), _mm256_srlv_epi32(x.b, count)};
}

V16_VALUE struct s16 s16_signed_byte(struct s16 x, const int k)
{
    const __m256i up = _mm256_set1_epi32(24 - 8 * k), down = _mm256_set1_epi32(24);
    return (struct s16){_mm256_srav_epi32(_mm256_sllv_epi32(x.a, up), down),
                        _mm256_srav_epi32(_mm256_sllv_epi32(x.b, up), down)};
}

V16_VALUE struct v16 s16_to_float(struct s16 x)
{
    return (struct v16){_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}

V16 __m256 half_powers_8(const void *p)
{
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
    const __m256i low = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000),
                                          _mm256_min_epu32(e, _mm256_set1_epi32(1)));
    const __m256i power = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_max_epi32(power, low));
}

V16 struct v16 v16_load_half_powers(const void *p)
{
    return (struct v16){half_powers_8(p), half_powers_8((const char *)p + 8)};
}

V16_VALUE __m256i dot_8(__m256i w, __m256i x, const bool narrow)
{
    if (narrow)
        return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1));
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
    const __m256i a = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), even);
    const __m256i b = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8));
    return _mm256_add_epi32(a, b);
}

V16 struct s16 s8_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                      const struct esp_cut *x, const bool narrow)
{
    __m256i a = before.a, b = before.b;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t four;
        memcpy(&four, (const int8_t *)x->x + 4 * g, sizeof four);
        const __m256i columns = _mm256_set1_epi32(four);
        a = _mm256_add_epi32(a, dot_8(w[g].a, columns, narrow));
        b = _mm256_add_epi32(b, dot_8(w[g].b, columns, narrow));
    }
    return (struct s16){a, b};
}

V16 struct s16 s16_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                       const struct esp_cut *x)
{
    const __m256i low = _mm256_set1_epi16(255);
    __m256i a = before.a, b = before.b;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t first, second;
        memcpy(&first, x->x + 4 * g, sizeof first);
        memcpy(&second, x->x + 4 * g + 2, sizeof second);
        const __m256i even = _mm256_set1_epi32(first), odd = _mm256_set1_epi32(second);
        a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_and_si256(w[g].a, low), even));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_and_si256(w[g].b, low), even));
        a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_srli_epi16(w[g].a, 8), odd));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_srli_epi16(w[g].b, 8), odd));
    }
    return (struct s16){a, b};
}

#else

struct b64 {
    uint8_t b[64];
};
struct s16 {
    int32_t i[16];
};

#define B64_BYTES(expression)                                                                  \
    do {                                                                                       \
        struct b64 out;                                                                        \
        for (int i = 0; i < 64; i++)                                                           \
            out.b[i] = (uint8_t)(expression);                                                  \
        return out;                                                                            \
    } while (0)
#define S16_LANES(expression)                                                                  \
    do {                                                                                       \
        struct s16 out;                                                                        \
        for (int j = 0; j < 16; j++)                                                           \
            out.i[j] = (int32_t)(expression);                                                  \
        return out;                                                                            \
    } while (0)

V16 struct b64 b64_load(const void *p)
{
    struct b64 a;
    memcpy(&a, p, sizeof a);
    return a;
}

V16_VALUE struct b64 b64_shift_and(struct b64 a, const int shift, const int mask)
{
    B64_BYTES((shift > 0 ? a.b[i] << shift : a.b[i] >> -shift) & mask);
}

V16_VALUE struct b64 b64_or(struct b64 a, struct b64 b)
{
    B64_BYTES(a.b[i] | b.b[i]);
}

V16_VALUE struct b64 b64_set_fifth(struct b64 a, struct b64 bits, int which)
{
    B64_BYTES(a.b[i] | (bits.b[i] >> which & 1) << 4);
}

V16_VALUE struct b64 b64_flip_signs(struct b64 a)
{
    B64_BYTES(a.b[i] ^ 0x80);
}

V16 struct b64 b64_look_up(const uint8_t table[16], struct b64 a)
{
    B64_BYTES(table[a.b[i]]);
}

V16_VALUE struct b64 b64_spread(struct s16 a, const int group)
{
    B64_BYTES(((uint32_t)a.i[i / 4] >> (4 * group + i % 4) & 1) << 4);
}

V16 struct s16 s16_load(const void *p)
{
    struct s16 a;
    memcpy(&a, p, sizeof a);
    return a;
}

V16_VALUE struct s16 s16_set(int32_t x)
{
    S16_LANES(x);
}

V16_VALUE struct s16 s16_add(struct s16 a, struct s16 b)
{
    S16_LANES(a.i[j] + b.i[j]);
}

V16_VALUE struct s16 s16_times_256(struct s16 a)
{
    S16_LANES((uint32_t)a.i[j] << 8);
}

V16_VALUE struct s16 s16_and(struct s16 a, uint32_t mask)
{
    S16_LANES((uint32_t)a.i[j] & mask);
}

V16_VALUE struct s16 s16_or(struct s16 a, struct s16 b)
{
    S16_LANES(a.i[j] | b.i[j]);
}

V16_VALUE struct s16 s16_shift_right(struct s16 a, const int n)
{
    S16_LANES((uint32_t)a.i[j] >> n);
}

V16_VALUE struct s16 s16_signed_byte(struct s16 a, const int k)
{
    S16_LANES((int8_t)((uint32_t)a.i[j] >> 8 * k));
}

V16_VALUE struct v16 s16_to_float(struct s16 a)
{
    struct v16 out;
    for (int j = 0; j < 16; j++)
        out.f[j] = (float)a.i[j];
    return out;
}

V16 struct v16 v16_load_half_powers(const void *p)
{
    const uint8_t *e = p;
    struct v16 out;
    for (int j = 0; j < 16; j++) {
        const uint32_t bits = e[j] < 2 ? 0x200000u << e[j] : (uint32_t)(e[j] - 1) << 23;
        memcpy(&out.f[j], &bits, sizeof bits);
    }
    return out;
}

V16 struct s16 s8_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                      const struct esp_cut *x, const bool narrow)
{
    (void)narrow;
    struct s16 sum = before;
    for (int g = from; g < to; g++)
        for (int j = 0; j < 16; j++)
            for (int i = 0; i < 4; i++)
                sum.i[j] += w[g].b[4 * j + i] * ((const int8_t *)x->x)[4 * g + i];
    return sum;
}

V16 struct s16 s16_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                       const struct esp_cut *x)
{
    struct s16 sum = before;
    for (int g = from; g < to; g++)
        for (int j = 0; j < 16; j++)
            for (int i = 0; i < 4; i++)
                sum.i[j] += w[g].b[4 * j + i] * x->x[4 * g + i];
    return sum;
}

#endif

#if defined ESP_VNNI || defined ESP_AMX

/* All high bytes, then all low ones: x = 256 high + low, both signed. */
V16 void s16_store_block(void *to, const int16_t x[ESP_CUT_COLUMNS])
{
    int8_t *high = to, *low = high + ESP_CUT_COLUMNS;
    for (int i = 0; i < ESP_CUT_COLUMNS; i++) {
        high[i] = (int8_t)((x[i] + 128) >> 8);
        low[i] = (int8_t)x[i];
    }
}

#elif ESP_SIMD == 1

V16 void s16_store_block(void *to, const int16_t x[ESP_CUT_COLUMNS])
{
    memcpy(to, x, ESP_CUT_COLUMNS * sizeof *x);
}

#else

/* Even columns of four, then odd ones: what vpmaddwd pairs. */
V16 void s16_store_block(void *to, const int16_t x[ESP_CUT_COLUMNS])
{
    int16_t *out = to;
    for (int i = 0; i < ESP_CUT_COLUMNS; i += 4) {
        out[i] = x[i];
        out[i + 1] = x[i + 2];
        out[i + 2] = x[i + 1];
        out[i + 3] = x[i + 3];
    }
}

#endif

#ifndef ESP_VNNI

V16 void s16_dots(struct s16 sum[][2], const struct b64 w[2][GROUPS], const int from,
                  const int to, const struct esp_cut *x, const int rows)
{
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++)
            sum[r][half] = s16_dot(sum[r][half], w[half], from, to, x + r);
}

V16 void s8_dots(struct s16 sum[][2], const struct b64 w[2][GROUPS], const int from,
                 const int to, const struct esp_cut *x, const int rows, const bool narrow)
{
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++)
            sum[r][half] = s8_dot(sum[r][half], w[half], from, to,
                                  esp_cut_skip(x, (size_t)r, true), narrow);
}

#endif

/* Byte k of each lane as a float. */
V16_VALUE struct v16 s16_byte_to_float(struct s16 a, const int k)
{
    return s16_to_float(s16_and(s16_shift_right(a, 8 * k), 255));
}

#endif
