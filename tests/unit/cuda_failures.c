/* cuda_failures.c - what the CUDA backend makes of a runtime that fails.
 *
 * A short life of the backend (a model, a cache, rows; passes by graph and by cuBLASLt; draws
 * and compaction) is lived again and again on the emulator: each time another call fails, or
 * memory ends sooner. Every failure must come out as a status with a sentence, nothing may stay
 * allocated, and the next life must be as good as new. A real GPU cannot be told to fail:
 * there, the backend only lives once.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "each_backend.h"
#include "emu/emu_control.h"
#include "random_model.h"

enum { BATCH = 40, CACHE = 64, VOCABULARY = 70, DEVICE_FAULT = 719, OUT_OF_MEMORY = 2 };

static const struct random_shape shape = {
    "small", 2, 32, 2, 1, 16, 40, VOCABULARY, 16, ESP_BF16, false, false, false, false, false};

struct controls {
    void (*fail_at)(long, int, bool);
    long (*calls)(void);
    const char *(*failed_call)(void);
    int (*leaks)(char *, size_t);
    void (*set_memory)(size_t);
    size_t (*memory_peak)(void);
};

/* False on a real GPU. */
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
    *(void **)&c->set_memory = dlsym(plugin, "emu_set_memory");
    *(void **)&c->memory_peak = dlsym(plugin, "emu_memory_peak");
    CHECK(c->fail_at && c->calls && c->failed_call && c->leaks && c->set_memory &&
              c->memory_peak,
          "no emulator");
    return true;
}

struct life {
    struct random_model *model;
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *rows;
    char err[400];
    long calls; /* before anything was given back */
};

static int open_all(struct life *l)
{
    const struct esp_backend_ops *ops = &esp_backend_cuda;
    int status = ops->open(&l->backend, 0, l->err, sizeof l->err);
    if (status < 0)
        return status;
    ops = l->backend->ops;
    status = ops->weights_open(&l->weights, l->backend, &l->model->desc, NULL, NULL, l->err,
                               sizeof l->err);
    if (status == 0)
        status = ops->cache_open(&l->cache, l->weights, CACHE, BATCH, l->err, sizeof l->err);
    if (status == 0)
        status = ops->rows_open(&l->rows, l->backend, BATCH, VOCABULARY, l->err, sizeof l->err);
    return status;
}

static int pass(struct life *l, int first, int rows)
{
    int32_t tokens[BATCH], positions[BATCH];
    for (int i = 0; i < rows; i++) {
        tokens[i] = (first + i) * 7 % VOCABULARY;
        positions[i] = first + i;
    }
    struct esp_batch batch = {.rows = rows,
                              .tokens = tokens,
                              .positions = positions,
                              .first = first,
                              .prefix = first,
                              .logits = l->rows};
    return l->backend->ops->forward(l->cache, &batch);
}

static int use_all(struct life *l)
{
    const struct esp_backend_ops *ops = l->backend->ops;
    const int32_t which[] = {0, 2}, kept[] = {41, 43};
    const double u[] = {0.2, 0.7};
    const struct esp_sampling sampling = {0.8, 0.9, 20};
    const struct esp_combination f = {1, 0, -1, 1};
    int32_t ids[8];
    float values[VOCABULARY];
    double numbers[ESP_RATIO_CLASSES], more[ESP_RATIO_CLASSES];
    int status = pass(l, 0, BATCH);
    if (status == 0)
        status = pass(l, BATCH, 4);
    if (status == 0)
        status = ops->keep(l->cache, BATCH, kept, 2);
    if (status == 0)
        status = ops->argmax(l->rows, which, 2, ids);
    if (status == 0)
        status = ops->top_k(l->rows, which, 2, 4, ids, values);
    if (status == 0)
        status = ops->softmax(l->rows, which, 2, &sampling);
    if (status == 0)
        status = ops->gather(l->rows, which, ids, 2, numbers);
    if (status == 0)
        status = ops->sample(l->rows, which, u, 2, 1, NULL, 0, ids, numbers);
    if (status == 0)
        status = ops->combine(l->rows, 0, l->rows, 2, &f, l->rows, 1, numbers);
    if (status == 0)
        status = ops->ratio_masses(l->rows, 0, l->rows, 2, numbers, more);
    if (status == 0)
        status = ops->remove(l->rows, 0, 1, numbers);
    if (status == 0)
        status = ops->read_row(l->rows, 0, values);
    if (status == 0)
        status = ops->write_row(l->rows, 0, values);
    return status;
}

