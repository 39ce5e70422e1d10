/* emu_values.cpp - tests the emulator's arithmetic: 16-bit floats, bits, atomics, and tensor
 * core products.
 */
#include "tests/emu/unit/emu_test.h"

#include <cmath>

/* ------------------------------------------------------------------ 16-bit floats */

/* Returns the value of a float with these bits, by the definition of its format. */
static double meaning(unsigned bits, int exponent_bits, int mantissa_bits)
{
    int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    int bias = (1 << (exponent_bits - 1)) - 1;
    double mantissa = (double)(bits & ((1u << mantissa_bits) - 1));
    double sign = bits >> (exponent_bits + mantissa_bits) ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1)
        return mantissa != 0.0 ? NAN : sign * INFINITY;
    double leading = exponent ? ldexp(1.0, mantissa_bits) : 0.0;
    return sign * ldexp(leading + mantissa, (exponent ? exponent : 1) - bias - mantissa_bits);
}

TEST(every_16_bit_float_widens_exactly)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float wide[2] = {__half2float(__half{(uint16_t)bits}),
                         __bfloat162float(__nv_bfloat16{(uint16_t)bits})};
        double want[2] = {meaning(bits, 5, 10), meaning(bits, 8, 7)};
        for (int kind = 0; kind < 2; kind++)
            CHECK(std::isnan(want[kind]) ? std::isnan(wide[kind])
                                         : (double)wide[kind] == want[kind],
                  "%04x widens to %g, not %g", bits, wide[kind], want[kind]);
    }
}

/* Returns whether x rounds to the float with these bits: no other float is nearer, and if
 * another float is equally near, the last of these bits is 0. */
static bool is_nearest(double x, unsigned bits, int exponent_bits, int mantissa_bits)
{
    double infinite =
        ldexp(2.0 - ldexp(1.0, -mantissa_bits - 1), (1 << (exponent_bits - 1)) - 1);
    double got = meaning(bits, exponent_bits, mantissa_bits);
    if (std::signbit(x) != std::signbit(got))
        return false;
    if (fabs(x) >= infinite)
        return std::isinf(got);
    if (std::isinf(got))
        return false;
    double off = fabs(got - x);
    for (int step = -1; step <= 1; step += 2) {
        unsigned magnitude = bits & 0x7fff;
        if (magnitude == 0 && step < 0)
            continue;
        double other = meaning((bits & 0x8000) | (magnitude + (unsigned)step), exponent_bits,
                               mantissa_bits);
        double other_off = fabs(other - x);
        if (other_off < off || (other_off == off && bits & 1))
            return false;
    }
    return true;
}

TEST(floats_round_to_the_nearest_even)
{
    unsigned long long state = 1;
    const int count = check_quick() ? 20000 : 400000;
    for (int i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(check_uniform(&state) * 4294967296.0);
        if (i % 2) /* values that are near a 16-bit float, or in the middle between two */
            bits =
                (0x33000000u + bits % 0x15000000u) & (i % 4 == 1 ? 0xfffff000u : 0xffff8000u);
        float x = emu_bits_as<float>(bits);
        unsigned half = __float2half(x).emu_bits, brain = __float2bfloat16(x).emu_bits;
        if (std::isnan(x)) {
            CHECK(half == 0x7fff && brain == 0x7fff, "%08x: %04x %04x", bits, half, brain);
            continue;
        }
        CHECK(is_nearest((double)x, half, 5, 10), "%a as half: %04x", (double)x, half);
        CHECK(is_nearest((double)x, brain, 8, 7), "%a as bfloat16: %04x", (double)x, brain);
    }
    __half2 pair = __floats2half2_rn(1.5f, -2.0f);
    float2 back = __half22float2(pair);
    CHECK(back.x == 1.5f && back.y == -2.0f, "%g %g", back.x, back.y);
}

/* ------------------------------------------------------------------ bits */

