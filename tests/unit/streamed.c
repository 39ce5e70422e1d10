/* streamed.c - tests layers that are read from the file for every pass. They must give the same
 * bits as layers in memory.
 *
 * The memory limit is first the smallest that the backend accepts, so that all layers are
 * streamed. Then it is larger, so that some layers stay in memory. In every pass, batches,
 * single tokens and trees must give the same logits and hidden states as a model that is
 * completely in memory. If a file changes while it is used, the pass must fail with an error
 * message.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "kernels/cpu/cpu.h"
#include "tests/each_backend.h"

enum { CACHE = 64, BATCH = 24, ROUNDS = 2, MANY = 24 };

/* The models have plain, fused, transposed, paired, interleaved and quantised matrices. Some
 * models have experts, and the scales of the experts may be separate tensors. Others have two
 * files, recurrent layers, reordered rows, or layers with only a mixer or only an MLP. */
static const char *const models[] = {"logits/llama-bf16",
                                     "logits/neox-parallel",
                                     "logits/gpt2",
                                     "logits/gemma3-layers",
                                     "logits/qwen3-moe",
                                     "logits/gpt-oss",
                                     "logits/gpt-oss-floats",
                                     "gguf/qwen3-moe.gguf",
                                     "gguf/mixed.gguf",
                                     "gguf/phi3-partial.gguf",
                                     "gguf/llama-gqa-00001-of-00002.gguf",
                                     "gguf/gpt2.gguf",
                                     "logits/lfm2",
                                     "gguf/qwen3-5.gguf",
                                     "logits/qwen3-5-moe-fused",
                                     "logits/granite-hybrid-moe",
                                     "logits/qwen3-next",
                                     "logits/nemotron-h"};

struct runner {
    struct esp_backend *backend;
    struct esp_model *model;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits, *states;
    struct esp_layer *own; /* the opened model's layers, which are repeated */
    int own_layers;
};

/* Repeats the small model's layers, because the model must have more than the two layers that
 * must always be in memory. */
static void repeat_layers(struct runner *r)
{
    struct esp_model_desc *d = &r->model->desc;
    r->own = d->layer;
    r->own_layers = d->layers;
    d->layers = MANY;
    d->layer = malloc(MANY * sizeof *d->layer);
    for (int i = 0; i < MANY; i++)
        d->layer[i] = r->own[i % r->own_layers];
}

static void open_model(struct runner *r, const char *path)
{
    char err[300] = "";
    CHECK(esp_model_open(&r->model, path, err, sizeof err) == 0, "%s: %s", path, err);
    esp_model_set_context(r->model, CACHE);
    repeat_layers(r);
}

static int open_weights(struct runner *r, size_t limit, char *err, size_t errlen)
{
    r->model->desc.limit = (struct esp_memory_limit){.bytes = limit};
    return r->backend->ops->weights_open(&r->weights, r->backend, &r->model->desc, NULL, NULL,
                                         err, errlen);
}

/* Opens the weights with a limit that is at most a few percent above the smallest limit that
 * the backend accepts. */
static size_t open_smallest(struct runner *r)
{
    char err[500] = "";
    size_t limit = 4096;
    while (open_weights(r, limit, err, sizeof err) == ESP_E_MEMORY && limit < 1 << 30)
        limit += limit / 16;
    CHECK(r->weights, "%s: %s", r->model->name, err);
    return limit;
}

static void open_rest(struct runner *r)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    const struct esp_model_desc *d = &r->model->desc;
    char err[300] = "";
    CHECK(ops->cache_open(&r->cache, r->weights, CACHE, BATCH, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, r->backend, BATCH, d->vocabulary, err, sizeof err) ==
                  0 &&
              ops->rows_open(&r->states, r->backend, BATCH, 2 * d->hidden, err, sizeof err) ==
                  0,
          "%s", err);
}

