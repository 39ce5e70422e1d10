/* emu_types.h - defines types and keywords of CUDA C++ for a plain C++ compiler: qualifiers,
 * vector types, and the 16-bit floats.
 *
 * Vector types have the same alignment as in CUDA. So the sanitizer reports a misaligned
 * access, which would be a fault on a GPU. The 16-bit floats can only be converted by named
 * functions (__float2bfloat16, ...). With implicit conversions, a plain compiler would compute
 * in 32 bits what CUDA computes in 16 bits. As on a GPU, conversions round to nearest, ties to
 * even. They do not replace subnormal numbers by 0, and NaN becomes 0x7fff.
 */
#ifndef EMU_TYPES_H
#define EMU_TYPES_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ /* empty, because system headers use this word inside an attribute */
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

/* ------------------------------------------------------------------ vectors */

#define EMU_VECTORS(T, name, align1, align2, align4)                                           \
    struct alignas(align1) name##1                                                             \
    {                                                                                          \
        T x;                                                                                   \
    };                                                                                         \
    struct alignas(align2) name##2                                                             \
    {                                                                                          \
        T x, y;                                                                                \
    };                                                                                         \
    struct name##3                                                                             \
    {                                                                                          \
        T x, y, z;                                                                             \
    };                                                                                         \
    struct alignas(align4) name##4                                                             \
    {                                                                                          \
        T x, y, z, w;                                                                          \
    };                                                                                         \
    static inline name##1 make_##name##1(T x)                                                  \
    {                                                                                          \
        return name##1 {x};                                                                    \
    }                                                                                          \
    static inline name##2 make_##name##2(T x, T y)                                             \
    {                                                                                          \
        return name##2 {x, y};                                                                 \
    }                                                                                          \
    static inline name##3 make_##name##3(T x, T y, T z)                                        \
    {                                                                                          \
        return name##3 {x, y, z};                                                              \
    }                                                                                          \
    static inline name##4 make_##name##4(T x, T y, T z, T w)                                   \
    {                                                                                          \
        return name##4 {x, y, z, w};                                                           \
    }

EMU_VECTORS(signed char, char, 1, 2, 4)
EMU_VECTORS(unsigned char, uchar, 1, 2, 4)
EMU_VECTORS(short, short, 2, 4, 8)
EMU_VECTORS(unsigned short, ushort, 2, 4, 8)
EMU_VECTORS(int, int, 4, 8, 16)
EMU_VECTORS(unsigned, uint, 4, 8, 16)
EMU_VECTORS(long long, longlong, 8, 16, 16)
EMU_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
EMU_VECTORS(float, float, 4, 8, 16)
EMU_VECTORS(double, double, 8, 16, 16)
#undef EMU_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width), y(height), z(depth)
    {
    }
};

/* ------------------------------------------------------------------ 16-bit floats */

struct __nv_bfloat16 {
    uint16_t emu_bits;
};
struct __half {
    uint16_t emu_bits;
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
struct alignas(4) __half2 {
    __half x, y;
};

template <typename To, typename From> static inline To emu_bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "both types have the same size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return emu_bits_as<float>((uint32_t)x.emu_bits << 16);
}

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    uint32_t bits = emu_bits_as<uint32_t>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return __nv_bfloat16{0x7fff};
    return __nv_bfloat16{(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}

static inline float __half2float(__half x)
{
    uint32_t sign = (uint32_t)(x.emu_bits & 0x8000) << 16, magnitude = x.emu_bits & 0x7fffu;
    if (magnitude >= 0x7c00u) /* infinity or NaN */
        return emu_bits_as<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u)
        return emu_bits_as<float>(sign | ((magnitude << 13) + 0x38000000u));
    float subnormal = (float)magnitude * 0x1p-24f;
    return sign ? -subnormal : subnormal;
}

static inline __half __float2half(float x)
{
    uint32_t bits = emu_bits_as<uint32_t>(x), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu, result;
    if (magnitude > 0x7f800000u)
        return __half{0x7fff};
    if (magnitude >= 0x477ff000u) { /* too large: rounds to infinity */
        result = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {
        result = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    } else { /* subnormal: x + 1/2 is rounded, ties to even, to a multiple of 2^-24 */
        float shifted = emu_bits_as<float>(magnitude) + 0.5f;
        result = emu_bits_as<uint32_t>(shifted) - 0x3f000000u;
    }
    return __half{(uint16_t)(sign | result)};
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return __float2bfloat16(x);
}

static inline __half __float2half_rn(float x)
{
    return __float2half(x);
}

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.emu_bits;
}

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x)
{
    return __nv_bfloat16{x};
}

static inline unsigned short __half_as_ushort(__half x)
{
    return x.emu_bits;
}

static inline __half __ushort_as_half(unsigned short x)
{
    return __half{x};
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162{__float2bfloat16(x), __float2bfloat16(y)};
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return __half2{__float2half(x), __float2half(y)};
}

static inline __nv_bfloat162 __float22bfloat162_rn(float2 x)
{
    return __floats2bfloat162_rn(x.x, x.y);
}

static inline __half2 __float22half2_rn(float2 x)
{
    return __floats2half2_rn(x.x, x.y);
}

static inline float2 __bfloat1622float2(__nv_bfloat162 x)
{
    return float2{__bfloat162float(x.x), __bfloat162float(x.y)};
}

static inline float2 __half22float2(__half2 x)
{
    return float2{__half2float(x.x), __half2float(x.y)};
}

#endif
