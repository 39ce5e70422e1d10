/* dpbusd.h - emulates an instruction of AVX-VNNI (vpdpbusd in VEX encoding) with AVX2
 * instructions, for processors without AVX-VNNI. If ESP_EVEX is defined, the header uses the
 * same instruction in the encoding of AVX-512 VNNI. This encoding is equally fast, so the speed
 * of AVX-VNNI can be measured on processors that have only AVX-512 VNNI.
 *
 * For each 32-bit lane, the instruction multiplies the four unsigned bytes in `u` by the four
 * signed bytes in `s`, and adds the four products to `sum` ("Intel 64 and IA-32 Architectures
 * Software Developer's Manual").
 */
#ifndef TEST_DPBUSD_H
#define TEST_DPBUSD_H

#include <immintrin.h>

#define _mm256_dpbusd_avx_epi32 emulated_dpbusd

static inline __attribute__((always_inline)) __m256i emulated_dpbusd(__m256i sum, __m256i u,
                                                                     __m256i s)
{
#ifdef ESP_EVEX
    __asm__("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(u), "xm"(s));
    return sum;
#else
    const __m256i low = _mm256_set1_epi16(255);
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, low),
                                           _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
#endif
}

#endif
