/* tree_attention.c - compares attention on the CUDA backend with attention on the CPU, in exact
 * mode and in default mode, which uses tensor cores. The tests use heads of every width, groups
 * of 1 to 8 heads, and texts that end inside a tile of keys. Trees have 1 to 512 nodes in one
 * or two passes. Some layers have a window.
 *
 * Scores are larger than in a real model. So attention concentrates on few keys, and the test
 * detects even a single missing or extra key.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"

enum { BATCH = 512, CACHE = 780, WORDS = BATCH / 64, VOCABULARY = 24 };

struct scene {
    int heads, kv_heads, head_dim;
    int prefix, nodes, passes, window;
    int cap; /* the limit of the scores, or 0 for no limit */
};

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
};

enum { CPU, EXACT, DEFAULT, RUNNERS };

static void open_runner(struct runner *r, const struct random_model *model)
{
    char err[200] = "";
    const struct esp_backend_ops *ops = r->backend->ops;
    CHECK(ops->weights_open(&r->weights, r->backend, &model->desc, NULL, NULL, err,
                            sizeof err) == 0 &&
              ops->cache_open(&r->cache, r->weights, CACHE, BATCH, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, r->backend, BATCH, VOCABULARY, err, sizeof err) == 0,
          "%s", err);
}

static void close_runner(struct runner *r)
{
    r->backend->ops->rows_close(r->logits);
    r->backend->ops->cache_close(r->cache);
    r->backend->ops->weights_close(r->weights);
}

struct tree {
    int32_t token[CACHE], position[CACHE];
    uint64_t mask[BATCH][WORDS];
};

static void plant(struct tree *t, const struct scene *s, unsigned long long seed)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < s->prefix + s->nodes; i++) {
        t->token[i] = (int32_t)(check_uniform(&seed) * VOCABULARY);
        t->position[i] = i;
    }
    for (int i = 0; i < s->nodes; i++) {
        /* the parent is one of the last nodes, so that some paths are long */
        const int far = i < 12 ? i + 1 : 12;
        const int parent = i - 1 - (int)(check_uniform(&seed) * far);
        if (parent >= 0)
            memcpy(t->mask[i], t->mask[parent], sizeof t->mask[i]);
        t->mask[i][i / 64] |= (uint64_t)1 << i % 64;
        t->position[s->prefix + i] =
            parent < 0 ? s->prefix : t->position[s->prefix + parent] + 1;
    }
}

static void forward(struct runner *r, const struct esp_batch *batch)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    const int status = ops->forward(r->cache, batch);
    CHECK(status == 0, "%d, %s", status, ops->failure ? ops->failure(r->backend) : "");
}

/* Runs a tree in one or two passes. The last pass computes logits. */
static int run(struct runner *r, const struct scene *s, const struct tree *t)
{
    const int half = s->nodes / s->passes;
    struct esp_batch batch = {.rows = s->prefix,
                              .tokens = t->token,
                              .positions = t->position,
                              .logits = s->nodes == 0 ? r->logits : NULL};
    forward(r, &batch);
    for (int i = 0; i < s->passes; i++) {
        const int begin = i * half, end = i == s->passes - 1 ? s->nodes : begin + half;
        batch.rows = end - begin;
        batch.first = s->prefix + begin;
        batch.prefix = s->prefix;
        batch.tokens = t->token + batch.first;
        batch.positions = t->position + batch.first;
        batch.mask = t->mask[begin];
        batch.mask_words = WORDS;
        batch.logits = r->logits;
        if (s->nodes > 0)
            forward(r, &batch);
    }
    return batch.rows;
}

static double difference(struct runner *a, struct runner *b, int row)
{
    float want[VOCABULARY], is[VOCABULARY];
    double error = 0, norm = 0;
    CHECK(a->backend->ops->read_row(a->logits, row, want) == 0);
    CHECK(b->backend->ops->read_row(b->logits, row, is) == 0);
    for (int i = 0; i < VOCABULARY; i++) {
        error += (is[i] - want[i]) * (is[i] - want[i]);
        norm += want[i] * want[i];
    }
    CHECK(isfinite(error), "the logits of row %d are not numbers", row);
    return sqrt(error / norm);
}

