/* cuda_streamed.c - tests that results are bit-identical whether or not all layers fit on the
 * GPU.
 *
 * In exact mode, a model runs with all, none or some of its layers on the device. It computes
 * prompts, single tokens and trees of hundreds of nodes. There are several passes, so that the
 * buffers for streamed layers are used in turn. A pass that fails must not affect the next one,
 * and all memory must be released.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/each_backend.h"
#include "tests/emu/emu_control.h"
#include "tests/random_model.h"

enum { LAYERS = 4, VOCABULARY = 20, CACHE = 320, BATCH = 256, PROMPT = 18 };
enum { DEVICE_FAULT = 719, OUT_OF_MEMORY = 2 };

static const struct random_shape shapes[] = {
    {"llama", 3, 16, 2, 1, 8, 20, VOCABULARY, 8, ESP_BF16, false, false, false, true, true},
    {"neox", 2, 20, 2, 2, 10, 24, VOCABULARY, 6, ESP_F16, true, true, true, false, false},
};

/* A model that repeats the layers of a small model. The layers of the Llama model have experts
 * and all vectors that a layer can have, such as norms of heads and sink logits. */
struct many {
    struct random_model model;
    struct esp_layer layer[LAYERS];
    struct esp_expert expert[RANDOM_LAYERS][RANDOM_EXPERTS];
};

static void make_many(struct many *m, const struct random_shape *shape)
{
    random_model_make(&m->model, shape, 11);
    for (int i = 0; i < shape->layers && !shape->neox; i++) {
        random_model_mix(&m->model, i, 2, 12);
        memcpy(m->expert[i], m->model.experts, sizeof m->expert[i]);
        m->model.layers[i].expert = m->expert[i];
    }
    if (!shape->neox)
        random_model_add_sinks(&m->model);
    for (int i = 0; i < LAYERS; i++)
        m->layer[i] = m->model.layers[i % shape->layers];
    m->model.desc.layers = LAYERS;
    m->model.desc.layer = m->layer;
}

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    char err[400];
};

static int open_runner(struct runner *r, struct esp_backend *backend, struct many *m,
                       size_t limit)
{
    const struct esp_backend_ops *ops = backend->ops;
    *r = (struct runner){.backend = backend};
    m->model.desc.limit = (struct esp_memory_limit){limit + 1000, limit > 0 ? 1000 : 0};
    if (limit == 0)
        m->model.desc.limit.bytes = 0;
    int status = ops->weights_open(&r->weights, backend, &m->model.desc, NULL, NULL, r->err,
                                   sizeof r->err);
    if (status == 0)
        status = ops->cache_open(&r->cache, r->weights, CACHE, BATCH, r->err, sizeof r->err);
    if (status == 0)
        status = ops->rows_open(&r->logits, backend, BATCH, VOCABULARY, r->err, sizeof r->err);
    return status;
}

static void close_runner(struct runner *r)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    if (r->logits)
        ops->rows_close(r->logits);
    if (r->cache)
        ops->cache_close(r->cache);
    if (r->weights)
        ops->weights_close(r->weights);
}

/* Runs a pass of `rows` rows after the first `first` rows: a chain, or a tree in which the
 * parent of row i is row i / 2. */
static int pass(struct runner *r, int rows, int first, bool tree)
{
    enum { WORDS = BATCH / 64 };
    static uint64_t mask[BATCH][WORDS];
    int32_t tokens[BATCH], positions[BATCH];
    memset(mask, 0, sizeof mask);
    for (int i = 0; i < rows; i++) {
        tokens[i] = (first + 7 * i) % VOCABULARY;
        positions[i] = first + i;
        if (tree && i > 0) {
            positions[i] = positions[i / 2] + 1;
            memcpy(mask[i], mask[i / 2], sizeof mask[i]);
        }
        mask[i][i / 64] |= (uint64_t)1 << i % 64;
    }
    const struct esp_batch batch = {.rows = rows,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = first,
                                    .prefix = first,
                                    .mask = tree ? mask[0] : NULL,
                                    .mask_words = WORDS,
                                    .logits = r->logits};
    return r->backend->ops->forward(r->cache, &batch);
}

static void check_pass(struct runner *a, struct runner *b, int rows, int first, bool tree)
{
    float x[VOCABULARY], y[VOCABULARY];
    CHECK(pass(a, rows, first, tree) == 0 && pass(b, rows, first, tree) == 0, "%s",
          b->backend->ops->failure(b->backend));
    for (int i = 0; i < rows; i++) {
        CHECK(a->backend->ops->read_row(a->logits, i, x) == 0 &&
              b->backend->ops->read_row(b->logits, i, y) == 0);
        CHECK(memcmp(x, y, sizeof x) == 0, "row %d of %d differs", i, rows);
    }
}

static void check_passes(struct runner *resident, struct runner *streamed, int tree)
{
    check_pass(resident, streamed, PROMPT, 0, false);
    for (int i = 0; i < 3; i++)
        check_pass(resident, streamed, 1, PROMPT + i, false);
    check_pass(resident, streamed, tree, PROMPT + 3, true);
    check_pass(resident, streamed, 3, PROMPT + 3, false);
}

static size_t need(struct many *m, struct esp_backend *backend, size_t limit)
{
    m->model.desc.limit = (struct esp_memory_limit){limit, 0};
    return backend->ops->weights_need(&m->model.desc);
}

