/* simd.h - operations on sixteen floats, with bit-identical results on every instruction set.
 *
 * `struct v16` is one AVX-512 register, two AVX2 registers, four ARM registers (simd_neon.h)
 * or a plain array. ESP_ISA selects one of these forms; the Makefile sets ESP_ISA, once per
 * build of kernels/cpu/isa. Every operation is one IEEE operation per lane, v16_fma rounds
 * once, and v16_sum adds in a fixed order. So code that uses these operations gives
 * bit-identical results everywhere. Tests compare the register versions with the plain array.
 *
 * In lanes where an argument is NaN, v16_max and v16_min return their second argument, as x86
 * does. The mask of v16_not_at_most(a, b) selects the lanes where a > b or an argument is NaN.
 */
#ifndef ESP_CPU_SIMD_H
#define ESP_CPU_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ESP_PASTE2(a, b) a##b
#define ESP_PASTE(a, b) ESP_PASTE2(a, b)
#define ESP_SIMD_generic 1
#define ESP_SIMD_avx2 2
#define ESP_SIMD_avx512 3
#define ESP_SIMD_vnni 3    /* with ESP_VNNI */
#define ESP_SIMD_amx 3     /* with ESP_VNNI and ESP_AMX */
#define ESP_SIMD_avxvnni 2 /* with ESP_VNNI */
#define ESP_SIMD_tiles 2   /* with ESP_AMX and emulated tiles */
#define ESP_SIMD_dpbusd 2  /* like avxvnni, but its instruction is emulated */
#define ESP_SIMD_neon 4
#define ESP_SIMD_dotprod 4 /* with ESP_DOTPROD */
#define ESP_SIMD_i8mm 4    /* with ESP_DOTPROD and ESP_I8MM */
#define ESP_SIMD ESP_PASTE(ESP_SIMD_, ESP_ISA)

/* Functions marked V16 or V16_VALUE are always inlined, for speed. There is one exception: V16
 * functions, which read and write memory, are not inlined in builds with the address sanitizer,
 * because compiling the sanitizer's checks would take minutes. V16_VALUE functions have no
 * pointers, so the sanitizer adds no checks to them. */
#define V16_VALUE static inline __attribute__((always_inline))
#ifdef __SANITIZE_ADDRESS__
#define V16 static __attribute__((noinline, unused))
#else
#define V16 V16_VALUE
#endif

#define V16_ROUND 0x1.8p23f /* adding this rounds a float below 2^22 to an integer */

/* Operations that are the same on AVX-512 and AVX2 are written once, for all registers of a
 * vector. EACH applies f to each register of x. EACH_TWO and EACH_THREE apply f to registers
 * of two and three vectors. EACH_WITH gives f additional arguments. EACH_AT calls f for p and
 * the following addresses, which are `bytes` bytes apart. MM(name) is an intrinsic; REG and
 * FLOATS are the types of a register of integers and of floats. */
// clang-format off
#if ESP_SIMD == 3
#include <immintrin.h>
#define REG __m512i
#define FLOATS __m512
#define MM(name) _mm512_##name
#define EACH(type, f, x) ((struct type){f((x).v)})
#define EACH_TWO(type, f, x, y) ((struct type){f((x).v, (y).v)})
#define EACH_THREE(type, f, x, y, z) ((struct type){f((x).v, (y).v, (z).v)})
#define EACH_WITH(type, f, x, ...) ((struct type){f((x).v, __VA_ARGS__)})
#define EACH_AT(type, f, p, bytes) ((struct type){f((const void *)(p))})
#define EACH_SAME(type, value) ((struct type){value})
#elif ESP_SIMD == 2
#include <immintrin.h>
#define REG __m256i
#define FLOATS __m256
#define MM(name) _mm256_##name
#define EACH(type, f, x) ((struct type){f((x).a), f((x).b)})
#define EACH_TWO(type, f, x, y) ((struct type){f((x).a, (y).a), f((x).b, (y).b)})
#define EACH_THREE(type, f, x, y, z) \
    ((struct type){f((x).a, (y).a, (z).a), f((x).b, (y).b, (z).b)})