TEST(bit_functions_follow_their_definition)
{
    CHECK(__brev(1u) == 0x80000000u && __brev(0x12345678u) == 0x1e6a2c48u, "brev");
    CHECK(__brevll(1ull) == 1ull << 63, "brevll");
    CHECK(__clz(0) == 32 && __clz(1) == 31 && __clzll(0) == 64 && __clzll(-1) == 0, "clz");
    CHECK(__ffs(0) == 0 && __ffs(8) == 4 && __ffsll(1ll << 40) == 41, "ffs");
    CHECK(__popc(0xf0f0u) == 8 && __popcll(~0ull) == 64, "popc");
    CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7410u) == 0x77441100u, "byte_perm");
    CHECK(__funnelshift_l(0x80000000u, 1u, 1) == 3u, "funnelshift");
    CHECK(__umulhi(0x80000000u, 6u) == 3u && __umul64hi(1ull << 63, 6) == 3, "umulhi");
    CHECK(__float_as_int(-0.0f) == INT32_MIN && __int_as_float(0x3f800000) == 1.0f, "as");
}

/* ------------------------------------------------------------------ atomics */

static __global__ void count(int *integers, unsigned long long *wide, float *floats)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(&integers[0], i);
    atomicMax(&integers[1], i);
    atomicMin(&integers[2], -i);
    atomicOr(&integers[3], 1 << i % 16);
    atomicAnd(&integers[4], ~(1 << i % 16));
    atomicXor(&integers[5], i);
    if (atomicCAS(&integers[6], 0, i + 1) == 0)
        atomicExch(&integers[7], i + 1);
    atomicMax(wide, (unsigned long long)i << 33);
    atomicAdd(floats, 0.5f);
}

TEST(atomics_follow_their_definition)
{
    device_array<int> integers(std::vector<int>{0, 0, 0, 0, 0xffff, 0, 0, 0});
    device_array<unsigned long long> wide(std::vector<unsigned long long>{0});
    device_array<float> floats(std::vector<float>{0});
    ESP_LAUNCH(count, 4, 64, 0, nullptr, integers.data, wide.data, floats.data);
    std::vector<int> got = integers.read();
    CHECK(got[0] == 255 * 128 && got[1] == 255 && got[2] == -255, "%d %d %d", got[0], got[1],
          got[2]);
    CHECK(got[3] == 0xffff && got[4] == 0 && got[5] == 0, "%x %x %x", got[3], got[4], got[5]);
    CHECK(got[6] > 0 && got[6] == got[7], "%d %d", got[6], got[7]);
    CHECK(wide.read()[0] == 255ull << 33 && floats.read()[0] == 128.0f, "wide, floats");
}

/* ------------------------------------------------------------------ tensor cores */

/* Computes D (16, 8) = D + A (16, 16) B (16, 8). All are row-major in memory. */
template <typename T> static __global__ void product(const T *a, const T *b, float *d)
{
    int group = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4 * 2;
    auto pair = [](const T *low, const T *high) {
        T both[2] = {*low, *high};
        uint32_t word;
        memcpy(&word, both, sizeof word);
        return word;
    };
    auto row = [&](int i, int k) { return pair(&a[i * 16 + k], &a[i * 16 + k + 1]); };
    auto column = [&](int k) { return pair(&b[k * 8 + group], &b[(k + 1) * 8 + group]); };
    float sum[4];
    for (int i = 0; i < 4; i++)
        sum[i] = d[(group + i / 2 * 8) * 8 + t + i % 2];
    esp_mma(sum, row(group, t), row(group + 8, t), row(group, t + 8), row(group + 8, t + 8),
            column(t), column(t + 8), T());
    for (int i = 0; i < 4; i++)
        d[(group + i / 2 * 8) * 8 + t + i % 2] = sum[i];
}

