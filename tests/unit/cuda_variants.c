/* cuda_variants.c - tests every variant of the CUDA backend's products, on emulated GPUs of
 * several sizes.
 *
 * The variant that computes a product depends on the rows of the pass, the outputs of the
 * matrix, the number of multiprocessors and the shared memory of a block. So the emulator has
 * 4, 46 or 132 multiprocessors here (an H100 has 132), and 99, 163 or 227 KB of shared memory
 * (compute capability 8.6, 8.0, 9.0). The other dimension of a matrix does not matter. So the
 * matrices of 8B models with 28672 outputs (gate and up) or 14336 columns (down) are tested
 * with only 64 columns or outputs.
 *
 * In exact mode, every row of a pass must be bit-identical to plain decoding on every GPU. In
 * both modes, the logits must be as close to the CPU's logits as can be expected when
 * activations are rounded to 16 bits. On a real GPU, only that device is tested.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends.h"
#include "tests/each_backend.h"
#include "tests/emu/emu_control.h"
#include "tests/random_model.h"

enum { BATCH = 64, VOCABULARY = 300 };

/* With these numbers of rows, products of all widths (8, 16, 32 and 64 rows) are used. */
static const int row_counts[] = {7, 12, 20, 32, 40, 63};
enum { ROW_COUNTS = sizeof row_counts / sizeof *row_counts };

/* A cache for BATCH rows has a graph of 64 rows, in which all passes of 17 to 64 rows use the
 * widest products. A cache for UNCAPTURED rows has no such graph. */
enum { UNCAPTURED = 63 };

/* Under sanitizers, a smaller GPU and smaller matrices use the same variants. */
#ifdef __SANITIZE_ADDRESS__
enum { FFN = 1472, LARGE_GPU = 46 };
#else
enum { FFN = 14336, LARGE_GPU = 132 };
#endif

/* With 4 multiprocessors, all products of the first and third model have enough outputs for the
 * highest variants. With 132, only the gate and up matrices of the second model have enough. */
static const struct random_shape dense = {
    "bf16", 2, 256, 4, 2, 64, 160, VOCABULARY, 64, ESP_BF16, false, false, false, true, false};
static const struct random_shape wide = {"8B, cut", 1,     64,         2,    1,
                                         32,        FFN,   VOCABULARY, 32,   ESP_BF16,
                                         false,     false, false,      true, false};
static const struct random_shape blocks = {
    "mixed types", 2,     256,   4,     4,    64,   256, VOCABULARY, 64,
    ESP_Q8_0,      false, false, false, true, false};

static const struct random_shape heads = {"wide heads", 1,     64,         8,    2,
                                          128,          64,    VOCABULARY, 128,  ESP_BF16,
                                          false,        false, false,      true, false};

static struct controls {
    void (*set_multiprocessors)(int);
    void (*set_shared)(int);
    size_t (*shared_peak)(void);
} emulator;

/* Looks up the emulator's functions. Returns false on a real GPU. */
static bool find_emulator(void)
{
    if (cuda_is_real())
        return false;
    void *plugin = dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW);
    CHECK(plugin, "%s", dlerror());
    *(void **)&emulator.set_multiprocessors = dlsym(plugin, "emu_set_multiprocessors");
    *(void **)&emulator.set_shared = dlsym(plugin, "emu_set_shared");
    *(void **)&emulator.shared_peak = dlsym(plugin, "emu_shared_peak");
    CHECK(emulator.set_multiprocessors && emulator.set_shared && emulator.shared_peak,
          "no emulator");
    return true;
}

static void set_device(int multiprocessors, int shared)
{
    if (!find_emulator())
        return;
    emulator.set_multiprocessors(multiprocessors);
    emulator.set_shared(shared);
}

/* ------------------------------------------------------------------ passes */

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
};

static void open_long_runner(struct runner *r, struct esp_backend *backend, bool exact,
                             const struct random_model *model, int tokens, int batch)
{
    const struct esp_backend_ops *ops = backend->ops;
    char err[200] = "";
    r->backend = backend;
    if (ops->set_exact)
        ops->set_exact(backend, exact);
    CHECK(ops->weights_open(&r->weights, backend, &model->desc, NULL, NULL, err, sizeof err) ==
                  0 &&
              ops->cache_open(&r->cache, r->weights, tokens, batch, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, backend, BATCH, VOCABULARY, err, sizeof err) == 0,
          "%s", err);
}

