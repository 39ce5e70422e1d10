/* cuda_banks.c - tests that the CUDA backend's kernels have few bank conflicts. The emulator
 * counts them.
 *
 * Each kernel that multiplies has two limits, and so has each of its functions that accesses
 * shared memory. One limits the cycles at the end of a block, where the sums of its warps are
 * added. The other limits the factor by which conflicts slow down all other accesses. The
 * passes have 1, 16 and 64 rows, which fill the blocks, so all lanes make the same accesses.
 * ESPALIER_BANKS=1 prints the counts.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends.h"
#include "tests/each_backend.h"
#include "tests/emu/emu_control.h"
#include "tests/random_model.h"

enum { BATCH = 64, VOCABULARY = 320, MOST_ENTRIES = 200 };

static const struct random_shape dense = {
    "bf16", 1, 256, 4, 2, 64, 320, VOCABULARY, 64, ESP_BF16, false, false, false, true, false};
static const struct random_shape blocks = {"blocks", 1,     256,        4,    4,
                                           64,       256,   VOCABULARY, 64,   ESP_Q4_K,
                                           false,    false, false,      true, false};

static struct controls {
    void (*set_multiprocessors)(int);
    void (*count_banks)(bool);
    int (*banks_of)(int, struct emu_banks *);
} emulator;

static void *symbol(void *plugin, const char *name)
{
    void *found = dlsym(plugin, name);
    CHECK(found, "no emulator: %s", name);
    return found;
}

/* Looks up the emulator's functions that count bank conflicts. Returns false on a real GPU. */
static bool find_emulator(void)
{
    if (cuda_is_real())
        return false;
    void *plugin = dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW);
    CHECK(plugin, "%s", dlerror());
    *(void **)&emulator.set_multiprocessors = symbol(plugin, "emu_set_multiprocessors");
    *(void **)&emulator.count_banks = symbol(plugin, "emu_count_banks");
    *(void **)&emulator.banks_of = symbol(plugin, "emu_banks_of");
    return true;
}

/* ------------------------------------------------------------------ counting */

struct counted {
    struct emu_banks entry[MOST_ENTRIES];
    int entries;
};

static void take_counts(struct counted *c, int rows)
{
    for (c->entries = 0; emulator.banks_of(c->entries, &c->entry[c->entries]); c->entries++) {
        const struct emu_banks *e = &c->entry[c->entries];
        CHECK(c->entries < MOST_ENTRIES - 1);
        if (getenv("ESPALIER_BANKS"))
            printf("%2d rows  %-44s %-24s %6ld blocks %8ld accesses %9ld cycles (%.2f of the "
                   "least)\n",
                   rows, e->kernel, e->place, e->blocks, e->accesses, e->cycles,
                   (double)e->cycles / (double)e->least);
    }
}

/* Runs a pass of `rows` rows through a model, on an emulated GPU with the given number of
 * multiprocessors. Adds its bank conflicts to *c. */
static void count_pass(struct counted *c, const struct random_shape *shape, int rows,
                       int multiprocessors)
{
    struct random_model model;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    int32_t tokens[BATCH], positions[BATCH];
    char err[200] = "";
    random_model_make(&model, shape, 7);
    emulator.set_multiprocessors(multiprocessors);
    struct esp_backend *backend = open_cuda();
    const struct esp_backend_ops *ops = backend->ops;
    CHECK(ops->weights_open(&weights, backend, &model.desc, NULL, NULL, err, sizeof err) == 0 &&
              ops->cache_open(&cache, weights, BATCH, BATCH, err, sizeof err) == 0 &&
              ops->rows_open(&logits, backend, BATCH, VOCABULARY, err, sizeof err) == 0,
          "%s", err);
    for (int i = 0; i < rows; i++) {
        tokens[i] = i * 37 % VOCABULARY;
        positions[i] = i;
    }
    const struct esp_batch batch = {
        .rows = rows, .tokens = tokens, .positions = positions, .logits = logits};
    emulator.count_banks(true);
    float row[VOCABULARY];
    CHECK(ops->forward(cache, &batch) == 0 && ops->read_row(logits, 0, row) == 0);
    take_counts(c, rows);
    emulator.count_banks(false);
    ops->rows_close(logits);
    ops->cache_close(cache);
    ops->weights_close(weights);
    ops->close(backend);
    random_model_free(&model);
}

