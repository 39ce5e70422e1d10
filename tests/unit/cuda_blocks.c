/* cuda_blocks.c - compares products with quantised weights on the GPU and on the CPU, for every
 * type. The CPU's sums are exact, because it adds integers.
 *
 * In one model, the matrices use all types in turn. Its logits may differ from the CPU's only
 * as much as rounding the keys, values and results of attention to 16 bits explains. On the
 * GPU, quantised matrices must take as many bytes as in the file. batch_invariant.c checks that
 * results do not depend on the batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"

enum { ROWS = 20, CACHE = 64, VOCABULARY = 50 };

static const struct random_shape shape = {"blocks", 1,     256,        4,     1,
                                          64,       256,   VOCABULARY, 64,    ESP_Q8_0,
                                          false,    false, true,       false, false};

struct runner {
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
};

static void open_runner(struct runner *r, struct esp_backend *backend,
                        const struct esp_model_desc *desc)
{
    const struct esp_backend_ops *ops = backend->ops;
    char err[300] = "";
    CHECK(ops->weights_open(&r->weights, backend, desc, NULL, NULL, err, sizeof err) == 0 &&
              ops->cache_open(&r->cache, r->weights, CACHE, ROWS, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, backend, ROWS, VOCABULARY, err, sizeof err) == 0,
          "%s", err);
}

static void close_runner(struct runner *r, struct esp_backend *backend)
{
    backend->ops->rows_close(r->logits);
    backend->ops->cache_close(r->cache);
    backend->ops->weights_close(r->weights);
}

static void pass(struct runner *r, struct esp_backend *backend, float *values)
{
    int32_t tokens[ROWS], positions[ROWS];
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = 7 * i % VOCABULARY;
        positions[i] = i;
    }
    const struct esp_batch batch = {
        .rows = ROWS, .tokens = tokens, .positions = positions, .logits = r->logits};
    CHECK(backend->ops->forward(r->cache, &batch) == 0, "%s",
          backend->ops->failure ? backend->ops->failure(backend) : "");
    for (int i = 0; i < ROWS; i++)
        CHECK(backend->ops->read_row(r->logits, i, values + i * VOCABULARY) == 0);
}

/* Returns the root mean square of b - a, relative to the root mean square of a. */
static double difference(const float *a, const float *b)
{
    double squares = 0, all = 0;
    for (int i = 0; i < ROWS * VOCABULARY; i++) {
        squares += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        all += (double)a[i] * a[i];
    }
    return sqrt(squares / all);
}

/* ------------------------------------------------------------------ models */

enum { TENSORS = 16 };

struct model {
    struct random_model random;
    void *own[TENSORS];
    int count;
};

/* Converts the numbers of `t` to another type. */
static void change(struct model *m, struct esp_tensor *t, enum esp_dtype dtype, float factor)
{
    const size_t from = esp_dtype_row_bytes(t->dtype, t->columns);
    const size_t to = esp_dtype_row_bytes(dtype, t->columns);
    float *row = malloc((size_t)t->columns * sizeof *row);
    char *data = malloc((size_t)t->rows * to);
    for (int i = 0; i < t->rows; i++) {
        esp_dequantise(t->dtype, (const char *)t->data + (size_t)i * from, t->columns, row);
        for (int c = 0; c < t->columns; c++)
            row[c] *= factor;
        esp_quantise(dtype, row, t->columns, data + (size_t)i * to);
    }
    free(row);
    t->data = data;
    t->dtype = dtype;
    m->own[m->count++] = data;
}

/* Gives all matrices the same type. If `attended` is 0, the values that attention adds up are
 * zero. */
static void make_model(struct model *m, enum esp_dtype dtype, float attended)
{
    struct esp_layer *l = &m->random.layers[0];
    struct esp_tensor *const all[] = {&l->query,  &l->key,  &l->value,
                                      &l->output, &l->gate, &l->up,
                                      &l->down,   NULL,     &m->random.desc.head};
    memset(m, 0, sizeof *m);
    random_model_make(&m->random, &shape, 5);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            change(m, all[i], dtype, all[i] == &l->value ? attended : 1);
    if (attended == 0)
        l->value_bias.data = NULL;
    change(m, &m->random.desc.embedding, dtype, 1);
}

static void free_model(struct model *m)
{
    for (int i = 0; i < m->count; i++)
        free(m->own[i]);
    random_model_free(&m->random);
}

