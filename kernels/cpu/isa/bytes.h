/* bytes.h - operations on sixty-four bytes and on sixteen 32-bit integers. They have the same
 * results on every instruction set. The operations on floats are in simd.h.
 *
 * `struct b64` holds the weights of four columns and sixteen outputs, as unsigned bytes. The
 * 32-bit lane j holds the weights of output j. s16_dots() multiplies the weights by activations
 * of 16 bits and adds the products to sums. s8_dots() does the same for activations of 8 bits.
 * The sums are exact, so each instruction set may compute them in a different way:
 *
 *   VNNI, AVX-VNNI    vpdpbusd, which multiplies bytes; activations of 16 bits are split into
 *                     two bytes, 256 high + low
 *   AVX-512, AVX2     16 bits: vpmaddwd, separately for even and odd columns;
 *                     8 bits: vpmaddubsw if the sum of two products fits in 16 bits; otherwise
 *                     as for 16 bits
 *   portable C        computes one product after another
 *   ARM               see bytes_neon.h
 *
 * s16_store_block() stores activations of 16 bits in the order that the instruction set needs.
 */
#ifndef ESP_CPU_BYTES_H
#define ESP_CPU_BYTES_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

/* A group is four columns; a block has GROUPS groups. */
enum {
    GROUPS = ESP_CUT_COLUMNS / 4,
    ESP_ROWS = 4, /* maximum number of rows for s8_dots() and s16_dots() */
};

/* The number of halves of a panel that s8_dots() and s16_dots() compute together. With four
 * rows, the sums of both halves would fill all sixteen registers of AVX2, and leave none for
 * weights and activations. */
#if defined ESP_VNNI && ESP_SIMD == 2
enum { HALVES = 1 };
#else
enum { HALVES = 2 };
#endif

#if ESP_SIMD == 1
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* The body of a function that shifts v by a constant: left if `shift` is positive, right if it
 * is negative. `left` and `right` are the instructions. */
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

#if ESP_SIMD == 4
#include "kernels/cpu/isa/bytes_neon.h"
#else
enum { OFFSET = 128 }; /* added to signed weights to make them unsigned bytes */
#endif

#if ESP_SIMD == 3

struct b64 {
    REG v;
};
struct s16 {
    REG v;
};

#define AND _mm512_and_si512
#define OR _mm512_or_si512
#define XOR _mm512_xor_si512
#define LOAD _mm512_loadu_si512
#define LOAD_BYTES _mm_loadu_si128
#define AS_FLOATS _mm512_castsi512_ps
#define COPIES(p) _mm512_broadcast_i32x4(_mm_loadu_si128(p))

/* Returns 16 in every byte that has bit `which` set in `bits`, and 0 in all other bytes. */
V16_VALUE REG fifth_of(REG bits, int which)
{
    const __mmask64 set = _mm512_test_epi8_mask(bits, _mm512_set1_epi8((char)(1 << which)));
    return _mm512_maskz_mov_epi8(set, _mm512_set1_epi8(16));
}

#elif ESP_SIMD == 2

struct b64 {
    REG a, b; /* outputs 0-7, 8-15 */
};
struct s16 {
    REG a, b;
};

#define AND _mm256_and_si256
#define OR _mm256_or_si256
#define XOR _mm256_xor_si256
#define LOAD _mm256_loadu_si256
#define LOAD_BYTES _mm_loadl_epi64
#define AS_FLOATS _mm256_castsi256_ps
#define COPIES(p) _mm256_broadcastsi128_si256(_mm_loadu_si128(p))

V16_VALUE REG fifth_of(REG bits, int which)
{
    const __m256i mask = _mm256_set1_epi8((char)(1 << which));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, mask), mask);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

#endif

#if ESP_SIMD == 2 || ESP_SIMD == 3

V16 struct b64 b64_load(const void *p)
{
    return EACH_AT(b64, LOAD, p, sizeof(REG));
}

V16_VALUE REG shift_words(REG v,
                          const int shift){B64_SHIFTS(shift, MM(slli_epi16), MM(srli_epi16), v)}

V16_VALUE REG shift_and(REG v, const int shift, const int mask)
{
    return AND(shift_words(v, shift), MM(set1_epi8)((char)mask));
}

V16_VALUE struct b64 b64_shift_and(struct b64 x, const int shift, const int mask)
{
    return EACH_WITH(b64, shift_and, x, shift, mask);
}

V16_VALUE struct b64 b64_or(struct b64 x, struct b64 y)
{
    return EACH_TWO(b64, OR, x, y);
}

/* Sets bit 4 of every byte of `x` if bit `which` of the same byte of `bits` is set. */
V16_VALUE struct b64 b64_set_fifth(struct b64 x, struct b64 bits, int which)
{
    return b64_or(x, EACH_WITH(b64, fifth_of, bits, which));
}

V16_VALUE struct b64 b64_from_signed(struct b64 x)
{
    return EACH_WITH(b64, XOR, x, MM(set1_epi8)((char)0x80));
}