/* ------------------------------------------------------------------ limits */

/* Returns the number of cycles at the end of a block, averaged over the products of a pass. */
static double end_cycles(const struct counted *c, const char *kernel)
{
    static const char *const places[] = {"esp_cuda_leave_sums", "esp_cuda_collect",
                                         "one_row_kernel", "finish_tile"};
    enum { PLACES = sizeof places / sizeof *places };
    double cycles = 0;
    for (int i = 0; i < c->entries; i++)
        for (int p = 0; p < PLACES; p++)
            if (strcmp(c->entry[i].kernel, kernel) == 0 &&
                strncmp(c->entry[i].place, places[p], strlen(places[p])) == 0)
                cycles += (double)c->entry[i].cycles / (double)c->entry[i].blocks;
    return cycles;
}

/* Checks the cycles at the end of a block, for all kernels with this name and these last
 * template arguments. */
static void check_end(const struct counted *c, const char *name, const char *arguments,
                      double most)
{
    bool any = false;
    for (int i = 0; i < c->entries; i++) {
        const char *kernel = c->entry[i].kernel;
        if (strncmp(kernel, name, strlen(name)) != 0 || !strstr(kernel, arguments))
            continue;
        const double cycles = end_cycles(c, kernel);
        any = true;
        CHECK(cycles <= most, "%s: %.0f cycles at the end of a block, more than %.0f", kernel,
              cycles, most);
    }
    CHECK(any, "kernel %s with %s did not run", name, arguments);
}

/* Conflicts may add at most half of the cycles that the accesses would take without
 * conflicts. */
static void check_everywhere(const struct counted *c)
{
    for (int i = 0; i < c->entries; i++)
        CHECK(2 * c->entry[i].cycles <= 3 * c->entry[i].least,
              "%s, %s: %ld cycles; without conflicts %ld", c->entry[i].kernel,
              c->entry[i].place, c->entry[i].cycles, c->entry[i].least);
}

TEST(joining_the_sums_of_warps_has_few_conflicts)
{
    static struct counted c;
    if (!find_emulator())
        return;
    count_pass(&c, &dense, 64, 46);
    check_end(&c, "matmul_kernel<", ", 2, 8, 4>", 1024);
    check_everywhere(&c);
    count_pass(&c, &dense, 64, 24);
    check_end(&c, "matmul_kernel<", ", 3, 8, 3>", 1536);
    check_everywhere(&c);
    count_pass(&c, &dense, 64, 20);
    check_end(&c, "matmul_kernel<", ", 4, 8, 3>", 2048);
    check_everywhere(&c);
    count_pass(&c, &dense, 64, 12);
    check_end(&c, "matmul_kernel<", ", 5, 8, 3>", 2560);
    check_everywhere(&c);
    count_pass(&c, &blocks, 64, 4);
    check_end(&c, "blocks_kernel<", ", 4, 8>", 2048);
    check_everywhere(&c);
}

TEST(small_passes_have_few_conflicts)
{
    static struct counted c;
    if (!find_emulator())
        return;
    count_pass(&c, &dense, 1, 4);
    check_end(&c, "matmul_kernel<", ", 1, 1, 4>", 64);
    check_everywhere(&c);
    count_pass(&c, &dense, 16, 4);
    check_end(&c, "matmul_kernel<", ", 2, 2, 3>", 256);
    check_everywhere(&c);
    count_pass(&c, &blocks, 1, 4);
    check_end(&c, "one_row_kernel<", ">", 16);
    check_everywhere(&c);
    count_pass(&c, &blocks, 16, 4);
    check_everywhere(&c);
}
