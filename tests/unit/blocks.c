/* Tests products with quantised blocks. They are compared with products in double precision.
 * Results must be bit-identical on all instruction sets and in batches of any size. Packing and
 * unpacking panels is also tested.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/dtype.h"
#include "tests/check.h"

enum { ISAS = 11, ROWS = 133, COLUMNS = 1024, OUTPUTS = 80, PANELS = 3 };

static const char *const names[ISAS] = {"generic", "avx2",    "avx512",  "vnni",
                                        "amx",     "tiles",   "avxvnni", "dpbusd",
                                        "neon",    "dotprod", "i8mm"};

struct example {
    struct esp_packed w;
    char *stored, *packed; /* the rows as a file stores them, and the same rows as panels */
    float weights[OUTPUTS * COLUMNS], bias[PANELS * ESP_PANEL];
    float x[ROWS * COLUMNS];
};

static bool bytes; /* true if activations have 8 bits, false if 16 */

static float around(unsigned long long *state, double spread)
{
    return (float)(spread * (2 * check_uniform(state) - 1));
}

static float normal(unsigned long long *state)
{
    double u = check_uniform(state), v = check_uniform(state);
    return (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
}

static void pack_example(struct example *e, enum esp_dtype dtype, int rows, int columns)
{
    const size_t row_bytes = esp_dtype_row_bytes(dtype, columns);
    e->w = (struct esp_packed){.dtype = dtype,
                               .rows = rows,
                               .columns = columns,
                               .panels = (rows + ESP_PANEL - 1) / ESP_PANEL,
                               .bias = e->bias};
    e->packed = esp_cpu_alloc((size_t)e->w.panels, esp_cpu_panel_bytes(&e->w));
    e->w.data = e->packed;
    for (int panel = 0; panel < e->w.panels; panel++)
        esp_cpu_pack(&e->w, panel, e->stored + (size_t)panel * ESP_PANEL * row_bytes);
}

static struct example *open_example(enum esp_dtype dtype, int rows, int columns,
                                    unsigned long long seed)
{
    struct example *e = calloc(1, sizeof *e);
    const size_t row_bytes = esp_dtype_row_bytes(dtype, columns);
    e->stored = malloc((size_t)rows * row_bytes);
    for (int i = 0; i < rows * columns; i++)
        e->weights[i] = normal(&seed);
    for (int i = 0; i < rows; i++) {
        esp_quantise(dtype, e->weights + i * columns, columns,
                     e->stored + (size_t)i * row_bytes);
        esp_dequantise(dtype, e->stored + (size_t)i * row_bytes, columns,
                       e->weights + i * columns);
        e->bias[i] = around(&seed, 1);
    }
    pack_example(e, dtype, rows, columns);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        e->x[i] = normal(&seed) * (i % 40 ? 1.0f : 30.0f);
    return e;
}

static void close_example(struct example *e)
{
    esp_cpu_free(e->packed);
    free(e->stored);
    free(e);
}

static const struct esp_cpu_isa *open_isa(int i)
{
    struct esp_backend *backend;
    if (esp_cpu_open(&backend, names[i], 1, NULL, 0) < 0)
        return NULL;
    const struct esp_cpu_isa *isa = ((struct esp_cpu_backend *)backend)->isa;
    esp_backend_cpu.close(backend);
    return isa;
}

/* Multiplies `rows` rows of the example's activations, starting at row `first`. `y` has the
 * shape (rows, OUTPUTS padded to whole panels). */
static void multiply(const struct example *e, const struct esp_cpu_isa *isa, int first,
                     int rows, bool add, float *y)
{
    struct esp_vectors in = {
        .x = (float *)e->x + first * COLUMNS, .stride = COLUMNS, .bytes = bytes};
    in.cut = esp_cpu_alloc(esp_cut_count((size_t)rows, COLUMNS), sizeof *in.cut);
    in.together = esp_cut_together(rows);
    for (int i = 0; i < rows; i++)
        isa->cut(&in, i, 0, e->w.columns);
    struct esp_matmul p = {.in = in,
                           .y = y,
                           .y_stride = PANELS * ESP_PANEL,
                           .rows = rows,
                           .add = add,
                           .tiles = true};
    isa->matmul_blocks(&e->w, 0, 1, &p);
    isa->matmul_blocks(&e->w, 1, e->w.panels, &p);
    esp_cpu_free(in.cut);
}

/* Rounding changes an activation by at most 2^-16 (16 bits) or 1 / 254 (8 bits) of the largest
 * activation in its block of 32. Here, the largest activation is 30 times as large as the other
 * activations. */
static void check_against_double(enum esp_dtype dtype, int i, const struct esp_cpu_isa *isa)
{
    static float y[ROWS * PANELS * ESP_PANEL];
    struct example *e = open_example(dtype, OUTPUTS, COLUMNS, (unsigned)dtype);
    double off = 0, size = 0;
    memset(y, 0, sizeof y);
    multiply(e, isa, 0, 5, false, y);
    for (int row = 0; row < 5; row++)
        for (int out = 0; out < OUTPUTS; out++) {
            double want = e->bias[out];
            for (int c = 0; c < COLUMNS; c++)
                want += (double)e->weights[out * COLUMNS + c] * e->x[row * COLUMNS + c];
            const double error = y[row * PANELS * ESP_PANEL + out] - want;
            off += error * error;
            size += want * want;
        }
    const double relative = sqrt(off / size);
    CHECK(relative < (bytes ? 2e-2 : 1e-4),
          "%s, %s, activations of %d bits: the relative error is %g", names[i],
          esp_dtype_name(dtype), bytes ? 8 : 16, relative);
    close_example(e);
}

TEST(products_agree_with_double_precision)
{
    for (int t = ESP_Q8_0; t < ESP_DTYPE_COUNT; t++)
        for (int i = 0; i < ISAS; i++) {
            const struct esp_cpu_isa *isa = open_isa(i);
            if (!isa || (check_quick() && i == 0))
                continue;
            for (int b = 0; b < 2; b++) {
                bytes = b;
                check_against_double((enum esp_dtype)t, i, isa);
            }
            bytes = false;
        }
}

/* Returns the next number of rows to test. With tiles, all numbers up to 68 are tested. The
 * last number is ROWS. With that many rows, blocks are unpacked before they are multiplied. */
static int next_rows(const struct esp_cpu_isa *isa, int rows)
{
    const int step = isa->two_ways ? 1 : rows / 3 + 1;
    return rows < 68 ? rows + step : rows < ROWS ? ROWS : ROWS + 1;
}

/* Checks that every row has the same bits on every instruction set, in batches of any size that
 * start at any row. For types with short blocks, the number of columns is not a multiple of
 * 256. */
static void check_bits(void)
{
    static float want[ROWS * PANELS * ESP_PANEL], y[ROWS * PANELS * ESP_PANEL];
    const size_t width = PANELS * ESP_PANEL;
    for (int t = ESP_Q8_0; t < ESP_DTYPE_COUNT; t++) {
        const enum esp_dtype dtype = (enum esp_dtype)t;
        const int columns = 256 * (1 + t % 3) + (esp_dtype_block(dtype) == 32 ? 32 * t : 0);
        struct example *e = open_example(dtype, OUTPUTS, columns, (unsigned)t + 9);
        const struct esp_cpu_isa *first = open_isa(0);
        for (int row = 0; row < ROWS; row++)
            multiply(e, first, row, 1, false, want + (size_t)row * width);
        for (int i = 0; i < ISAS; i++) {
            const struct esp_cpu_isa *isa = open_isa(i);
            if (check_quick() && i == 0)
                continue;
            for (int rows = 1, at = 0; isa && rows <= ROWS;
                 rows = next_rows(isa, rows), at = (at + 5) % 9) {
                const int count = at + rows <= ROWS ? rows : ROWS - at;
                multiply(e, isa, at, count, false, y);
                CHECK(memcmp(y, want + (size_t)at * width, (size_t)count * width * sizeof *y) ==
                          0,
                      "%s, %s: %d rows starting at row %d differ from single rows", names[i],
                      esp_dtype_name(dtype), count, at);
            }
        }
        close_example(e);
    }
}

TEST(bits_depend_on_neither_batch_nor_instruction_set)
{
    for (int b = 0; b < 2; b++) {
        bytes = b;
        check_bits();
    }
    bytes = false;
}

TEST(products_can_be_added_to_the_result)
{
    static float plain[PANELS * ESP_PANEL], y[PANELS * ESP_PANEL];
    struct example *e = open_example(ESP_Q4_K, OUTPUTS, 256, 2);
    for (int i = 0; i < ISAS; i++) {
        const struct esp_cpu_isa *isa = open_isa(i);
        if (!isa)
            continue;
        for (int j = 0; j < PANELS * ESP_PANEL; j++)
            y[j] = 3;
        multiply(e, isa, 0, 1, false, plain);
        multiply(e, isa, 0, 1, true, y);
        for (int j = 0; j < OUTPUTS; j++)
            CHECK(y[j] == 3 + plain[j], "%s: %g, not %g", names[i], y[j], 3 + plain[j]);
    }
    close_example(e);
}

/* A block in a file can contain any bits, even bits that no correct program writes. All
 * instruction sets must give the same results for them. */
TEST(random_bytes_as_blocks_give_the_same_bits)
{
    static float want[2][PANELS * ESP_PANEL], y[PANELS * ESP_PANEL];
    unsigned long long state = 11;
    for (int t = ESP_Q8_0; t < ESP_DTYPE_COUNT; t++) {
        struct example *e = open_example((enum esp_dtype)t, OUTPUTS, 512, 5);
        const size_t size = OUTPUTS * esp_dtype_row_bytes((enum esp_dtype)t, 512);
        for (size_t i = 0; i < size; i++) /* the mask keeps F16 scales finite */
            e->stored[i] = (char)((int)(check_uniform(&state) * 256) & (i % 2 ? 0xbb : 0xff));
        esp_cpu_free(e->packed);
        pack_example(e, (enum esp_dtype)t, OUTPUTS, 512);
        for (int i = 0; i < ISAS; i++) {
            const struct esp_cpu_isa *isa = open_isa(i);
            for (int b = 0; isa && b < 2; b++) {
                bytes = b;
                multiply(e, isa, 3, 1, false, i == 0 ? want[b] : y);
                CHECK(i == 0 || memcmp(want[b], y, sizeof y) == 0, "%s, %s, %d bits", names[i],
                      esp_dtype_name((enum esp_dtype)t), b ? 8 : 16);
            }
            bytes = false;
        }
        close_example(e);
    }
}

TEST(activations_that_are_not_numbers_give_nan)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static float y[PANELS * ESP_PANEL];
    struct example *e = open_example(ESP_Q8_0, OUTPUTS, 256, 3);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        for (int i = 0; i < ISAS; i++) {
            const struct esp_cpu_isa *isa = open_isa(i);
            e->x[77] = bad[k];
            for (int b = 0; isa && b < 2; b++) {
                bytes = b;
                multiply(e, isa, 0, 1, false, y);
                bytes = false;
                for (int j = 0; j < OUTPUTS; j++)
                    CHECK(isnan(y[j]), "%s: output %d is %g", names[i], j, y[j]);
            }
        }
    close_example(e);
}