V16_VALUE REG less(REG v, int offset)
{
    return MM(sub_epi8)(v, MM(set1_epi8)((char)offset));
}

/* Subtracts an offset from every byte, which makes the bytes signed. */
V16_VALUE struct b64 b64_less(struct b64 x, int offset)
{
    return EACH_WITH(b64, less, x, offset);
}

V16_VALUE REG look_up(REG places, REG table)
{
    return MM(shuffle_epi8)(table, places);
}

V16 struct b64 b64_look_up(const uint8_t table[16], struct b64 x)
{
    const REG copies = COPIES((const void *)table);
    return EACH_WITH(b64, look_up, x, copies);
}

V16_VALUE REG spread(REG v, const int group)
{
    REG four = MM(srlv_epi32)(v, MM(set1_epi32)(4 * group));
    four = AND(four, MM(set1_epi32)(15));
    four = MM(mullo_epi32)(four, MM(set1_epi32)(0x02040810));
    return AND(four, MM(set1_epi32)(0x10101010));
}

/* Copies bits 4 group..4 group + 3 of each lane to bit 4 of the lane's four bytes. */
V16_VALUE struct b64 b64_spread(struct s16 x, const int group)
{
    return EACH_WITH(b64, spread, x, group);
}

V16 struct s16 s16_load(const void *p)
{
    return EACH_AT(s16, LOAD, p, sizeof(REG));
}

V16_VALUE struct s16 s16_set(int32_t x)
{
    return EACH_SAME(s16, MM(set1_epi32)(x));
}

V16_VALUE struct s16 s16_add(struct s16 x, struct s16 y)
{
    return EACH_TWO(s16, MM(add_epi32), x, y);
}

V16_VALUE struct s16 s16_times_256(struct s16 x)
{
    return EACH_WITH(s16, MM(slli_epi32), x, 8);
}

V16_VALUE struct s16 s16_and(struct s16 x, uint32_t mask)
{
    return EACH_WITH(s16, AND, x, MM(set1_epi32)((int)mask));
}

V16_VALUE struct s16 s16_or(struct s16 x, struct s16 y)
{
    return EACH_TWO(s16, OR, x, y);
}

V16_VALUE struct s16 s16_shift_right(struct s16 x, const int n)
{
    return EACH_WITH(s16, MM(srlv_epi32), x, MM(set1_epi32)(n));
}

V16_VALUE REG signed_byte(REG v, const int k)
{
    const REG high = MM(sllv_epi32)(v, MM(set1_epi32)(24 - 8 * k));
    return MM(srav_epi32)(high, MM(set1_epi32)(24));
}

/* Returns byte k of each lane as a signed integer. */
V16_VALUE struct s16 s16_signed_byte(struct s16 x, const int k)
{
    return EACH_WITH(s16, signed_byte, x, k);
}

V16_VALUE struct v16 s16_to_float(struct s16 x)
{
    return EACH(v16, MM(cvtepi32_ps), x);
}

V16 FLOATS half_powers(const void *p)
{
    const REG e = MM(cvtepu8_epi32)(LOAD_BYTES(p)), one = MM(set1_epi32)(1);
    const REG low = MM(sllv_epi32)(MM(set1_epi32)(0x200000), MM(min_epu32)(e, one));
    return AS_FLOATS(MM(max_epi32)(MM(slli_epi32)(MM(sub_epi32)(e, one), 23), low));
}

/* Returns 2^(e - 128) for sixteen bytes e; see half_scale() in kernels/dtype.c. */
V16 struct v16 v16_load_half_powers(const void *p)
{
    return EACH_AT(v16, half_powers, p, 8);
}

#ifdef ESP_VNNI

#if ESP_SIMD == 3
#define DPBUSD _mm512_dpbusd_epi32
#else
#define DPBUSD _mm256_dpbusd_avx_epi32
#endif

/* Loads four activations into every lane, because they are the same for all outputs. */
V16 struct s16 s16_columns(const struct esp_cut *x, int at)
{
    int32_t four;
    memcpy(&four, (const char *)x->x + 4 * at, sizeof four);
    return s16_set(four);
}

V16_VALUE struct s16 add_products(struct s16 sum, struct b64 w, struct s16 columns)
{
    return EACH_THREE(s16, DPBUSD, sum, w, columns);
}

V16 void s16_dots(struct s16 sum[][HALVES], const struct b64 w[HALVES][GROUPS], const int from,
                  const int to, const struct esp_cut *x, const int rows)
{
    struct s16 high[ESP_ROWS][HALVES];
    UNROLL for (int r = 0; r < rows; r++) for (int half = 0; half < HALVES; half++)
        high[r][half] = s16_set(0);
    UNROLL for (int g = from; g < to; g++)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const struct s16 a = s16_columns(x + r, g), b = s16_columns(x + r, GROUPS + g);
            UNROLL for (int half = 0; half < HALVES; half++)
            {
                high[r][half] = add_products(high[r][half], w[half][g], a);
                sum[r][half] = add_products(sum[r][half], w[half][g], b);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) for (int half = 0; half < HALVES; half++)
        sum[r][half] = s16_add(s16_times_256(high[r][half]), sum[r][half]);
}

