/* simd_neon.h - the operations of simd.h on 64-bit ARM. Sixteen floats take four registers.
 *
 * EACH applies f to each register of the vector x. EACH_TWO and EACH_THREE apply f to the
 * registers of two or three vectors. EACH_WITH and EACH_TWO_WITH give f additional arguments.
 * EACH_AT calls f with the addresses p, p + step, ...
 *
 * ARM's own maximum and minimum return NaN if an argument is NaN. v16_max and v16_min must
 * return their second argument in this case, so they compare and select instead.
 */
#ifndef ESP_CPU_SIMD_NEON_H
#define ESP_CPU_SIMD_NEON_H

#include <arm_neon.h>

struct v16 {
    float32x4_t a, b, c, d; /* lanes 0-3, 4-7, 8-11, 12-15 */
};

// clang-format off
#define EACH(type, f, x) ((struct type){f((x).a), f((x).b), f((x).c), f((x).d)})
#define EACH_TWO(type, f, x, y) \
    ((struct type){f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), f((x).d, (y).d)})
#define EACH_THREE(type, f, x, y, z) \
    ((struct type){f((x).a, (y).a, (z).a), f((x).b, (y).b, (z).b), \
                   f((x).c, (y).c, (z).c), f((x).d, (y).d, (z).d)})
#define EACH_WITH(type, f, x, ...) \
    ((struct type){f((x).a, __VA_ARGS__), f((x).b, __VA_ARGS__), \
                   f((x).c, __VA_ARGS__), f((x).d, __VA_ARGS__)})
#define EACH_TWO_WITH(type, f, x, y, ...) \
    ((struct type){f((x).a, (y).a, __VA_ARGS__), f((x).b, (y).b, __VA_ARGS__), \
                   f((x).c, (y).c, __VA_ARGS__), f((x).d, (y).d, __VA_ARGS__)})
#define EACH_AT(type, f, p, step) \
    ((struct type){f(p), f((p) + (step)), f((p) + 2 * (step)), f((p) + 3 * (step))})
#define EACH_SAME(type, value) ((struct type){value, value, value, value})
// clang-format on

#define V16_BINARY(name, f)                                                                    \
    V16_VALUE struct v16 name(struct v16 x, struct v16 y)                                      \
    {                                                                                          \
        return EACH_TWO(v16, f, x, y);                                                         \
    }

V16_VALUE float32x4_t larger(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}

V16_VALUE float32x4_t smaller(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}

V16_BINARY(v16_add, vaddq_f32)
V16_BINARY(v16_sub, vsubq_f32)
V16_BINARY(v16_mul, vmulq_f32)
V16_BINARY(v16_div, vdivq_f32)
V16_BINARY(v16_max, larger)
V16_BINARY(v16_min, smaller)

V16_VALUE struct v16 v16_set(float x)
{
    return EACH_SAME(v16, vdupq_n_f32(x));
}

V16_VALUE struct v16 v16_abs(struct v16 x)
{
    return EACH(v16, vabsq_f32, x);
}

V16_VALUE float32x4_t product_and(float32x4_t x, float32x4_t y, float32x4_t z)
{
    return vfmaq_f32(z, x, y);
}

V16_VALUE struct v16 v16_fma(struct v16 x, struct v16 y, struct v16 z)
{
    return EACH_THREE(v16, product_and, x, y, z);
}

V16 struct v16 v16_load(const float *p)
{
    return EACH_AT(v16, vld1q_f32, p, 4);
}

V16 void v16_store(float *p, struct v16 x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}

V16 struct v16 v16_load_part(const float *p, int n, float fill)
{
    float lanes[16];
    v16_store(lanes, v16_set(fill));
    memcpy(lanes, p, (size_t)n * sizeof *p);
    return v16_load(lanes);
}

V16 void v16_store_part(float *p, int n, struct v16 x)
{
    float lanes[16];
    v16_store(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof *p);
}

/* The result of a comparison: in each of the sixteen lanes, all bits are 1 or all are 0. */
struct v16_lanes {
    uint32x4_t a, b, c, d;
};

V16_VALUE uint16x8_t narrow_two(uint32x4_t x, uint32x4_t y)
{
    return vuzp1q_u16(vreinterpretq_u16_u32(x), vreinterpretq_u16_u32(y));
}

/* Returns a mask with one bit for each lane. */
V16_VALUE unsigned v16_mask(struct v16_lanes x)
{
    const uint8x16_t places = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t low = vreinterpretq_u8_u16(narrow_two(x.a, x.b));
    const uint8x16_t high = vreinterpretq_u8_u16(narrow_two(x.c, x.d));
    const uint8x16_t bits = vandq_u8(vuzp1q_u8(low, high), places);
    return vaddv_u8(vget_low_u8(bits)) | (unsigned)vaddv_u8(vget_high_u8(bits)) << 8;
}

V16_VALUE uint32x4_t not_at_most(float32x4_t x, float32x4_t y)
{
    return vmvnq_u32(vcleq_f32(x, y));
}

#define V16_COMPARE(name, f)                                                                   \
    V16_VALUE unsigned name(struct v16 x, struct v16 y)                                        \
    {                                                                                          \
        return v16_mask(EACH_TWO(v16_lanes, f, x, y));                                         \
    }
V16_COMPARE(v16_greater, vcgtq_f32)
V16_COMPARE(v16_not_at_most, not_at_most)
V16_COMPARE(v16_equal, vceqq_f32)

V16_VALUE struct v16 v16_where_less(struct v16 x, struct v16 y, struct v16 yes, struct v16 no)
{
    const struct v16_lanes less = EACH_TWO(v16_lanes, vcltq_f32, x, y);
    return EACH_THREE(v16, vbslq_f32, less, yes, no);
}

V16_VALUE float32x4_t power_of_two_in(int32x4_t exponent)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(exponent, vdupq_n_s32(127)), 23));
}

V16_VALUE float32x4_t scale_four(float32x4_t x, float32x4_t n)
{
    const int32x4_t power = vsubq_s32(vreinterpretq_s32_f32(n), vdupq_n_s32(0x4b400000));
    const int32x4_t half = vshrq_n_s32(power, 1), rest = vsubq_s32(power, half);
    return vmulq_f32(vmulq_f32(x, power_of_two_in(half)), power_of_two_in(rest));
}

V16_VALUE struct v16 v16_scale(struct v16 x, struct v16 n)
{
    return EACH_TWO(v16, scale_four, x, n);
}

V16_VALUE float32x4_t low_bf16(uint32x4_t x)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(x, 16));
}

V16_VALUE float32x4_t high_bf16(uint32x4_t x)
{
    return vreinterpretq_f32_u32(vandq_u32(x, vdupq_n_u32(0xffff0000u)));
}

V16 void v16_load_bf16_pair(const uint32_t *p, struct v16 *low, struct v16 *high)
{
    const struct v16_lanes w = EACH_AT(v16_lanes, vld1q_u32, p, 4);
    *low = EACH(v16, low_bf16, w);
    *high = EACH(v16, high_bf16, w);
}

V16 float32x4_t load_halves(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

V16 struct v16 v16_load_f16(const uint16_t *p)
{
    return EACH_AT(v16, load_halves, p, 4);
}

V16_VALUE float v16_sum(struct v16 x)
{
    const float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    return vaddv_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

#endif
