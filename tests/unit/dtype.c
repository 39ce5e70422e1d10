/* Compares stored numbers of every dtype with blocks that Python's gguf package wrote
 * (tests/vectors/make_quantised_vectors.py).
 */
#include "kernels/dtype.h"

#include "kernels/model_desc.h"
#include "tests/check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { N = 1024, MOST = N * 2 };

struct example {
    uint32_t n, size;
    float x[N], y[N], error;
    unsigned char stored[MOST];
};

static void read_example(struct example *e, enum esp_dtype dtype)
{
    char name[64];
    snprintf(name, sizeof name, "vectors/quantised/%s.bin", esp_dtype_name(dtype));
    FILE *f = fopen(check_path(name), "rb");
    CHECK(f, "cannot open %s", name);
    CHECK(fread(&e->n, 4, 1, f) == 1 && fread(&e->size, 4, 1, f) == 1 && e->n == N);
    CHECK(e->size == esp_dtype_row_bytes(dtype, N) && e->size <= MOST, "%s: %u", name, e->size);
    CHECK(fread(e->x, 4, N, f) == N && fread(e->stored, 1, e->size, f) == e->size &&
          fread(e->y, 4, N, f) == N && fread(&e->error, 4, 1, f) == 1);
    fclose(f);
}

TEST(blocks_become_the_numbers_of_the_gguf_package)
{
    static struct example e;
    static float out[N];
    for (int t = ESP_Q8_0; t < ESP_DTYPE_COUNT; t++) {
        const enum esp_dtype dtype = (enum esp_dtype)t;
        read_example(&e, dtype);
        esp_dequantise(dtype, e.stored, N, out);
        for (int i = 0; i < N; i++)
            CHECK(out[i] == e.y[i], "%s, number %d: %g, not %g", esp_dtype_name(dtype), i,
                  out[i], e.y[i]);
    }
}

static double rms_error(const float *x, const float *y)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sqrt(sum / N);
}

TEST(q8_0_blocks_are_the_bytes_of_the_gguf_package)
{
    static struct example e;
    static unsigned char stored[MOST];
    read_example(&e, ESP_Q8_0);
    esp_quantise(ESP_Q8_0, e.x, N, stored);
    CHECK(memcmp(stored, e.stored, e.size) == 0);
}

TEST(the_search_for_the_scale_has_a_smaller_error_than_the_gguf_package)
{
    static struct example e;
    static unsigned char stored[MOST];
    static float out[N];
    static const enum esp_dtype dtypes[] = {ESP_Q4_0, ESP_Q5_0, ESP_MXFP4};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const enum esp_dtype dtype = dtypes[i];
        read_example(&e, dtype);
        esp_quantise(dtype, e.x, N, stored);
        esp_dequantise(dtype, stored, N, out);
        CHECK(rms_error(e.x, out) < e.error, "%s: %g, not below %g", esp_dtype_name(dtype),
              rms_error(e.x, out), (double)e.error);
    }
}

/* The error for normally distributed numbers must stay below these bounds. They are relative to
 * the standard deviation, and 10 % above the measured errors. */
TEST(more_bits_have_smaller_errors)
{
    static const struct {
        enum esp_dtype dtype;
        double most;
    } bounds[] = {{ESP_Q4_0, 0.094},  {ESP_IQ4_NL, 0.084}, {ESP_Q4_K, 0.08},
                  {ESP_Q5_0, 0.0456}, {ESP_Q5_K, 0.0406},  {ESP_Q6_K, 0.0181},
                  {ESP_Q8_0, 0.0062}, {ESP_MXFP4, 0.124}};
    static float x[N], out[N];
    static unsigned char stored[MOST];
    unsigned long long state = 3;
    for (int i = 0; i < N; i++) {
        double u = check_uniform(&state), v = check_uniform(&state);
        x[i] = (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
    }
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        esp_quantise(bounds[i].dtype, x, N, stored);
        esp_dequantise(bounds[i].dtype, stored, N, out);
        CHECK(rms_error(x, out) < bounds[i].most, "%s: %g", esp_dtype_name(bounds[i].dtype),
              rms_error(x, out));
        esp_quantise_quickly(bounds[i].dtype, x, N, stored);
        esp_dequantise(bounds[i].dtype, stored, N, out);
        CHECK(rms_error(x, out) < 1.15 * bounds[i].most, "%s, quickly: %g",
              esp_dtype_name(bounds[i].dtype), rms_error(x, out));
    }
}

TEST(quantising_stored_numbers_again_does_not_change_them)
{
    static const enum esp_dtype same[] = {ESP_F32, ESP_F16, ESP_BF16, ESP_MXFP4, ESP_Q8_0};
    static float x[N], y[N], z[N];
    static unsigned char stored[4 * N];
    unsigned long long state = 4;
    for (int i = 0; i < N; i++)
        x[i] = (float)ldexp(check_uniform(&state) - 0.5, i % 40 - 30);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        esp_quantise(same[i], x, N, stored);
        esp_dequantise(same[i], stored, N, y);
        esp_quantise(same[i], y, N, stored);
        esp_dequantise(same[i], stored, N, z);
        for (int j = 0; j < N; j++)
            CHECK(fabsf(z[j] - y[j]) <= (same[i] == ESP_Q8_0 ? 2e-3f * fabsf(y[j]) : 0.0f),
                  "%s, number %d: %g, then %g", esp_dtype_name(same[i]), j, y[j], z[j]);
    }
}

