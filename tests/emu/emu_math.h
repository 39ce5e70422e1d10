/* emu_math.h - defines CUDA's device functions that need only one thread: maths, bits, memory.
 *
 * Functions with a rounding mode in their names give the same results as on a GPU. rsqrtf and
 * the approximate functions (__expf, ...) call the functions of the C library. A GPU's results
 * can differ in the last bits, so tests must not depend on these bits. The compiler does not
 * fuse multiplications with additions (-ffp-contract=off), and fmaf() is a true fused
 * multiply-add. Atomics are plain updates, because only one thread runs at a time.
 */
#ifndef EMU_MATH_H
#define EMU_MATH_H

#include <math.h>

#include "tests/emu/emu_types.h"

/* ------------------------------------------------------------------ maths */

#define EMU_MIN_MAX(T)                                                                         \
    static inline T min(T a, T b)                                                              \
    {                                                                                          \
        return b < a ? b : a;                                                                  \
    }                                                                                          \
    static inline T max(T a, T b)                                                              \
    {                                                                                          \
        return a < b ? b : a;                                                                  \
    }
EMU_MIN_MAX(int)
EMU_MIN_MAX(unsigned)
EMU_MIN_MAX(long)
EMU_MIN_MAX(unsigned long)
EMU_MIN_MAX(long long)
EMU_MIN_MAX(unsigned long long)
#undef EMU_MIN_MAX

static inline float min(float a, float b)
{
    return fminf(a, b);
}

static inline float max(float a, float b)
{
    return fmaxf(a, b);
}

static inline double min(double a, double b)
{
    return fmin(a, b);
}

static inline double max(double a, double b)
{
    return fmax(a, b);
}

/* These are macros, because the C library declares functions with these names. */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)

/* Each line defines a function: its result type, name, parameters and value. */
#define EMU_FUNCTION(type, name, parameters, value)                                            \
    static inline type name parameters                                                         \
    {                                                                                          \
        return value;                                                                          \
    }
EMU_FUNCTION(float, rsqrtf, (float x), (float)(1.0 / sqrt((double)x)))
EMU_FUNCTION(double, rsqrt, (double x), 1.0 / sqrt(x))
EMU_FUNCTION(float, __fdividef, (float x, float y), x / y)
EMU_FUNCTION(float, __saturatef, (float x), x > 0.0f ? fminf(x, 1.0f) : 0.0f)
EMU_FUNCTION(float, __fadd_rn, (float x, float y), x + y)
EMU_FUNCTION(float, __fsub_rn, (float x, float y), x - y)
EMU_FUNCTION(float, __fmul_rn, (float x, float y), x *y)
EMU_FUNCTION(float, __fdiv_rn, (float x, float y), x / y)
EMU_FUNCTION(float, __frcp_rn, (float x), 1.0f / x)
EMU_FUNCTION(float, __fsqrt_rn, (float x), sqrtf(x))
EMU_FUNCTION(float, __frsqrt_rn, (float x), (float)(1.0 / sqrt((double)x)))
EMU_FUNCTION(float, __fmaf_rn, (float x, float y, float z), fmaf(x, y, z))
EMU_FUNCTION(double, __dadd_rn, (double x, double y), x + y)
EMU_FUNCTION(double, __dsub_rn, (double x, double y), x - y)
EMU_FUNCTION(double, __dmul_rn, (double x, double y), x *y)
EMU_FUNCTION(double, __ddiv_rn, (double x, double y), x / y)
EMU_FUNCTION(double, __dsqrt_rn, (double x), sqrt(x))
EMU_FUNCTION(double, __fma_rn, (double x, double y, double z), fma(x, y, z))
EMU_FUNCTION(float, __double2float_rn, (double x), (float)x)
EMU_FUNCTION(float, __int2float_rn, (int x), (float)x)
EMU_FUNCTION(float, __uint2float_rn, (unsigned x), (float)x)
EMU_FUNCTION(double, __int2double_rn, (int x), (double)x)

/* ------------------------------------------------------------------ bits */