/* The smallest scale is 2^-126 (2^-107 with 8 bits). Subnormal activations are smaller than
 * that. */
TEST(activations_of_every_size_are_quantised_accurately)
{
    static const float sizes[] = {1e-45f, 1e-40f, 1e-37f, 1e-30f, 1, 1.9844f, 3e20f, 3.4e38f};
    float x[ESP_CUT_COLUMNS] = {0};
    struct esp_cut out;
    for (int i = 0; i < ISAS; i++) {
        const struct esp_cpu_isa *isa = open_isa(i);
        for (size_t k = 0; isa && k < sizeof sizes / sizeof *sizes; k++) {
            x[0] = sizes[k];
            x[1] = -sizes[k];
            x[2] = sizes[k];
            for (int b = 0; b < 2; b++) {
                struct esp_vectors v = {
                    .x = x, .stride = ESP_CUT_COLUMNS, .cut = &out, .together = 1, .bytes = b};
                isa->cut(&v, 0, 0, ESP_CUT_COLUMNS);
                const double total = out.scale * (out.less_8 / -8.0);
                const double lost =
                    b ? sizes[k] * 1e-6 + 0x1p-107 : sizes[k] / 32000.0 + 0x1p-127;
                CHECK(fabs(total - sizes[k]) <= lost, "%s: %g becomes %g", names[i], sizes[k],
                      total);
            }
        }
    }
}