V16 void s8_dots(struct s16 sum[][HALVES], const struct b64 w[HALVES][GROUPS], const int from,
                 const int to, const struct esp_cut *x, const int rows, const bool narrow)
{
    (void)narrow;
    UNROLL for (int g = from; g < to; g++)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const struct s16 a = s16_columns(esp_cut_skip(x, (size_t)r, true), g);
            UNROLL for (int half = 0; half < HALVES; half++) sum[r][half] =
                add_products(sum[r][half], w[half][g], a);
        }
    }
}

#else

V16_VALUE REG dot_8(REG w, REG x, const bool narrow)
{
    if (narrow)
        return MM(madd_epi16)(MM(maddubs_epi16)(w, x), MM(set1_epi16)(1));
    const REG even = MM(srai_epi16)(MM(slli_epi16)(x, 8), 8);
    const REG a = MM(madd_epi16)(AND(w, MM(set1_epi16)(255)), even);
    const REG b = MM(madd_epi16)(MM(srli_epi16)(w, 8), MM(srai_epi16)(x, 8));
    return MM(add_epi32)(a, b);
}

V16 struct s16 s8_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                      const struct esp_cut *x, const bool narrow)
{
    struct s16 sum = before;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t four;
        memcpy(&four, (const int8_t *)x->x + 4 * g, sizeof four);
        const REG columns = MM(set1_epi32)(four);
        sum = s16_add(sum, EACH_WITH(s16, dot_8, w[g], columns, narrow));
    }
    return sum;
}

/* Multiplies the two even columns of a group of four, and adds the products. dot_odd() does the
 * same for the two odd columns. */
V16_VALUE REG dot_even(REG w, REG x)
{
    return MM(madd_epi16)(AND(w, MM(set1_epi16)(255)), x);
}

V16_VALUE REG dot_odd(REG w, REG x)
{
    return MM(madd_epi16)(MM(srli_epi16)(w, 8), x);
}

V16 struct s16 s16_dot(struct s16 before, const struct b64 *w, const int from, const int to,
                       const struct esp_cut *x)
{
    struct s16 sum = before;
    UNROLL for (int g = from; g < to; g++)
    {
        int32_t first, second;
        memcpy(&first, x->x + 4 * g, sizeof first);
        memcpy(&second, x->x + 4 * g + 2, sizeof second);
        const REG even = MM(set1_epi32)(first), odd = MM(set1_epi32)(second);
        const struct s16 a = EACH_WITH(s16, dot_even, w[g], even);
        const struct s16 b = EACH_WITH(s16, dot_odd, w[g], odd);
        sum = ESP_SIMD == 3 ? s16_add(sum, s16_add(a, b)) : s16_add(s16_add(sum, a), b);
    }
    return sum;
}

#endif

#elif ESP_SIMD == 1

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

V16_VALUE struct b64 b64_from_signed(struct b64 a)
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

#if defined ESP_VNNI || defined ESP_AMX || defined ESP_DOTPROD

/* Splits each integer x into two signed bytes, x = 256 high + low. Stores all high bytes, then
 * all low bytes. */
V16 void s16_store_block(void *to, const int16_t x[ESP_CUT_COLUMNS])
{
    int8_t *high = to, *low = high + ESP_CUT_COLUMNS;
    for (int i = 0; i < ESP_CUT_COLUMNS; i++) {
        high[i] = (int8_t)((x[i] + 128) >> 8);
        low[i] = (int8_t)x[i];
    }
}

#elif ESP_SIMD == 1 || ESP_SIMD == 4

V16 void s16_store_block(void *to, const int16_t x[ESP_CUT_COLUMNS])
{
    memcpy(to, x, ESP_CUT_COLUMNS * sizeof *x);
}

#else

/* Stores the two even columns of each group of four, then the two odd columns, because vpmaddwd
 * adds the products of adjacent numbers. */
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

#if !defined ESP_VNNI && ESP_SIMD != 4

V16 void s16_dots(struct s16 sum[][HALVES], const struct b64 w[HALVES][GROUPS], const int from,
                  const int to, const struct esp_cut *x, const int rows)
{
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < HALVES; half++)
            sum[r][half] = s16_dot(sum[r][half], w[half], from, to, x + r);
}

V16 void s8_dots(struct s16 sum[][HALVES], const struct b64 w[HALVES][GROUPS], const int from,
                 const int to, const struct esp_cut *x, const int rows, const bool narrow)
{
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < HALVES; half++)
            sum[r][half] = s8_dot(sum[r][half], w[half], from, to,
                                  esp_cut_skip(x, (size_t)r, true), narrow);
}

#endif

#if ESP_SIMD != 4

/* Returns byte k of each lane as a float. */
V16_VALUE struct v16 s16_byte_to_float(struct s16 a, const int k)
{
    return s16_to_float(s16_and(s16_shift_right(a, 8 * k), 255));
}

#endif
#endif