template <typename T> static void check_product()
{
    unsigned long long state = 5;
    std::vector<T> a(256), b(128);
    std::vector<float> d(128);
    for (T &x : a)
        x = esp_from_float<T>((float)(2 * check_uniform(&state) - 1));
    for (T &x : b)
        x = esp_from_float<T>((float)(2 * check_uniform(&state) - 1));
    for (float &x : d)
        x = (float)(2 * check_uniform(&state) - 1);
    device_array<T> at(a), bt(b);
    device_array<float> dt(d);
    ESP_LAUNCH(product<T>, 1, 32, 0, nullptr, at.data, bt.data, dt.data);
    std::vector<float> got = dt.read();
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++) {
            double want = (double)d[i * 8 + j], size = fabs(want);
            for (size_t k = 0; k < 16; k++) {
                double term = (double)esp_to_float(a[i * 16 + k]) * esp_to_float(b[k * 8 + j]);
                want += term;
                size += fabs(term);
            }
            CHECK(fabs((double)got[i * 8 + j] - want) <= size * 17 * 0x1p-24,
                  "(%zu, %zu): %g, want %g", i, j, (double)got[i * 8 + j], want);
        }
}

TEST(tensor_core_products_agree_with_double)
{
    check_product<esp_bf16>();
    check_product<esp_f16>();
}

/* Computes D (16, 8) = A (16, 32) B (32, 8) + c with signed bytes. If `half` is set, uses only
 * the first 16 columns of A and the first 16 rows of B. In memory, A and D are row-major, and B
 * is column-major. */
static __global__ void byte_product(const int8_t *a, const int8_t *b, int *d, bool half, int c)
{
    int group = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    auto word = [](const int8_t *from) {
        uint32_t four;
        memcpy(&four, from, sizeof four);
        return four;
    };
    auto row = [&](int i, int k) { return word(&a[i * 32 + k]); };
    int sum[4];
    if (half)
        esp_mma_s8_half(sum, row(group, 4 * t), row(group + 8, 4 * t),
                        word(&b[group * 32 + 4 * t]), c);
    else
        esp_mma_s8(sum, row(group, 4 * t), row(group + 8, 4 * t), row(group, 4 * t + 16),
                   row(group + 8, 4 * t + 16), word(&b[group * 32 + 4 * t]),
                   word(&b[group * 32 + 4 * t + 16]), c);
    for (int i = 0; i < 4; i++)
        d[(group + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

TEST(tensor_core_products_of_bytes_are_exact)
{
    unsigned long long state = 6;
    std::vector<int8_t> a(512), b(256);
    std::vector<int> d(128);
    for (int8_t &x : a)
        x = (int8_t)(256 * check_uniform(&state) - 128);
    for (int8_t &x : b)
        x = (int8_t)(256 * check_uniform(&state) - 128);
    device_array<int8_t> at(a), bt(b);
    for (size_t columns = 32; columns >= 16; columns -= 16) {
        device_array<int> dt(d);
        ESP_LAUNCH(byte_product, 1, 32, 0, nullptr, at.data, bt.data, dt.data, columns == 16,
                   1000);
        std::vector<int> got = dt.read();
        for (size_t i = 0; i < 16; i++)
            for (size_t j = 0; j < 8; j++) {
                int want = 1000;
                for (size_t k = 0; k < columns; k++)
                    want += a[i * 32 + k] * b[j * 32 + k];
                CHECK(got[i * 8 + j] == want, "(%zu, %zu) of %zu columns: %d, want %d", i, j,
                      columns, got[i * 8 + j], want);
            }
    }
}

/* If one column of B changes, no bit of the other columns of D may change. */
TEST(columns_of_a_product_do_not_depend_on_each_other)
{
    unsigned long long state = 9;
    std::vector<esp_bf16> a(256), b(128);
    for (esp_bf16 &x : a)
        x = esp_from_float<esp_bf16>((float)check_uniform(&state));
    for (esp_bf16 &x : b)
        x = esp_from_float<esp_bf16>((float)check_uniform(&state));
    std::vector<float> results[2];
    for (int run = 0; run < 2; run++) {
        for (size_t k = 0; run && k < 16; k++)
            b[k * 8 + 3] = esp_from_float<esp_bf16>(1e30f);
        device_array<esp_bf16> at(a), bt(b);
        device_array<float> d(std::vector<float>(128, 0.25f));
        ESP_LAUNCH(product<esp_bf16>, 1, 32, 0, nullptr, at.data, bt.data, d.data);
        results[run] = d.read();
    }
    for (size_t i = 0; i < 128; i++)
        CHECK(i % 8 == 3 || results[0][i] == results[1][i], "element %zu", i);
}