EMU_FUNCTION(int, __float_as_int, (float x), emu_bits_as<int>(x))
EMU_FUNCTION(unsigned, __float_as_uint, (float x), emu_bits_as<unsigned>(x))
EMU_FUNCTION(float, __int_as_float, (int x), emu_bits_as<float>(x))
EMU_FUNCTION(float, __uint_as_float, (unsigned x), emu_bits_as<float>(x))
EMU_FUNCTION(long long, __double_as_longlong, (double x), emu_bits_as<long long>(x))
EMU_FUNCTION(double, __longlong_as_double, (long long x), emu_bits_as<double>(x))
EMU_FUNCTION(int, __popc, (unsigned x), __builtin_popcount(x))
EMU_FUNCTION(int, __popcll, (unsigned long long x), __builtin_popcountll(x))
EMU_FUNCTION(int, __clz, (int x), x ? __builtin_clz((unsigned)x) : 32)
EMU_FUNCTION(int, __clzll, (long long x), x ? __builtin_clzll((unsigned long long)x) : 64)
EMU_FUNCTION(int, __ffs, (int x), __builtin_ffs(x))
EMU_FUNCTION(int, __ffsll, (long long x), __builtin_ffsll(x))
EMU_FUNCTION(unsigned, __umulhi, (unsigned x, unsigned y),
             (unsigned)((unsigned long long)x *y >> 32))
EMU_FUNCTION(unsigned long long, __umul64hi, (unsigned long long x, unsigned long long y),
             (unsigned long long)((unsigned __int128)x *y >> 64))
EMU_FUNCTION(unsigned, __funnelshift_l, (unsigned low, unsigned high, unsigned by),
             (unsigned)(((unsigned long long)high << 32 | low) << (by & 31) >> 32))
EMU_FUNCTION(unsigned, __funnelshift_r, (unsigned low, unsigned high, unsigned by),
             (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31)))
#undef EMU_FUNCTION

static inline unsigned __brev(unsigned x)
{
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}

static inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}

static inline int __dp4a(int a, int b, int sum)
{
    for (int i = 0; i < 4; i++)
        sum += (int8_t)((unsigned)a >> 8 * i & 255) * (int8_t)((unsigned)b >> 8 * i & 255);
    return sum;
}

/* Byte i of the result is byte (selector >> 4 i & 7) of high:low. */
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}

/* ------------------------------------------------------------------ memory */

#define EMU_LOAD(name)                                                                         \
    template <typename T> static inline T name(const T *address)                               \
    {                                                                                          \
        return *address;                                                                       \
    }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD

#define EMU_STORE(name)                                                                        \
    template <typename T> static inline void name(T *address, T value)                         \
    {                                                                                          \
        *address = value;                                                                      \
    }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

static inline void __threadfence()
{
}

static inline void __threadfence_block()
{
}

static inline void __threadfence_system()
{
}

/* ------------------------------------------------------------------ atomics */

#define EMU_ATOMIC(T, name, expression)                                                        \
    static inline T name(T *address, T value)                                                  \
    {                                                                                          \
        T old = *address;                                                                      \
        *address = (expression);                                                               \
        return old;                                                                            \
    }
#define EMU_ATOMIC_INTEGERS(T)                                                                 \
    EMU_ATOMIC(T, atomicMin, value < old ? value : old)                                        \
    EMU_ATOMIC(T, atomicMax, old < value ? value : old)                                        \
    EMU_ATOMIC(T, atomicAnd, old &value)                                                       \
    EMU_ATOMIC(T, atomicOr, old | value)                                                       \
    EMU_ATOMIC(T, atomicXor, old ^ value)
EMU_ATOMIC_INTEGERS(int)
EMU_ATOMIC_INTEGERS(unsigned)
EMU_ATOMIC_INTEGERS(unsigned long long)
EMU_ATOMIC(long long, atomicMin, value < old ? value : old)
EMU_ATOMIC(long long, atomicMax, old < value ? value : old)
EMU_ATOMIC(int, atomicAdd, (int)((unsigned)old + (unsigned)value))
EMU_ATOMIC(unsigned, atomicAdd, old + value)
EMU_ATOMIC(unsigned long long, atomicAdd, old + value)
EMU_ATOMIC(float, atomicAdd, old + value)
EMU_ATOMIC(double, atomicAdd, old + value)
EMU_ATOMIC(int, atomicSub, (int)((unsigned)old - (unsigned)value))
EMU_ATOMIC(unsigned, atomicSub, old - value)
EMU_ATOMIC(unsigned, atomicInc, old >= value ? 0 : old + 1)
EMU_ATOMIC(int, atomicExch, value)
EMU_ATOMIC(unsigned, atomicExch, value)
EMU_ATOMIC(unsigned long long, atomicExch, value)
EMU_ATOMIC(float, atomicExch, value)
#undef EMU_ATOMIC_INTEGERS
#undef EMU_ATOMIC

template <typename T> static inline T atomicCAS(T *address, T compare, T value)
{
    static_assert(!__is_enum(T) && (sizeof(T) == 4 || sizeof(T) == 8), "a word");
    T old = *address;
    if (old == compare)
        *address = value;
    return old;
}

#endif