#define EACH_WITH(type, f, x, ...) ((struct type){f((x).a, __VA_ARGS__), f((x).b, __VA_ARGS__)})
#define EACH_AT(type, f, p, bytes) \
    ((struct type){f((const void *)(p)), f((const void *)((const char *)(p) + (bytes)))})
#define EACH_SAME(type, value) ((struct type){value, value})
#endif
// clang-format on

#if ESP_SIMD == 3

struct v16 {
    FLOATS v;
};

#define LOAD_HALVES _mm256_loadu_si256

#define V16_COMPARE(name, predicate)                                                           \
    V16_VALUE unsigned name(struct v16 a, struct v16 b)                                        \
    {                                                                                          \
        return _mm512_cmp_ps_mask(a.v, b.v, predicate);                                        \
    }

V16_VALUE FLOATS abs_of(FLOATS x)
{
    return _mm512_abs_ps(x);
}

V16 void v16_store(float *p, struct v16 a)
{
    _mm512_storeu_ps(p, a.v);
}

V16 struct v16 v16_load_part(const float *p, int n, float fill)
{
    return (struct v16){
        _mm512_mask_loadu_ps(_mm512_set1_ps(fill), (__mmask16)((1u << n) - 1), p)};
}

V16 void v16_store_part(float *p, int n, struct v16 a)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a.v);
}

V16_VALUE struct v16 v16_where_less(struct v16 a, struct v16 b, struct v16 yes, struct v16 no)
{
    return (struct v16){
        _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}

V16_VALUE struct v16 v16_scale(struct v16 a, struct v16 n)
{
    return (struct v16){_mm512_scalef_ps(a.v, _mm512_sub_ps(n.v, _mm512_set1_ps(V16_ROUND)))};
}

V16 void v16_load_bf16_pair(const uint32_t *p, struct v16 *low, struct v16 *high)
{
    __m512i w = _mm512_loadu_si512(p);
    low->v = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
    high->v = _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000u)));
}

V16_VALUE float v16_sum(struct v16 a)
{
    __m256 high = _mm512_extractf32x8_ps(a.v, 1);
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#elif ESP_SIMD == 2

struct v16 {
    FLOATS a, b; /* lanes 0-7, 8-15 */
};

#define LOAD_HALVES _mm_loadu_si128

#define V16_COMPARE(name, predicate)                                                           \
    V16_VALUE unsigned name(struct v16 x, struct v16 y)                                        \
    {                                                                                          \
        unsigned low = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, predicate));       \
        return low | (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, predicate)) << 8;    \
    }

V16_VALUE FLOATS abs_of(FLOATS x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

V16 void v16_store(float *p, struct v16 x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

V16 struct v16 v16_load_part(const float *p, int n, float fill)
{
    float lanes[16];
    for (int i = 0; i < 16; i++)
        lanes[i] = fill;
    memcpy(lanes, p, (size_t)n * sizeof *p);
    return EACH_AT(v16, _mm256_loadu_ps, lanes, 32);
}

V16 void v16_store_part(float *p, int n, struct v16 x)
{
    float lanes[16];
    v16_store(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof *p);
}

V16_VALUE struct v16 v16_where_less(struct v16 x, struct v16 y, struct v16 yes, struct v16 no)
{
    return (struct v16){
        _mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
        _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)),
    };
}

V16_VALUE __m256 v8_scale(__m256 x, __m256 n)
{
    __m256i bias = _mm256_set1_epi32(127);
    __m256i i = _mm256_sub_epi32(_mm256_castps_si256(n), _mm256_set1_epi32(0x4b400000));
    __m256i half = _mm256_srai_epi32(i, 1), rest = _mm256_sub_epi32(i, half);
    half = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    rest = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(half)),
                         _mm256_castsi256_ps(rest));
}

V16_VALUE struct v16 v16_scale(struct v16 x, struct v16 n)
{
    return EACH_TWO(v16, v8_scale, x, n);
}