TEST(every_scale_of_mxfp4_is_a_power_of_two)
{
    static const float sizes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int e = 0; e < 256; e++) {
        unsigned char block[17] = {(unsigned char)e};
        float out[32];
        for (int i = 0; i < 16; i++)
            block[1 + i] = (unsigned char)(i | (15 - i) << 4);
        esp_dequantise(ESP_MXFP4, block, 32, out);
        for (int i = 0; i < 32; i++) {
            const int q = i < 16 ? i : 31 - i;
            const double want = ldexp((double)sizes[q % 8], e - 127) * (q < 8 ? 1 : -1);
            CHECK((double)out[i] == want || (isinf(out[i]) && fabs(want) > 0x1.fp127),
                  "e = %d, q = %d: %g, not %g", e, q, (double)out[i], want);
        }
    }
}

TEST(halves_round_to_nearest)
{
    for (unsigned h = 0; h < 0x7c00; h++) {
        const float x = esp_half_to_float((uint16_t)h),
                    next = esp_half_to_float((uint16_t)(h + 1));
        CHECK(esp_float_to_half(x) == h && esp_float_to_half(-x) == (h | 0x8000u), "%x", h);
        if (h + 1 == 0x7c00)
            continue;
        const float middle = x + (next - x) / 2;
        CHECK(esp_float_to_half(middle) == (h + 1) / 2 * 2, "halfway after %x", h);
        CHECK(esp_float_to_half(nextafterf(middle, 0)) == h, "below halfway after %x", h);
        CHECK(esp_float_to_half(nextafterf(middle, 1e9f)) == h + 1, "above halfway after %x",
              h);
    }
    CHECK(esp_float_to_half(65519.0f) == 0x7bff && esp_float_to_half(65520.0f) == 0x7c00);
    CHECK(esp_float_to_half(INFINITY) == 0x7c00 && esp_float_to_half(NAN) == 0x7e00);
}

TEST(zeros_and_values_that_are_not_numbers_are_harmless)
{
    static float x[N], out[N];
    static unsigned char stored[MOST];
    for (int t = ESP_Q8_0; t < ESP_DTYPE_COUNT; t++) {
        const enum esp_dtype dtype = (enum esp_dtype)t;
        memset(x, 0, sizeof x);
        esp_quantise(dtype, x, N, stored);
        esp_dequantise(dtype, stored, N, out);
        for (int i = 0; i < N; i++)
            CHECK(out[i] == 0.0f, "%s: %g", esp_dtype_name(dtype), out[i]);
        for (int i = 0; i < N; i++)
            x[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
        esp_quantise(dtype, x, N, stored); /* the sanitizers must find no undefined behaviour */
    }
}

TEST(rows_of_a_tensor_are_read_from_blocks)
{
    static struct example e;
    static float out[N];
    for (int t = ESP_Q8_0; t < ESP_DTYPE_COUNT; t++) {
        const enum esp_dtype dtype = (enum esp_dtype)t;
        read_example(&e, dtype);
        /* The tensor has two rows of 512 numbers. In the fused matrix, another row lies between
         * them. */
        struct esp_tensor tensor = {.data = e.stored,
                                    .dtype = dtype,
                                    .rows = 2,
                                    .columns = 256,
                                    .block = 1,
                                    .stride = 2};
        esp_tensor_read_rows(&tensor, 0, 2, out);
        CHECK(memcmp(out, e.y, 256 * sizeof *out) == 0, "%s", esp_dtype_name(dtype));
        CHECK(memcmp(out + 256, e.y + 512, 256 * sizeof *out) == 0, "%s",
              esp_dtype_name(dtype));
    }
}

TEST(fields_cover_a_block_once)
{
    for (int t = 0; t < ESP_DTYPE_COUNT; t++) {
        const enum esp_dtype dtype = (enum esp_dtype)t;
        int covered[ESP_DTYPE_BLOCK_BYTES] = {0};
        const int bytes = (int)esp_dtype_block_bytes(dtype);
        for (const struct esp_dtype_field *f = esp_dtype_fields(dtype); f->count; f++) {
            CHECK(f->size == 1 || f->size == 2 || f->size == 4, "%s", esp_dtype_name(dtype));
            CHECK(f->from + f->size * f->count <= bytes, "%s", esp_dtype_name(dtype));
            for (int i = 0; i < f->size * f->count; i++)
                covered[f->from + i]++;
        }
        for (int i = 0; i < bytes; i++)
            CHECK(covered[i] == 1, "%s: byte %d of a block belongs to %d fields, not to 1",
                  esp_dtype_name(dtype), i, covered[i]);
    }
}

TEST(names_are_found)
{
    for (int t = 0; t < ESP_DTYPE_COUNT; t++)
        CHECK((int)esp_dtype_find(esp_dtype_name((enum esp_dtype)t)) == t);
    CHECK(esp_dtype_find("Q9_9") == ESP_DTYPE_COUNT);
    for (int t = 0; t < ESP_DTYPE_COUNT; t++)
        CHECK(esp_dtype_block_bytes((enum esp_dtype)t) <= ESP_DTYPE_BLOCK_BYTES);
}