TEST(layers_that_do_not_fit_give_the_same_bits)
{
    for (int i = 0; i < (check_quick() ? 1 : 2); i++) {
        struct many *m = malloc(sizeof *m);
        struct runner resident, streamed;
        struct esp_streamed s;
        struct esp_backend *backend = open_cuda();
        backend->ops->set_exact(backend, true);
        make_many(m, &shapes[i]);
        const size_t all = need(m, backend, 0), least = need(m, backend, 1);
        const size_t layer = (all - least) / (LAYERS - 2) + 512; /* includes fences */
        CHECK(layer > 1000 && least > 2 * layer, "%zu, %zu", all, least);
        CHECK(open_runner(&resident, backend, m, 0) == 0, "%s", resident.err);
        CHECK(!backend->ops->weights_streamed(resident.weights, &s));
        for (int stay = 0; stay < LAYERS - 2; stay++) {
            const size_t limit = least + layer * (size_t)stay;
            CHECK(need(m, backend, limit) <= limit);
            CHECK(open_runner(&streamed, backend, m, limit) == 0, "%s", streamed.err);
            CHECK(backend->ops->weights_streamed(streamed.weights, &s));
            CHECK(s.layers == LAYERS && s.resident == stay && s.resident_bytes <= limit &&
                      s.buffer_bytes <= 2 * layer && s.pass_bytes > 0,
                  "%d of %d layers stay in memory, in %zu of %zu bytes", s.resident, s.layers,
                  s.resident_bytes, limit);
            CHECK(s.bytes > 0 && s.seconds > 0, "%g bytes in %g s", s.bytes, s.seconds);
            check_passes(&resident, &streamed, i > 0 || stay > 0 || check_quick() ? 70 : 250);
            close_runner(&streamed);
        }
        CHECK(open_runner(&streamed, backend, m, all) == 0, "%s", streamed.err);
        CHECK(!backend->ops->weights_streamed(streamed.weights, &s), "all fits");
        close_runner(&streamed);
        close_runner(&resident);
        backend->ops->close(backend);
        random_model_free(&m->model);
        free(m);
    }
}

/* ------------------------------------------------------------------ failures */

struct controls {
    void (*fail_at)(long, int, bool);
    long (*calls)(void);
    const char *(*failed_call)(void);
    int (*leaks)(char *, size_t);
};

static bool find_controls(struct controls *c)
{
    if (cuda_is_real())
        return false;
    void *plugin = dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW);
    CHECK(plugin, "%s", dlerror());
    *(void **)&c->fail_at = dlsym(plugin, "emu_fail_at");
    *(void **)&c->calls = dlsym(plugin, "emu_calls");
    *(void **)&c->failed_call = dlsym(plugin, "emu_failed_call");
    *(void **)&c->leaks = dlsym(plugin, "emu_leaks");
    CHECK(c->fail_at && c->calls && c->failed_call && c->leaks, "no emulator");
    return true;
}

TEST(a_pass_that_fails_halfway_does_not_harm_the_next)
{
    struct controls c;
    struct runner resident, streamed;
    float values[VOCABULARY];
    if (!find_controls(&c))
        return;
    struct many *m = malloc(sizeof *m);
    struct esp_backend *backend = open_cuda();
    backend->ops->set_exact(backend, true);
    make_many(m, &shapes[0]);
    const size_t least = need(m, backend, 1);
    CHECK(open_runner(&resident, backend, m, 0) == 0 &&
              open_runner(&streamed, backend, m, least) == 0,
          "%s", streamed.err);
    c.fail_at(0, 0, false);
    CHECK(pass(&streamed, 4, 0, false) == 0);
    const long calls = c.calls();
    CHECK(calls > 30, "%ld", calls);
    for (long call = 1; call <= calls; call += check_quick() ? 11 : 2) {
        c.fail_at(call, OUT_OF_MEMORY, false);
        int status = pass(&streamed, 4, 0, false);
        if (status == 0) /* only the call that returns values reports a failed launch */
            status = backend->ops->read_row(streamed.logits, 0, values);
        CHECK(status < 0, "call %ld of %ld (%s) failed, but this was not reported", call, calls,
              c.failed_call());
        c.fail_at(0, 0, false);
        check_pass(&resident, &streamed, 2, 0, false);
    }
    close_runner(&resident);
    close_runner(&streamed);
    backend->ops->close(backend);
    random_model_free(&m->model);
    free(m);
}

TEST(a_failure_to_open_leaves_nothing)
{
    struct controls c;
    struct runner r;
    char left[200];
    if (!find_controls(&c))
        return;
    struct many *m = malloc(sizeof *m);
    make_many(m, &shapes[0]);
    for (long call = 1;; call += check_quick() ? 9 : 2) {
        struct esp_backend *backend = open_cuda();
        const size_t least = need(m, backend, 1);
        m->model.desc.limit = (struct esp_memory_limit){least, 0};
        r = (struct runner){.backend = backend};
        c.fail_at(call, OUT_OF_MEMORY, false);
        int status = backend->ops->weights_open(&r.weights, backend, &m->model.desc, NULL, NULL,
                                                r.err, sizeof r.err);
        const bool failed = *c.failed_call();
        char name[60];
        snprintf(name, sizeof name, "%s", c.failed_call());
        c.fail_at(0, 0, false);
        close_runner(&r);
        backend->ops->close(backend);
        const bool gives_back = strstr(name, "Destroy") || strstr(name, "Free");
        CHECK(status < 0 ? *r.err : gives_back || !failed, "call %ld, %s: %d, %s", call, name,
              status, r.err);
        CHECK(c.leaks(left, sizeof left) == 0, "call %ld, %s: %s were not released", call, name,
              left);
        if (!failed)
            break;
    }
    random_model_free(&m->model);
    free(m);
}