V16 void v16_load_bf16_pair(const uint32_t *p, struct v16 *low, struct v16 *high)
{
    __m256i a = _mm256_loadu_si256((const void *)p);
    __m256i b = _mm256_loadu_si256((const void *)(p + 8));
    __m256i mask = _mm256_set1_epi32((int)0xffff0000u);
    low->a = _mm256_castsi256_ps(_mm256_slli_epi32(a, 16));
    low->b = _mm256_castsi256_ps(_mm256_slli_epi32(b, 16));
    high->a = _mm256_castsi256_ps(_mm256_and_si256(a, mask));
    high->b = _mm256_castsi256_ps(_mm256_and_si256(b, mask));
}

V16_VALUE float v16_sum(struct v16 x)
{
    __m256 eight = _mm256_add_ps(x.a, x.b);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#elif ESP_SIMD == 4

#include "kernels/cpu/simd_neon.h"

#else

struct v16 {
    float f[16];
};

#define V16_LANES(expression)                                                                  \
    do {                                                                                       \
        struct v16 out;                                                                        \
        for (int i = 0; i < 16; i++)                                                           \
            out.f[i] = (expression);                                                           \
        return out;                                                                            \
    } while (0)
#define V16_BINARY(name, expression)                                                           \
    V16_VALUE struct v16 name(struct v16 a, struct v16 b)                                      \
    {                                                                                          \
        V16_LANES(expression);                                                                 \
    }
V16_BINARY(v16_add, a.f[i] + b.f[i])
V16_BINARY(v16_sub, a.f[i] - b.f[i])
V16_BINARY(v16_mul, a.f[i] * b.f[i])
V16_BINARY(v16_div, a.f[i] / b.f[i])
V16_BINARY(v16_max, a.f[i] > b.f[i] ? a.f[i] : b.f[i])
V16_BINARY(v16_min, a.f[i] < b.f[i] ? a.f[i] : b.f[i])

V16_VALUE struct v16 v16_set(float a)
{
    V16_LANES(a);
}

V16_VALUE struct v16 v16_abs(struct v16 a)
{
    V16_LANES(fabsf(a.f[i]));
}

V16_VALUE struct v16 v16_fma(struct v16 a, struct v16 b, struct v16 c)
{
    V16_LANES(fmaf(a.f[i], b.f[i], c.f[i]));
}

V16 struct v16 v16_load(const float *p)
{
    V16_LANES(p[i]);
}

V16 void v16_store(float *p, struct v16 a)
{
    memcpy(p, a.f, sizeof a.f);
}

V16 struct v16 v16_load_part(const float *p, int n, float fill)
{
    V16_LANES(i < n ? p[i] : fill);
}

V16 void v16_store_part(float *p, int n, struct v16 a)
{
    memcpy(p, a.f, (size_t)n * sizeof *p);
}

#define V16_COMPARE(name, expression)                                                          \
    V16_VALUE unsigned name(struct v16 a, struct v16 b)                                        \
    {                                                                                          \
        unsigned mask = 0;                                                                     \
        for (int i = 0; i < 16; i++)                                                           \
            mask |= (unsigned)(expression) << i;                                               \
        return mask;                                                                           \
    }
V16_COMPARE(v16_greater, a.f[i] > b.f[i])
V16_COMPARE(v16_not_at_most, !(a.f[i] <= b.f[i]))
V16_COMPARE(v16_equal, a.f[i] == b.f[i])

V16_VALUE struct v16 v16_where_less(struct v16 a, struct v16 b, struct v16 yes, struct v16 no)
{
    V16_LANES(a.f[i] < b.f[i] ? yes.f[i] : no.f[i]);
}

V16_VALUE float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

V16_VALUE struct v16 v16_scale(struct v16 a, struct v16 n)
{
    struct v16 out;
    for (int i = 0; i < 16; i++) {
        uint32_t bits;
        memcpy(&bits, &n.f[i], sizeof bits);
        uint32_t power = bits - 0x4b400000u;
        uint32_t half = power >> 1 | (power & 0x80000000u), rest = power - half;
        out.f[i] =
            a.f[i] * float_from_bits((half + 127) << 23) * float_from_bits((rest + 127) << 23);
    }
    return out;
}

V16 void v16_load_bf16_pair(const uint32_t *p, struct v16 *low, struct v16 *high)
{
    for (int i = 0; i < 16; i++) {
        low->f[i] = float_from_bits(p[i] << 16);
        high->f[i] = float_from_bits(p[i] & 0xffff0000u);
    }
}

/* Converts F16 numbers to floats. The exponent and fraction of the F16 number are moved to the
 * exponent and fraction of a float. This gives a value that is too small by a factor of 2^112.
 * Multiplying by 2^112 corrects this, also for subnormals. For infinity and NaN the largest
 * exponent is restored. */
V16 struct v16 v16_load_f16(const uint16_t *p)
{
    struct v16 out;
    for (int i = 0; i < 16; i++) {
        uint32_t sign = (uint32_t)(p[i] & 0x8000u) << 16, rest = p[i] & 0x7fffu;
        float size = float_from_bits(rest << 13) * 0x1p112f;
        if (rest >= 0x7c00u)
            size = float_from_bits(rest << 13 | 0x7f800000u);
        out.f[i] = sign ? -size : size;
    }
    return out;
}

V16_VALUE float v16_sum(struct v16 a)
{
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            a.f[i] += a.f[i + width];
    return a.f[0];
}

#endif

#if ESP_SIMD == 2 || ESP_SIMD == 3

#define V16_BINARY(name, f)                                                                    \
    V16_VALUE struct v16 name(struct v16 x, struct v16 y)                                      \
    {                                                                                          \
        return EACH_TWO(v16, f, x, y);                                                         \
    }
V16_BINARY(v16_add, MM(add_ps))
V16_BINARY(v16_sub, MM(sub_ps))
V16_BINARY(v16_mul, MM(mul_ps))
V16_BINARY(v16_div, MM(div_ps))
V16_BINARY(v16_max, MM(max_ps))
V16_BINARY(v16_min, MM(min_ps))
V16_COMPARE(v16_greater, _CMP_GT_OQ)
V16_COMPARE(v16_not_at_most, _CMP_NLE_UQ)
V16_COMPARE(v16_equal, _CMP_EQ_OQ)

V16_VALUE struct v16 v16_abs(struct v16 x)
{
    return EACH(v16, abs_of, x);
}

V16_VALUE struct v16 v16_set(float x)
{
    return EACH_SAME(v16, MM(set1_ps)(x));
}

V16_VALUE struct v16 v16_fma(struct v16 x, struct v16 y, struct v16 z)
{
    return EACH_THREE(v16, MM(fmadd_ps), x, y, z);
}

V16 struct v16 v16_load(const float *p)
{
    return EACH_AT(v16, MM(loadu_ps), p, sizeof(FLOATS));
}

V16 FLOATS load_halves(const void *p)
{
    return MM(cvtph_ps)(LOAD_HALVES(p));
}

V16 struct v16 v16_load_f16(const uint16_t *p)
{
    return EACH_AT(v16, load_halves, p, sizeof(FLOATS) / 2);
}

#endif

/* --------------------------------------------------------- the same on all instruction sets */

/* v16_scale(a, n + V16_ROUND) is a * 2^n for integers -126 <= n <= 128; NaN in a stays NaN. */

/* Rounds the first n lanes to BF16, stores them and returns the rounding errors. Rounds like
 * AVX-512 BF16: to nearest, ties to even; subnormals become 0. */
V16 struct v16 v16_store_bf16(uint16_t *p, int n, struct v16 a)
{
#ifdef __AVX512BF16__
    const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(a.v);
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16);
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), rounded);
    return (struct v16){_mm512_sub_ps(a.v, _mm512_castsi512_ps(bits))};