static double difference_from_cpu(struct model *m)
{
    static float values[2][ROWS * VOCABULARY];
    char err[200] = "";
    struct esp_backend *backend[2] = {NULL, open_cuda()};
    CHECK(esp_cpu_open(&backend[0], "generic", 1, err, sizeof err) == 0, "%s", err);
    /* in exact mode, activations have 16 bits, as on a GPU */
    backend[0]->ops->set_exact(backend[0], true);
    for (int i = 0; i < 2; i++) {
        struct runner r;
        open_runner(&r, backend[i], &m->random.desc);
        pass(&r, backend[i], values[i]);
        close_runner(&r, backend[i]);
        backend[i]->ops->close(backend[i]);
    }
    return difference(values[0], values[1]);
}

/* ------------------------------------------------------------------ tests */

/* If attention adds nothing, the results differ only because float32 numbers are added in a
 * different order. Therefore, some activations are rounded to a neighbouring integer. If
 * activations were 16-bit floats, the error would be 1e-3. */
TEST(every_type_agrees_with_the_cpu)
{
    for (int dtype = ESP_Q8_0; dtype < ESP_DTYPE_COUNT; dtype += check_quick() ? 3 : 1) {
        struct model m;
        make_model(&m, (enum esp_dtype)dtype, 0);
        const double off = difference_from_cpu(&m);
        CHECK(off < 5e-5, "%s: %g", esp_dtype_name((enum esp_dtype)dtype), off);
        free_model(&m);
    }
}

TEST(a_model_of_all_types_agrees_with_the_cpu)
{
    struct model m;
    make_model(&m, ESP_Q6_K, 1);
    struct esp_layer *l = &m.random.layers[0];
    change(&m, &l->value, ESP_BF16, 1);
    change(&m, &l->up, ESP_Q4_K, 1);
    change(&m, &l->down, ESP_F16, 1);
    change(&m, &m.random.desc.embedding, ESP_Q5_0, 1);
    const double off = difference_from_cpu(&m);
    CHECK(off < 1e-2, "%g", off);
    m.random.desc.head = m.random.desc.embedding;
    const double tied = difference_from_cpu(&m);
    CHECK(tied < 1e-2, "%g", tied);
    free_model(&m);
}

/* The first model is like gpt-oss: its experts are in MXFP4 and have biases and limits, its
 * layers have sink logits, and all other weights have 16 bits. In the second model, the experts
 * have weights of all types. */
TEST(experts_agree_with_the_cpu)
{
    for (int types = 0; types < 2; types++) {
        struct random_shape s = shape;
        struct model m = {0};
        s.dtype = types ? ESP_Q8_0 : ESP_MXFP4;
        random_model_make(&m.random, &s, 5);
        random_model_mix(&m.random, 0, 3, 96 + 160 * types);
        if (types == 0)
            random_model_add_sinks(&m.random);
        m.random.desc.experts_normed = types;
        const double off = difference_from_cpu(&m);
        CHECK(off < 1e-2, "%g", off);
        free_model(&m);
    }
}

TEST(experts_of_several_types_are_refused)
{
    struct random_shape s = shape;
    struct model m = {0};
    struct esp_weights *weights;
    char err[300] = "";
    struct esp_backend *backend = open_cuda();
    random_model_make(&m.random, &s, 5);
    random_model_mix(&m.random, 0, 3, 64);
    change(&m, &m.random.experts[5].up, ESP_BF16, 1);
    CHECK(backend->ops->weights_open(&weights, backend, &m.random.desc, NULL, NULL, err,
                                     sizeof err) == ESP_E_UNSUPPORTED);
    CHECK(strstr(err, "experts of different types") && strstr(err, "--backend cpu"), "%s", err);
    free_model(&m);
    backend->ops->close(backend);
}

TEST(blocks_take_the_bytes_that_the_file_has)
{
    struct esp_backend *backend = open_cuda();
    for (int dtype = ESP_Q8_0; dtype < ESP_DTYPE_COUNT; dtype++) {
        struct model m;
        make_model(&m, (enum esp_dtype)dtype, 1);
        const struct esp_layer *l = &m.random.layers[0];
        const size_t rows =
                         (size_t)(l->query.rows + l->key.rows + l->value.rows + l->output.rows +
                                  l->gate.rows + l->up.rows + l->down.rows + 2 * 64),
                     bytes = rows * esp_dtype_row_bytes((enum esp_dtype)dtype, shape.hidden);
        const size_t need = backend->ops->weights_need(&m.random.desc);
        CHECK(need < bytes + 30000, "%s: %zu for %zu", esp_dtype_name((enum esp_dtype)dtype),
              need, bytes);
        free_model(&m);
    }
    backend->ops->close(backend);
}