static void open_runner(struct runner *r, struct esp_backend *backend, bool exact,
                        const struct random_model *model, int batch)
{
    open_long_runner(r, backend, exact, model, BATCH, batch);
}

static void close_runner(struct runner *r)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    ops->rows_close(r->logits);
    ops->cache_close(r->cache);
    ops->weights_close(r->weights);
    ops->close(r->backend);
}

/* Computes the logits (rows, VOCABULARY) of a chain of `rows` tokens that begins with token
 * number `first`. */
static void run(struct runner *r, int first, int rows, float *logits)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    int32_t tokens[BATCH], positions[BATCH];
    for (int i = 0; i < rows; i++) {
        tokens[i] = (first + i) * 37 % VOCABULARY;
        positions[i] = first + i;
    }
    const struct esp_batch batch = {.rows = rows,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = first,
                                    .prefix = first,
                                    .logits = r->logits};
    const int status = ops->forward(r->cache, &batch);
    CHECK(status == 0, "%d rows: %d, %s", rows, status,
          ops->failure ? ops->failure(r->backend) : "");
    for (int i = 0; i < rows; i++)
        CHECK(ops->read_row(r->logits, i, logits + i * VOCABULARY) == 0);
}

/* Returns the root mean square of the difference between two rows, divided by the root mean
 * square of the first row. */
static double difference(const float *want, const float *is)
{
    double error = 0, norm = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        error += ((double)is[i] - want[i]) * ((double)is[i] - want[i]);
        norm += (double)want[i] * want[i];
    }
    return sqrt(error / norm);
}

/* ------------------------------------------------------------------ references */

struct yardstick {
    float plain[BATCH * VOCABULARY]; /* logits of plain decoding, in exact mode */
    float cpu[BATCH * VOCABULARY];
};

static void measure(struct yardstick *y, const struct random_model *model)
{
    struct runner r;
    struct esp_backend *cpu;
    set_device(4, 227);
    open_runner(&r, open_cuda(), true, model, BATCH);
    for (int i = 0; i < BATCH; i++)
        run(&r, i, 1, y->plain + i * VOCABULARY);
    close_runner(&r);
    CHECK(esp_backend_cpu.open(&cpu, 1, NULL, 0) == 0);
    open_runner(&r, cpu, false, model, BATCH);
    run(&r, 0, BATCH, y->cpu);
    close_runner(&r);
}

/* Checks passes of all sizes. Sets peak[i] to the largest shared memory of a block in pass i,
 * or to 0 on a real GPU. */
static void check_device(const struct yardstick *y, const struct random_model *model,
                         bool exact, int batch, int multiprocessors, int shared,
                         size_t peak[ROW_COUNTS])
{
    static float logits[BATCH * VOCABULARY];
    struct runner r;
    set_device(multiprocessors, shared);
    open_runner(&r, open_cuda(), exact, model, batch);
    for (int i = 0; i < ROW_COUNTS; i++) {
        const int rows = row_counts[i];
        if (emulator.shared_peak)
            emulator.shared_peak();
        run(&r, 0, rows, logits);
        peak[i] = emulator.shared_peak ? emulator.shared_peak() : 0;
        for (int row = 0; row < rows; row++) {
            const float *is = logits + row * VOCABULARY;
            const float *want = y->plain + row * VOCABULARY;
            const double off = difference(y->cpu + row * VOCABULARY, is);
            CHECK(!exact || memcmp(is, want, VOCABULARY * sizeof *is) == 0,
                  "%s on %d multiprocessors with %d KB: row %d of %d differs from plain "
                  "decoding by %g",
                  model->shape.name, multiprocessors, shared, row, rows, difference(want, is));
            CHECK(off < 4e-2, "%s on %d multiprocessors with %d KB: row %d of %d is off by %g",
                  model->shape.name, multiprocessors, shared, row, rows, off);
        }
        CHECK(peak[i] <= (size_t)shared << 10);
    }
    close_runner(&r);
}

static const int kilobytes[] = {99, 163, 227};
enum { LIMITS = sizeof kilobytes / sizeof *kilobytes };