TEST(rows_can_be_read_from_panels)
{
    static float row[COLUMNS];
    for (int t = 0; t < ESP_DTYPE_COUNT; t++)
        for (int pairs = 0; pairs <= (t == ESP_BF16); pairs++) {
            struct example *e = open_example((enum esp_dtype)t, OUTPUTS - 7, 512, 4);
            esp_cpu_free(e->packed);
            e->w.pairs = pairs;
            e->packed = esp_cpu_alloc((size_t)e->w.panels, esp_cpu_panel_bytes(&e->w));
            e->w.data = e->packed;
            for (int panel = 0; panel < e->w.panels; panel++)
                esp_cpu_pack(&e->w, panel,
                             e->stored + (size_t)panel * ESP_PANEL *
                                             esp_dtype_row_bytes((enum esp_dtype)t, 512));
            for (int i = 0; i < e->w.rows; i++) {
                esp_cpu_packed_row(&e->w, i, row);
                CHECK(memcmp(row, e->weights + i * 512, 512 * sizeof *row) == 0, "%s, row %d",
                      esp_dtype_name((enum esp_dtype)t), i);
            }
            close_example(e);
        }
}

/* The exponents include the smallest, for which the scale is subnormal, and the largest, for
 * which a product overflows. */
TEST(every_exponent_gives_the_same_bits)
{
    static float want[PANELS * ESP_PANEL], y[PANELS * ESP_PANEL];
    const size_t row_bytes = esp_dtype_row_bytes(ESP_MXFP4, COLUMNS);
    for (int first = 0; first < 256; first += 32) {
        struct example *e = open_example(ESP_MXFP4, OUTPUTS, COLUMNS, 5);
        for (int row = 0; row < OUTPUTS; row++)
            for (int block = 0; block < COLUMNS / 32; block++)
                e->stored[(size_t)row * row_bytes + (size_t)block * 17] =
                    (char)(first + (row + block) % 32);
        esp_cpu_free(e->packed);
        pack_example(e, ESP_MXFP4, OUTPUTS, COLUMNS);
        multiply(e, open_isa(0), 3, 1, false, want);
        for (int i = 1; i < ISAS; i++) {
            const struct esp_cpu_isa *isa = open_isa(i);
            if (!isa)
                continue;
            multiply(e, isa, 3, 1, false, y);
            CHECK(memcmp(want, y, OUTPUTS * sizeof *y) == 0, "%s, exponents from %d", names[i],
                  first);
        }
        close_example(e);
    }
}
