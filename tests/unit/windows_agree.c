/* windows_agree.c - tests attention windows on the CUDA backend. The logits must equal the
 * CPU's logits, which tests/unit/window.c compares with a reference. In exact mode, dropping
 * rows from the cache must not change any bit of the logits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/backends.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"

enum { TEXT = 290, CACHE = 320, BATCH = 48, VOCABULARY = 40, DROP = 144 };

/* The layers have many wide heads. With few heads, rounding the output of attention to 16 bits
 * would hide most changes in the order of sums. */
static const struct random_shape shape = {
    "llama", 2, 32, 8, 2, 32, 40, VOCABULARY, 16, ESP_F16, false, false, false, false, false};

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    struct esp_window window;
};

static void open_runner(struct runner *r, struct esp_backend *backend,
                        const struct random_model *model, struct esp_window window)
{
    char err[200] = "";
    const struct esp_backend_ops *ops = backend->ops;
    *r = (struct runner){.backend = backend, .window = window};
    CHECK(ops->weights_open(&r->weights, backend, &model->desc, NULL, NULL, err, sizeof err) ==
                  0 &&
              ops->cache_open(&r->cache, r->weights, CACHE, BATCH, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, backend, BATCH, VOCABULARY, err, sizeof err) == 0,
          "%s", err);
}

static void close_runner(struct runner *r)
{
    r->backend->ops->rows_close(r->logits);
    r->backend->ops->cache_close(r->cache);
    r->backend->ops->weights_close(r->weights);
}

/* Runs positions first..first+rows-1 of the text. For a tree, all rows except the last are a
 * chain, and the last row is a second child of the first row. */
static void run(struct runner *r, const int32_t *text, int first, int rows, bool tree)
{
    int32_t positions[BATCH];
    uint64_t mask[BATCH];
    for (int i = 0; i < rows; i++) {
        positions[i] = first + i;
        mask[i] = ((uint64_t)2 << i) - 1;
    }
    if (tree) {
        positions[rows - 1] = first + 1;
        mask[rows - 1] = (uint64_t)1 << (rows - 1) | 1;
    }
    struct esp_batch batch = {.rows = rows,
                              .tokens = text + first,
                              .positions = positions,
                              .first = first - r->window.dropped,
                              .prefix = first - r->window.dropped,
                              .mask = tree ? mask : NULL,
                              .mask_words = 1,
                              .window = &r->window,
                              .logits = r->logits};
    CHECK(r->backend->ops->forward(r->cache, &batch) == 0);
}

/* Drops `count` tokens from a cache of the first `length` tokens: the oldest tokens after the
 * sinks. */
static void drop(struct runner *r, int length, int count)
{
    int32_t which[CACHE];
    const int sinks = r->window.sinks, left = length - r->window.dropped - sinks - count;
    for (int i = 0; i < left; i++)
        which[i] = sinks + count + i;
    for (int done = 0, n; done < left; done += n) {
        n = left - done < BATCH ? left - done : BATCH;
        CHECK(r->backend->ops->keep(r->cache, sinks + done, which + done, n) == 0);
    }
    r->window.dropped += count;
}

static void read(struct runner *r, int row, float *values)
{
    CHECK(r->backend->ops->read_row(r->logits, row, values) == 0);
}

static void check_near(struct runner *cpu, struct runner *cuda, int row, const char *what)
{
    float want[VOCABULARY], is[VOCABULARY];
    double error = 0, norm = 0;
    read(cpu, row, want);
    read(cuda, row, is);
    for (int i = 0; i < VOCABULARY; i++) {
        error += (is[i] - want[i]) * (is[i] - want[i]);
        norm += want[i] * want[i];
    }
    CHECK(error < 9e-4 * norm, "%s, row %d: off by %g", what, row, sqrt(error / norm));
}

static void check_same(struct runner *a, struct runner *b, int row, const char *what)
{
    float want[VOCABULARY], is[VOCABULARY];
    read(a, row, want);
    read(b, row, is);
    CHECK(memcmp(want, is, sizeof want) == 0, "%s, row %d", what, row);
}

static void check_window(struct esp_backend *cpu, struct esp_backend *cuda, int sinks,
                         int recent, int of_layer)
{
    static struct random_model model;
    const struct esp_window window = {sinks, recent, 0};
    struct runner on_cpu, whole, dropping;
    int32_t text[TEXT];
    unsigned long long state = 3;
    char what[80];
    random_model_make(&model, &shape, 9);
    model.layers[1].window = of_layer;
    for (int i = 0; i < TEXT; i++)
        text[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
    open_runner(&on_cpu, cpu, &model, window);
    open_runner(&whole, cuda, &model, window);
    open_runner(&dropping, cuda, &model, window);
    for (int at = 0, round = 0; at < TEXT; round++) {
        const int left = TEXT - at, n = round % 3 == 2 ? 1 : BATCH - round;
        const int rows = left < n ? left : n;
        const bool tree = round % 2 && rows > 2;
        snprintf(what, sizeof what, "sinks %d, recent %d, layer %d, %s of %d at %d", sinks,
                 recent, of_layer, tree ? "tree" : "chain", rows, at);
        run(&on_cpu, text, at, rows, tree);
        run(&whole, text, at, rows, tree);
        run(&dropping, text, at, rows, tree);
        for (int row = 0; row < rows; row++) {
            check_near(&on_cpu, &whole, row, what);
            check_same(&whole, &dropping, row, what);
        }
        at += tree ? rows - 1 : rows; /* the second child is not accepted */
        if (dropping.window.dropped == 0 && at > sinks + recent + DROP + 1)
            drop(&dropping, at, DROP);
        else if (dropping.window.dropped > 0 && at > TEXT - BATCH)
            drop(&dropping, at, ESP_WINDOW_STEP);
    }
    CHECK(dropping.window.dropped >= DROP);
    close_runner(&on_cpu);
    close_runner(&whole);
    close_runner(&dropping);
    random_model_free(&model);
}

TEST(with_windows_cuda_agrees_with_the_cpu)
{
    struct esp_backend *cpu, *cuda = open_cuda();
    CHECK(esp_backend_cpu.open(&cpu, 1, NULL, 0) == 0);
    cuda->ops->set_exact(cuda, true);
    if (!check_quick())
        check_window(cpu, cuda, 4, 40, 60);
    check_window(cpu, cuda, 35, 10, 30);
    cuda->ops->close(cuda);
    cpu->ops->close(cpu);
}