static void check_scene(struct runner *runner, const struct scene *s)
{
    static struct random_model model;
    static struct tree tree;
    const struct random_shape shape = {
        "llama",     1,     16,         s->heads,    s->kv_heads,
        s->head_dim, 16,    VOCABULARY, s->head_dim, s->head_dim % 3 ? ESP_BF16 : ESP_F16,
        false,       false, false,      false,       false};
    random_model_make(&model, &shape, (unsigned)(s->heads + 10 * s->head_dim));
    model.desc.attention_scale = (float)(2 / sqrt(s->head_dim));
    model.layers[0].window = s->window;
    model.desc.attention_cap = (float)s->cap;
    plant(&tree, s, 7);
    int rows = 0;
    for (int i = 0; i < RUNNERS; i++) {
        open_runner(&runner[i], &model);
        rows = run(&runner[i], s, &tree);
    }
    double worst[RUNNERS] = {0};
    for (int row = 0; row < rows; row++)
        for (int i = EXACT; i < RUNNERS; i++)
            worst[i] = fmax(worst[i], difference(&runner[CPU], &runner[i], row));
    for (int i = EXACT; i < RUNNERS; i++)
        CHECK(worst[i] < 8e-2,
              "%s mode, %d heads, %d key heads, width %d, %d keys and %d nodes in %d "
              "passes, window %d: off by %g",
              i == EXACT ? "exact" : "default", s->heads, s->kv_heads, s->head_dim, s->prefix,
              s->nodes, s->passes, s->window, worst[i]);
    for (int i = 0; i < RUNNERS; i++)
        close_runner(&runner[i]);
    random_model_free(&model);
}

static void check_scenes(const struct scene *scenes, int count)
{
    struct runner runner[RUNNERS];
    CHECK(esp_backend_cpu.open(&runner[CPU].backend, 1, NULL, 0) == 0);
    for (int i = EXACT; i < RUNNERS; i++) {
        runner[i].backend = open_cuda();
        runner[i].backend->ops->set_exact(runner[i].backend, i == EXACT);
    }
    for (int i = 0; i < count; i++)
        check_scene(runner, &scenes[i]);
    for (int i = 0; i < RUNNERS; i++)
        runner[i].backend->ops->close(runner[i].backend);
}

#define CHECK_SCENES(...)                                                                      \
    do {                                                                                       \
        static const struct scene scenes[] = {__VA_ARGS__};                                    \
        check_scenes(scenes, (int)(sizeof scenes / sizeof *scenes));                           \
    } while (0)

TEST(heads_of_every_width_and_group_size_agree_with_the_reference)
{
    CHECK_SCENES({1, 1, 32, 65, 9, 1, 0, 0}, {2, 1, 64, 64, 9, 1, 0, 0},
                 {3, 1, 80, 63, 9, 1, 0, 0}, {4, 1, 128, 66, 5, 1, 0, 0},
                 {5, 1, 32, 1, 17, 1, 0, 0}, {6, 2, 24, 40, 12, 1, 0, 0},
                 {7, 1, 16, 31, 11, 1, 0, 0}, {8, 1, 96, 70, 7, 1, 0, 0},
                 {2, 2, 256, 33, 9, 1, 0, 0}, {2, 1, 256, 30, 20, 1, 0, 0});
}

TEST(more_than_64_queries_for_a_key_agree_with_the_reference)
{
    CHECK_SCENES({8, 1, 64, 66, 9, 1, 0, 0}, {8, 1, 96, 70, 9, 1, 0, 0},
                 {8, 1, 128, 66, 9, 1, 0, 0}, {8, 1, 256, 30, 9, 1, 0, 0},
                 {8, 1, 128, 60, 9, 1, 0, 2}, {8, 1, 256, 40, 9, 1, 0, 2},
                 {8, 1, 256, 40, 8, 1, 0, 2});
}

TEST(trees_of_1_to_512_nodes_agree_with_the_reference)
{
    CHECK_SCENES({2, 1, 32, 130, 1, 1, 0, 0}, {2, 1, 32, 127, 63, 1, 0, 0},
                 {2, 1, 32, 20, 64, 2, 0, 0}, {2, 1, 32, 129, 65, 2, 0, 0},
                 {1, 1, 32, 200, 130, 1, 0, 0}, {1, 1, 16, 259, 512, 1, 0, 0});
}

TEST(windows_of_a_layer_agree_with_the_reference)
{
    CHECK_SCENES({2, 1, 32, 140, 40, 1, 3, 0}, {2, 1, 32, 140, 40, 2, 50, 0},
                 {2, 1, 32, 64, 40, 1, 64, 0}, {2, 1, 32, 200, 0, 1, 5, 0},
                 {2, 1, 32, 100, 0, 1, 0, 0});
}