static void close_runner(struct runner *r)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    if (r->cache)
        ops->cache_close(r->cache);
    if (r->logits)
        ops->rows_close(r->logits);
    if (r->states)
        ops->rows_close(r->states);
    ops->weights_close(r->weights);
    if (r->own) {
        free(r->model->desc.layer);
        r->model->desc.layer = r->own;
        r->model->desc.layers = r->own_layers;
    }
    esp_model_close(r->model);
    ops->close(r->backend);
}

/* Runs a batch of `rows` rows after `first` cache rows: a chain, or a tree in which the
 * parent of row i is row i / 2. */
static int pass(struct runner *r, int rows, int first, bool tree)
{
    int32_t tokens[BATCH], positions[BATCH];
    uint64_t mask[BATCH];
    for (int i = 0; i < rows; i++) {
        tokens[i] = (first + 7 * i) % r->model->desc.vocabulary;
        positions[i] = first + i;
        mask[i] = (uint64_t)1 << i;
        if (tree && i > 0) {
            positions[i] = positions[i / 2] + 1;
            mask[i] |= mask[i / 2];
        }
    }
    const struct esp_states states = {
        .count = 2, .state = {1, ESP_STATE_NORMED}, .to = r->states};
    const struct esp_batch batch = {.rows = rows,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = first,
                                    .prefix = first,
                                    .mask = tree ? mask : NULL,
                                    .mask_words = 1,
                                    .logits = r->logits,
                                    .states = &states};
    return r->backend->ops->forward(r->cache, &batch);
}

static void check_rows(struct runner *a, struct runner *b, struct esp_rows *in_a,
                       struct esp_rows *in_b, int rows, const char *what)
{
    const size_t count = (size_t)in_a->vocabulary;
    float *x = malloc(2 * count * sizeof *x), *y = x + count;
    for (int i = 0; i < rows; i++) {
        CHECK(a->backend->ops->read_row(in_a, i, x) == 0 &&
              b->backend->ops->read_row(in_b, i, y) == 0);
        CHECK(memcmp(x, y, count * sizeof *x) == 0, "%s: row %d of %s differs", a->model->name,
              i, what);
    }
    free(x);
}

static void check_pass(struct runner *a, struct runner *b, int rows, int first, bool tree)
{
    CHECK(pass(a, rows, first, tree) == 0);
    const int status = pass(b, rows, first, tree);
    CHECK(status == 0, "%s: %s", b->model->name, b->backend->ops->failure(b->backend));
    check_rows(a, b, a->logits, b->logits, rows, "the logits");
    check_rows(a, b, a->states, b->states, rows, "the states");
}

static void compare(struct runner *a, struct runner *b)
{
    for (int round = 0; round < ROUNDS; round++) {
        check_pass(a, b, BATCH, 0, false);
        check_pass(a, b, 1, 5 + round, false);
        check_pass(a, b, 3, 9, false);
        check_pass(a, b, BATCH - round, 12, true);
    }
}

/* Checks a model with a limit that is `more` percent above the smallest one. */
static void check_model(const char *name, const char *isa, int threads, int more)
{
    char path[PATH_MAX], err[300] = "";
    struct runner resident = {.backend = NULL}, streamed = {.backend = NULL};
    struct esp_streamed s;
    snprintf(path, sizeof path, "vectors/%s", name);
    snprintf(path, sizeof path, "%s", check_path(path));
    CHECK(esp_cpu_open(&resident.backend, isa, 1, err, sizeof err) == 0, "%s", err);
    CHECK(esp_cpu_open(&streamed.backend, isa, threads, err, sizeof err) == 0, "%s", err);
    ((struct esp_cpu_backend *)streamed.backend)->worth_a_thread = 0;
    open_model(&resident, path);
    open_model(&streamed, path);
    CHECK(open_weights(&resident, 0, err, sizeof err) == 0, "%s: %s", name, err);
    CHECK(!resident.backend->ops->weights_streamed(resident.weights, &s));
    const size_t limit = open_smallest(&streamed);
    if (more > 0) {
        streamed.backend->ops->weights_close(streamed.weights);
        CHECK(open_weights(&streamed, limit + limit * (size_t)more / 100, err, sizeof err) ==
              0);
    }
    CHECK(streamed.backend->ops->weights_streamed(streamed.weights, &s), "%s", name);
    CHECK(s.resident == (more > 0 ? s.resident : 0) && s.pass_bytes > 0, "%s: %d of %d layers",
          name, s.resident, s.layers);
    CHECK(s.resident_bytes <= limit + limit * (size_t)more / 100 &&
              s.resident_bytes == streamed.weights->bytes,
          "%s: %zu bytes, limit %zu", name, s.resident_bytes, limit);
    open_rest(&resident);
    open_rest(&streamed);
    compare(&resident, &streamed);
    close_runner(&resident);
    close_runner(&streamed);
}