TEST(products_of_16_bit_weights_are_the_same_on_every_gpu)
{
    static struct yardstick y;
    static struct random_model model;
    size_t peak[LIMITS][ROW_COUNTS], few[ROW_COUNTS], captured[ROW_COUNTS];
    random_model_make(&model, &dense, 1);
    measure(&y, &model);
    for (int i = 0; i < LIMITS; i++)
        check_device(&y, &model, true, UNCAPTURED, 4, kilobytes[i], peak[i]);
    check_device(&y, &model, true, BATCH, 4, 227, captured);
    check_device(&y, &model, false, UNCAPTURED, 46, 99, few);
    check_device(&y, &model, true, UNCAPTURED, 132, 227, few);
    random_model_free(&model);
    if (!find_emulator())
        return;
    for (int i = 0; i < ROW_COUNTS; i++)
        CHECK(row_counts[i] > 32 ? peak[2][i] > 163 << 10 && peak[0][i] <= 99 << 10
                                 : peak[2][i] == peak[0][i],
              "%d rows: products take %zu bytes of %d KB, and %zu bytes of %d KB",
              row_counts[i], peak[2][i], kilobytes[2], peak[0][i], kilobytes[0]);
    CHECK(peak[2][2] > few[2],
          "20 rows: products take %zu bytes with many outputs, %zu with few", peak[2][2],
          few[2]);
    CHECK(captured[2] == peak[2][ROW_COUNTS - 1], "20 rows in a graph: products take %zu bytes",
          captured[2]);
}

TEST(products_of_an_8b_model_are_the_same_on_every_gpu)
{
    static struct yardstick y;
    static struct random_model model;
    size_t large[ROW_COUNTS], small[ROW_COUNTS];
    random_model_make(&model, &wide, 2);
    measure(&y, &model);
    check_device(&y, &model, true, UNCAPTURED, LARGE_GPU, 227, large);
    check_device(&y, &model, true, UNCAPTURED, LARGE_GPU, 163, small);
    if (!check_quick())
        check_device(&y, &model, true, UNCAPTURED, 46, 99, small);
    random_model_free(&model);
    CHECK(!find_emulator() || (large[ROW_COUNTS - 1] > 163 << 10 && small[ROW_COUNTS - 1] > 0),
          "64 rows: %zu bytes", large[ROW_COUNTS - 1]);
}

TEST(products_of_quantised_weights_are_the_same_on_every_gpu)
{
    static struct yardstick y;
    static struct random_model model;
    size_t peak[LIMITS][ROW_COUNTS], few[ROW_COUNTS];
    random_model_make(&model, &blocks, 3);
    measure(&y, &model);
    for (int i = 0; i < LIMITS; i++)
        check_device(&y, &model, true, UNCAPTURED, 4, kilobytes[i], peak[i]);
    if (!check_quick())
        check_device(&y, &model, true, UNCAPTURED, 132, 227, few);
    random_model_free(&model);
    for (int i = 1; find_emulator() && i < LIMITS; i++)
        CHECK(peak[i][ROW_COUNTS - 1] > (size_t)kilobytes[i - 1] << 10,
              "64 rows: products take %zu bytes of %d KB", peak[i][ROW_COUNTS - 1],
              kilobytes[i]);
}

/* Four query heads share one key head. So passes in default mode use tiles of 16, 64 and 128
 * queries. Tiles of 128 queries are used only if a block may have 102 KB of shared memory. In a
 * pass of 20 rows, no product needs that much shared memory. */
TEST(attention_is_right_with_every_tile_of_queries_on_every_gpu)
{
    static const int multiprocessors[] = {4, 46, 132};
    static struct yardstick y;
    static struct random_model model;
    size_t peak[ROW_COUNTS];
    random_model_make(&model, &heads, 4);
    measure(&y, &model);
    for (int i = 0; i < LIMITS; i++)
        for (int j = check_quick() ? i : 0; j < (check_quick() ? i + 1 : LIMITS); j++) {
            check_device(&y, &model, false, UNCAPTURED, multiprocessors[j], kilobytes[i], peak);
            CHECK(!find_emulator() || (peak[2] >= 102 << 10) == (i > 0),
                  "20 rows, %d KB: attention takes %zu bytes", kilobytes[i], peak[2]);
        }
    random_model_free(&model);
}

