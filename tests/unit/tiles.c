/* Tests the product with BF16 weights on Intel's tile unit. tests/emu/tiles.h emulates the
 * unit's instructions, so the test runs on any processor. The product is compared with double
 * precision. The result of a row must be bit-identical in products of any number of rows.
 * blocks.c tests products with quantised blocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/dtype.h"
#include "tests/check.h"

enum { ROWS = 40, COLUMNS = 96, OUTPUTS = 150, PANELS = (OUTPUTS + ESP_PANEL - 1) / ESP_PANEL };

static const struct esp_cpu_isa *isa; /* the instruction set "tiles" */

static bool can_run(void)
{
    struct esp_backend *backend;
    if (esp_cpu_open(&backend, "tiles", 1, NULL, 0) < 0)
        return false;
    isa = ((struct esp_cpu_backend *)backend)->isa;
    esp_backend_cpu.close(backend);
    return true;
}

static uint16_t weights[PANELS * ESP_PANEL * COLUMNS];
static float bias[PANELS * ESP_PANEL], x[ROWS * COLUMNS];

static double weight(int out, int column)
{
    float value;
    const uint32_t bits = (uint32_t)weights[out * COLUMNS + column] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill(void)
{
    unsigned long long state = 3;
    for (int i = 0; i < OUTPUTS * COLUMNS; i++) {
        const float value = (float)(2 * check_uniform(&state) - 1);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        weights[i] = (uint16_t)(bits >> 16);
    }
    for (int i = 0; i < OUTPUTS; i++)
        bias[i] = (float)check_uniform(&state);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(2 * check_uniform(&state) - 1);
}

/* Multiplies rows first..first+rows-1 by all panels, in two calls. The rows are in a buffer for
 * rows of `width` columns. All other values in the buffer are NaN. */
static void multiply_in(int width, const struct esp_packed *w, int first, int rows, bool add,
                        float *y)
{
    struct esp_vectors in = {.stride = (size_t)width};
    const size_t bytes = esp_parts_bytes((size_t)rows, in.stride);
    in.x = esp_cpu_alloc((size_t)rows * in.stride, sizeof *in.x);
    in.parts = esp_cpu_alloc(1, bytes);
    memset(in.parts, 0xff, bytes);
    for (int i = 0; i < rows; i++) {
        memcpy(in.x + (size_t)i * in.stride, x + (first + i) * COLUMNS, COLUMNS * sizeof *x);
        isa->split(&in, i, 0, COLUMNS);
    }
    const struct esp_matmul p = {
        .in = in, .y = y, .y_stride = PANELS * ESP_PANEL, .rows = rows, .add = add};
    isa->matmul(w, 0, 3, &p);
    isa->matmul(w, 3, w->panels, &p);
    esp_cpu_free(in.x);
    esp_cpu_free(in.parts);
}

static void multiply(const struct esp_packed *w, int first, int rows, bool add, float *y)
{
    multiply_in(COLUMNS, w, first, rows, add, y);
}

static struct esp_packed pack(void)
{
    struct esp_packed w = {.dtype = ESP_BF16,
                           .rows = OUTPUTS,
                           .columns = COLUMNS,
                           .panels = PANELS,
                           .pairs = true,
                           .bias = bias};
    char *packed = esp_cpu_alloc((size_t)w.panels, esp_cpu_panel_bytes(&w));
    w.data = packed;
    for (int panel = 0; panel < w.panels; panel++)
        esp_cpu_pack(&w, panel, weights + (size_t)panel * ESP_PANEL * COLUMNS);
    return w;
}

/* The product rounds an activation by at most 2^-18 of its value. */
TEST(products_agree_with_double_precision)
{
    static float y[ROWS * PANELS * ESP_PANEL];
    if (!can_run())
        return;
    fill();
    const struct esp_packed w = pack();
    multiply(&w, 0, ROWS, false, y);
    for (int row = 0; row < ROWS; row++)
        for (int out = 0; out < OUTPUTS; out++) {
            double want = bias[out], size = fabs(want);
            for (int c = 0; c < COLUMNS; c++) {
                want += weight(out, c) * x[row * COLUMNS + c];
                size += fabs(weight(out, c) * x[row * COLUMNS + c]);
            }
            const double got = y[row * PANELS * ESP_PANEL + out];
            CHECK(fabs(got - want) < 0x1p-17 * size, "row %d, output %d: %g, not %g", row, out,
                  got, want);
        }
    esp_cpu_free((void *)w.data);
}

TEST(bits_do_not_depend_on_the_batch)
{
    static float want[ROWS * PANELS * ESP_PANEL], y[ROWS * PANELS * ESP_PANEL];
    const size_t width = PANELS * ESP_PANEL;
    if (!can_run())
        return;
    fill();
    const struct esp_packed w = pack();
    for (int row = 0; row < ROWS; row++)
        multiply(&w, row, 1, false, want + (size_t)row * width);
    for (int rows = 2, first = 0; rows <= ROWS; rows += rows / 3 + 1, first = (first + 5) % 9) {
        const int count = first + rows <= ROWS ? rows : ROWS - first;
        multiply(&w, first, count, false, y);
        CHECK(memcmp(y, want + (size_t)first * width, (size_t)count * width * sizeof *y) == 0,
              "%d rows starting at row %d differ from products of single rows", count, first);
        multiply(&w, first, count, true, y);
        for (size_t i = 0; i < (size_t)count * width; i++)
            CHECK(y[i] == 2 * want[(size_t)first * width + i], "added: %g, not twice %g", y[i],
                  want[(size_t)first * width + i]);
    }
    esp_cpu_free((void *)w.data);
}

/* One buffer is used for products of several widths. For example, the experts of a mixture are
 * narrower than its dense layers, and the joined inputs of a draft head are wider than its
 * layers. */
TEST(a_buffer_may_be_wider_than_the_product)
{
    static float want[ROWS * PANELS * ESP_PANEL], y[ROWS * PANELS * ESP_PANEL];
    if (!can_run())
        return;
    fill();
    const struct esp_packed w = pack();
    multiply(&w, 0, ROWS, false, want);
    for (int wider = 32; wider <= 1024; wider *= 2)
        for (int rows = 1; rows <= ROWS; rows += rows < 9 ? 4 : 31) {
            multiply_in(COLUMNS + wider, &w, 0, rows, false, y);
            CHECK(memcmp(y, want, (size_t)(rows * PANELS * ESP_PANEL) * sizeof *y) == 0,
                  "%d rows in a buffer that is %d columns wider", rows, wider);
        }
    esp_cpu_free((void *)w.data);
}