#else
    float lanes[16], taken[16];
    v16_store(lanes, a);
    for (int i = 0; i < 16; i++) {
        uint32_t bits;
        memcpy(&bits, &lanes[i], sizeof bits);
        if ((bits & 0x7fffffffu) > 0x7f800000u)
            bits |= 0x400000u;
        else if ((bits & 0x7f800000u) == 0)
            bits &= 0x80000000u;
        else
            bits += 0x7fffu + (bits >> 16 & 1);
        bits &= 0xffff0000u;
        memcpy(&taken[i], &bits, sizeof bits);
        if (i < n)
            p[i] = (uint16_t)(bits >> 16);
    }
    return v16_sub(a, v16_load(taken));
#endif
}

V16_VALUE float v16_highest(struct v16 a)
{
    float lanes[16];
    v16_store(lanes, a);
    float highest = lanes[0];
    for (int i = 1; i < 16; i++)
        highest = lanes[i] > highest ? lanes[i] : highest;
    return highest;
}

/* Returns e^x within 1 unit in the last place. Below e^-87 (1.6e-38) the result is 0, because
 * subnormal results take the processor a hundred times as long. Let x = n ln 2 + r with |r| <=
 * ln 2 / 2. Then e^r - 1 - r is r^2 times a polynomial, fitted for the least relative error. */