TEST(streamed_layers_give_the_same_bits)
{
    for (int isa = 0; test_isa(isa); isa++)
        for (size_t i = 0; i < sizeof models / sizeof *models; i++)
            check_model(models[i], test_isa(isa), 1 + (int)i % 2, 0);
}

/* ------------------------------------------------------------------ models made by the test */

enum { LAYERS = 7, HIDDEN = 64 };

/* Holds a model that has many layers in one file. Only some of them fit in memory. */
struct made {
    struct runner runner;
    struct esp_model model;
    struct esp_layer layer[LAYERS];
    struct esp_tensor_file file;
    float frequency[8];
    char path[64];
    size_t used;
};

static struct esp_tensor tensor(struct made *m, int rows, int columns)
{
    unsigned long long state = m->used;
    float *values = malloc((size_t)rows * (size_t)columns * sizeof *values);
    const size_t bytes = (size_t)rows * (size_t)columns * sizeof *values;
    for (int i = 0; i < rows * columns; i++)
        values[i] = (float)(check_uniform(&state) - 0.5) / 4 + (columns == 1);
    CHECK(pwrite(m->file.fd, values, bytes, (off_t)m->used) == (ssize_t)bytes);
    free(values);
    const struct esp_tensor made = {.data = m,
                                    .dtype = ESP_F32,
                                    .rows = rows,
                                    .columns = columns,
                                    .block = rows,
                                    .stride = rows,
                                    .source = &m->file,
                                    .offset = m->used};
    m->used += bytes;
    return made;
}

static void make(struct made *m)
{
    struct esp_model_desc *d = &m->model.desc;
    memset(m, 0, sizeof *m);
    snprintf(m->path, sizeof m->path, "/tmp/streamed-XXXXXX");
    m->file.fd = mkstemp(m->path);
    m->file.path = m->path;
    m->model.name = m->path;
    CHECK(m->file.fd >= 0);
    *d = (struct esp_model_desc){.layers = LAYERS,
                                 .hidden = HIDDEN,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 16,
                                 .ffn = 96,
                                 .vocabulary = 50,
                                 .outputs = 50,
                                 .context = CACHE,
                                 .norm_epsilon = 1e-5f,
                                 .rotary = 16,
                                 .inverse_frequency = m->frequency,
                                 .layer = m->layer};
    d->embedding = tensor(m, 50, HIDDEN);
    for (struct esp_layer *l = m->layer; l < m->layer + LAYERS; l++) {
        l->norm1 = tensor(m, HIDDEN, 1);
        l->query = tensor(m, 64, HIDDEN);
        l->key = tensor(m, 32, HIDDEN);
        l->value = tensor(m, 32, HIDDEN);
        l->output = tensor(m, HIDDEN, 64);
        l->norm2 = tensor(m, HIDDEN, 1);
        l->gate = tensor(m, 96, HIDDEN);
        l->up = tensor(m, 96, HIDDEN);
        l->down = tensor(m, HIDDEN, 96);
    }
    d->norm_final = tensor(m, HIDDEN, 1);
    d->head = tensor(m, 50, HIDDEN);
}