/* The status of the first call that failed; `err` then holds its sentence. */
static int live(struct life *l, struct random_model *model, const struct controls *c)
{
    memset(l, 0, sizeof *l);
    l->model = model;
    int status = open_all(l);
    if (status == 0) {
        status = use_all(l);
        if (status < 0)
            snprintf(l->err, sizeof l->err, "%s", l->backend->ops->failure(l->backend));
    }
    l->calls = c ? c->calls() : 0;
    if (l->backend) {
        const struct esp_backend_ops *ops = l->backend->ops;
        if (l->rows)
            ops->rows_close(l->rows);
        if (l->cache)
            ops->cache_close(l->cache);
        if (l->weights)
            ops->weights_close(l->weights);
        ops->close(l->backend);
    }
    return status;
}

/* Fails every step-th call in turn; `ever_after` as emu_fail_at has it. */
static void fail_each(const struct controls *c, struct random_model *model, int error,
                      bool ever_after, int step)
{
    struct life l;
    char left[200], name[60];
    c->fail_at(0, 0, false);
    int status = live(&l, model, c);
    long calls = c->calls(), last = l.calls;
    CHECK(status == 0 && last > 50, "without a failure: %d after %ld calls", status, last);
    for (long call = 1; call <= calls; call += check_quick() ? 5 * step : step) {
        c->fail_at(call, error, ever_after);
        status = live(&l, model, c);
        snprintf(name, sizeof name, "%s", c->failed_call());
        c->fail_at(0, 0, false);
        int leaks = c->leaks(left, sizeof left);
        CHECK(leaks == 0, "%s (call %ld) failed: %s stay", name, call, left);
        bool gives_back = strstr(name, "Destroy") || strstr(name, "Free");
        CHECK(gives_back || call > last || status < 0, "nobody saw that %s (call %ld) failed",
              name, call);
        CHECK(status == 0 || l.err[0], "%s (call %ld) failed without a sentence", name, call);
        CHECK(error != OUT_OF_MEMORY || status == 0 || status == ESP_E_MEMORY ||
                  status == ESP_E_DEVICE || status == ESP_E_UNSUPPORTED,
              "%s (call %ld): status %d", name, call, status);
    }
    status = live(&l, model, c);
    CHECK(status == 0, "afterwards: %d, %s", status, l.err);
}

TEST(every_failure_of_a_call_becomes_a_status_and_leaves_nothing)
{
    struct controls c;
    struct life l;
    struct random_model *model = calloc(1, sizeof *model);
    random_model_make(model, &shape, 3);
    if (find_controls(&c)) {
        fail_each(&c, model, DEVICE_FAULT, false, 1);
        fail_each(&c, model, DEVICE_FAULT, true, 5);
        fail_each(&c, model, OUT_OF_MEMORY, false, 3);
    } else {
        int status = live(&l, model, NULL);
        CHECK(status == 0, "%d: %s", status, l.err);
    }
    random_model_free(model);
    free(model);
}

TEST(too_little_memory_is_said_and_leaves_nothing)
{
    struct controls c;
    struct life l;
    char left[200];
    if (!find_controls(&c))
        return;
    struct random_model *model = calloc(1, sizeof *model);
    random_model_make(model, &shape, 3);
    c.memory_peak();
    int status = live(&l, model, &c);
    size_t need = c.memory_peak();
    CHECK(status == 0 && need > 1000, "%d with %zu bytes", status, need);
    for (int part = 0; part <= 40; part++) {
        c.set_memory(need * (size_t)part / 40);
        status = live(&l, model, &c);
        int leaks = c.leaks(left, sizeof left);
        CHECK(leaks == 0, "%d/40 of the memory: %s stay", part, left);
        CHECK(part == 40 ? status == 0 : status == ESP_E_MEMORY && strstr(l.err, "memory"),
              "%d/40 of the memory: %d, %s", part, status, l.err);
    }
    c.set_memory((size_t)4 << 30);
    random_model_free(model);
    free(model);
}