V16_VALUE struct v16 v16_exp(struct v16 x)
{
    const struct v16 least = v16_set(-87.0f), top = v16_set(89.0f);
    struct v16 y = v16_min(top, v16_max(least, x));
    struct v16 shifted = v16_fma(y, v16_set(0x1.715476p+0f), v16_set(V16_ROUND));
    struct v16 n = v16_sub(shifted, v16_set(V16_ROUND));
    struct v16 r = v16_fma(n, v16_set(-0x1.62e4p-1f), y);
    r = v16_fma(n, v16_set(-0x1.7f7d1cp-20f), r);
    struct v16 p = v16_set(0x1.6a4d5ap-10f);
    p = v16_fma(p, r, v16_set(0x1.12398ep-7f));
    p = v16_fma(p, r, v16_set(0x1.5558b0p-5f));
    p = v16_fma(p, r, v16_set(0x1.555492p-3f));
    p = v16_fma(p, r, v16_set(0x1.fffffcp-2f));
    p = v16_fma(p, v16_mul(r, r), r);
    p = v16_scale(v16_add(p, v16_set(1.0f)), shifted);
    return v16_where_less(x, least, v16_set(0.0f), p);
}

/* Returns the error function of x within 2 units in the last place. For |x| up to 1, it is
 * x + x A(x^2). For larger |x|, it is 1 - e^(-t B(t)) with the sign of x, where t = min(|x|,
 * 4). */
V16_VALUE struct v16 v16_erf(struct v16 x)
{
    struct v16 s = v16_mul(x, x), t = v16_min(v16_set(4.0f), v16_abs(x));
    struct v16 a = v16_set(7.806903158780187e-05f);
    a = v16_fma(a, s, v16_set(-0.0007997853099368513f));
    a = v16_fma(a, s, v16_set(0.005187162198126316f));
    a = v16_fma(a, s, v16_set(-0.026853347197175026f));
    a = v16_fma(a, s, v16_set(0.11283578723669052f));
    a = v16_fma(a, s, v16_set(-0.3761262595653534f));
    a = v16_fma(a, s, v16_set(0.12837916612625122f));
    struct v16 near = v16_fma(a, x, x);
    struct v16 b = v16_set(1.3958597264718264e-05f);
    b = v16_fma(b, t, v16_set(-0.0003505552012939006f));
    b = v16_fma(b, t, v16_set(0.003757333382964134f));
    b = v16_fma(b, t, v16_set(-0.02400977909564972f));
    b = v16_fma(b, t, v16_set(0.10653054714202881f));
    b = v16_fma(b, t, v16_set(0.6349697113037109f));
    b = v16_fma(b, t, v16_set(1.1286942958831787f));
    b = v16_mul(b, v16_sub(v16_set(0.0f), t));
    struct v16 far = v16_sub(v16_set(1.0f), v16_exp(b));
    far = v16_where_less(x, v16_set(0.0f), v16_sub(v16_set(0.0f), far), far);
    return v16_where_less(v16_abs(x), v16_set(1.0f), near, far);
}

#endif