static void open_made(struct made *m, size_t limit)
{
    char err[500] = "";
    CHECK(esp_cpu_open(&m->runner.backend, NULL, 2, err, sizeof err) == 0, "%s", err);
    m->runner.model = &m->model;
    if (limit == 1)
        open_smallest(&m->runner);
    else
        CHECK(open_weights(&m->runner, limit, err, sizeof err) == 0, "%s", err);
    open_rest(&m->runner);
}

static void close_made(struct made *m)
{
    m->runner.model = NULL;
    close_runner(&m->runner);
    close(m->file.fd);
    unlink(m->path);
}

TEST(as_many_layers_as_fit_stay_in_memory)
{
    static struct made resident, streamed;
    struct esp_streamed s;
    int before = -1;
    make(&resident);
    open_made(&resident, 0);
    const size_t all = resident.runner.weights->bytes;
    for (size_t limit = 1; limit < all; limit = limit == 1 ? all / 2 : limit + all / 9) {
        make(&streamed);
        open_made(&streamed, limit);
        CHECK(esp_cpu_weights_streamed(streamed.runner.weights, &s));
        CHECK(s.layers == LAYERS && s.resident >= before && s.resident < LAYERS, "%d after %d",
              s.resident, before);
        CHECK(limit == 1 || s.resident_bytes <= limit);
        before = s.resident;
        compare(&resident.runner, &streamed.runner);
        close_made(&streamed);
    }
    CHECK(before > 0, "no layer stayed in memory with any limit");
    make(&streamed);
    open_made(&streamed, all);
    CHECK(!esp_cpu_weights_streamed(streamed.runner.weights, &s), "all fits");
    close_made(&streamed);
    close_made(&resident);
}

/* The pass after a change may still use layers that were read before it. But one of the next
 * passes must fail, and then all later passes must fail, too. */
static void check_failure(struct made *m, const char *what)
{
    int status = 0;
    for (int i = 0; i < 4 && status == 0; i++)
        status = pass(&m->runner, 2, 0, false);
    const char *failure = m->runner.backend->ops->failure(m->runner.backend);
    CHECK(status == ESP_E_FILE, "%s: %d", what, status);
    CHECK(strstr(failure, m->path) && strstr(failure, "changed"), "%s: %s", what, failure);
    CHECK(pass(&m->runner, 2, 0, false) == ESP_E_FILE, "%s", what);
}

TEST(a_file_that_changes_ends_a_pass_with_a_sentence)
{
    static struct made m;
    for (int way = 0; way < 3; way++) {
        make(&m);
        open_made(&m, 1);
        CHECK(pass(&m.runner, 2, 0, false) == 0);
        if (way == 0)
            CHECK(truncate(m.path, 5000) == 0);
        else if (way == 1)
            CHECK(truncate(m.path, 0) == 0);
        else
            CHECK(pwrite(m.file.fd, "x", 1, (off_t)m.used) == 1);
        check_failure(&m, way == 0 ? "shorter" : way == 1 ? "empty" : "longer");
        close_made(&m);
    }
}

TEST(a_file_that_is_removed_is_still_read)
{
    static struct made m;
    make(&m);
    open_made(&m, 1);
    CHECK(unlink(m.path) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pass(&m.runner, 2, 0, false) == 0);
    close_made(&m);
}

TEST(a_message_says_what_limit_would_be_enough)
{
    static struct made m;
    char err[500] = "";
    make(&m);
    CHECK(esp_cpu_open(&m.runner.backend, NULL, 1, err, sizeof err) == 0);
    m.runner.model = &m.model;
    CHECK(open_weights(&m.runner, 1000, err, sizeof err) == ESP_E_MEMORY);
    CHECK(strstr(err, "1M are needed"), "%s", err);
    m.runner.model = NULL;
    m.runner.backend->ops->close(m.runner.backend);
    close(m.file.fd);
    unlink(m.path);
}