/* Each token uses all experts, so rounding cannot change which experts are used. In a pass of
 * 12 rows or more, each expert then gets tiles of up to 32 rows. Products with Q6_K need the
 * most shared memory. They must have a variant for 32 rows even on the smallest GPU. */
TEST(experts_of_q6_k_are_right_with_little_shared_memory)
{
    static struct yardstick y;
    static struct random_model model;
    size_t peak[ROW_COUNTS];
    random_model_make(&model, &blocks, 3);
    model.shape.dtype = ESP_Q6_K;
    random_model_mix(&model, 1, RANDOM_EXPERTS, 64);
    CHECK(model.experts[0].gate.dtype == ESP_Q6_K);
    measure(&y, &model);
    check_device(&y, &model, true, UNCAPTURED, 4, 99, peak);
    random_model_free(&model);
}

/* In a cache for a long text, each mode must allocate only the memory that its attention needs,
 * in addition to keys and values. */
TEST(a_cache_has_only_the_memory_for_attention_that_its_mode_needs)
{
    enum { LONG = 131072, MEGABYTE = 1 << 20 };
    static struct random_model model;
    struct esp_backend *backend = open_cuda();
    random_model_make(&model, &dense, 1);
    const size_t keys = (size_t)model.desc.layers * 2 * (size_t)model.desc.kv_heads * LONG *
                        (size_t)model.desc.head_dim * 2;
    const size_t usual = backend->ops->cache_need(&model.desc, LONG, BATCH);
    model.desc.exact = true;
    const size_t exact = backend->ops->cache_need(&model.desc, LONG, BATCH);
    CHECK(usual > keys && usual - keys < 20 * MEGABYTE, "%zu bytes", usual - keys);
    CHECK(exact > usual && exact - keys < 80 * MEGABYTE, "%zu bytes", exact - keys);
    random_model_free(&model);
    backend->ops->close(backend);
}

/* A cache that was not opened for exact mode must give the same results in exact mode, although
 * it computes only a few rows at a time. */
TEST(a_cache_not_opened_for_exact_mode_gives_the_same_results)
{
    enum { LONG = 60000 };
    static struct random_model model;
    static float logits[2][BATCH * VOCABULARY];
    random_model_make(&model, &dense, 1);
    for (int announced = 0; announced < 2; announced++) {
        struct runner r;
        set_device(4, 227);
        model.desc.exact = announced;
        open_long_runner(&r, open_cuda(), true, &model, LONG, UNCAPTURED);
        run(&r, 0, 40, logits[announced]);
        close_runner(&r);
    }
    model.desc.exact = false;
    CHECK(memcmp(logits[0], logits[1], 40 * VOCABULARY * sizeof(float)) == 0);
    random_model_free(&model);
}

/* Returns the predicted time of attention, in seconds, in a pass after 32768 tokens of text. */
static double attention_seconds(struct esp_backend *backend, const struct esp_model_desc *desc,
                                int rows)
{
    enum { KINDS = 16, TEXT = 32768 };
    static const struct esp_device_speed speed = {3.1e12, 1.755e9};
    struct esp_kernel_time kernel[KINDS];
    const int count = backend->ops->predict(backend, desc, rows, TEXT, &speed, kernel, KINDS);
    for (int i = 0; i < count; i++)
        if (strcmp(kernel[i].name, "attention") == 0)
            return kernel[i].seconds;
    CHECK(false, "%d", count);
    return 0;
}

/* The prediction counts the launches of attention: if there is room for all partial results,
 * there is only one launch for any number of rows. */
TEST(a_tree_of_16_nodes_reads_a_long_text_once)
{
    static const struct random_shape shape = {"heads of 8B", 1,     64,         32,   8,
                                              128,           64,    VOCABULARY, 128,  ESP_BF16,
                                              false,         false, false,      true, false};
    static struct random_model model;
    if (!find_emulator())
        return;
    random_model_make(&model, &shape, 1);
    set_device(132, 227);
    struct esp_backend *backend = open_cuda();
    const double one = attention_seconds(backend, &model.desc, 1);
    const double tree = attention_seconds(backend, &model.desc, 16);
    CHECK(tree < 1.3 * one, "%g s for a row, %g s for 16", one, tree);
    random_model_free(&model);
    backend->ops->close(backend);
}
