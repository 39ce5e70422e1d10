/* cuda_failures.c - tests the CUDA backend with a runtime that fails.
 *
 * On the emulator, the test repeats a short use of the backend: it opens a model, a cache and
 * rows, runs passes as graphs and with cuBLASLt, draws tokens, and compacts the cache. In each
 * repetition, a different call fails, or the device has a different amount of memory. Every
 * failure must give a status and an error message, no memory may stay allocated, and the next
 * use must succeed. A real GPU cannot be made to fail, so the test uses the backend of a real
 * GPU only once.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends.h"
#include "tests/each_backend.h"
#include "tests/emu/emu_control.h"
#include "tests/random_model.h"

enum { BATCH = 72, CACHE = 96, VOCABULARY = 70, DEVICE_FAULT = 719, OUT_OF_MEMORY = 2 };

#ifdef __SANITIZE_ADDRESS__
enum { QUICK_STEP = 11 };
#else
enum { QUICK_STEP = 5 };
#endif

static const struct random_shape shape = {
    "small", 2, 32, 2, 1, 16, 40, VOCABULARY, 16, ESP_BF16, false, false, false, false, false};

struct controls {
    void (*fail_at)(long, int, bool);
    long (*calls)(void);
    const char *(*failed_call)(void);
    int (*leaks)(char *, size_t);
    void (*set_memory)(size_t);
    void (*set_devices)(int);
    void (*set_driver)(int);
    void (*set_lt)(int);
    void (*set_heuristic)(enum emu_heuristic);
    void (*set_node_bytes)(size_t);
    size_t (*memory_used)(void);
    size_t (*memory_peak)(void);
};

/* Looks up the emulator's functions that make calls fail. Returns false on a real GPU. */
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
    *(void **)&c->set_devices = dlsym(plugin, "emu_set_devices");
    *(void **)&c->set_driver = dlsym(plugin, "emu_set_driver");
    *(void **)&c->set_lt = dlsym(plugin, "emu_set_lt");
    *(void **)&c->set_heuristic = dlsym(plugin, "emu_set_heuristic");
    *(void **)&c->set_node_bytes = dlsym(plugin, "emu_set_node_bytes");
    *(void **)&c->memory_used = dlsym(plugin, "emu_memory_used");
    *(void **)&c->memory_peak = dlsym(plugin, "emu_memory_peak");
    CHECK(c->fail_at && c->calls && c->failed_call && c->leaks && c->set_memory &&
              c->set_devices && c->set_driver && c->set_lt && c->set_heuristic &&
              c->set_node_bytes && c->memory_used && c->memory_peak,
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
    long calls; /* number of calls before the first release */
};

/* Opens the model, the cache and the rows on the open backend. */
static int open_parts(struct life *l)
{
    const struct esp_backend_ops *ops = l->backend->ops;
    int status = ops->weights_open(&l->weights, l->backend, &l->model->desc, NULL, NULL, l->err,
                                   sizeof l->err);
    if (status == 0)
        status = ops->cache_open(&l->cache, l->weights, CACHE, BATCH, l->err, sizeof l->err);
    if (status == 0)
        status = ops->rows_open(&l->rows, l->backend, BATCH, VOCABULARY, l->err, sizeof l->err);
    return status;
}

/* Opens the backend and everything on it. If the model is divided, two GPUs are used. */
static int open_all(struct life *l)
{
    const struct esp_rank_options two = {.ranks = 2, .planned = true};
    int status = esp_backend_cuda.open(&l->backend, 0, l->err, sizeof l->err);
    if (status == 0 && l->model->desc.divided)
        status = l->backend->ops->start_ranks(l->backend, &two, l->err, sizeof l->err);
    return status < 0 ? status : open_parts(l);
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
    const int32_t which[] = {0, 2}, kept[] = {BATCH + 1, BATCH + 3};
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
        status = ops->argmax(l->rows, which, 2, ids, ESP_NOW);
    if (status == 0)
        status = ops->top_k(l->rows, which, 2, 4, ids, values, ESP_NOW);
    if (status == 0)
        status = ops->softmax(l->rows, which, 2, &sampling);
    if (status == 0)
        status = ops->gather(l->rows, which, ids, 2, numbers, ESP_NOW);
    if (status == 0)
        status = ops->sample(l->rows, which, u, 2, 1, NULL, 0, ids, numbers, ESP_NOW);
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

/* Uses the backend once. Returns the status of the first call that failed. If a call failed,
 * `err` has its error message. */
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

/* Repeats the use of the backend. Each time, a different call fails: first call 1, then every
 * step-th call after it. `ever_after` has the same meaning as for emu_fail_at(). */
static void fail_each(const struct controls *c, struct random_model *model, int error,
                      bool ever_after, int step)
{
    struct life l;
    char left[200], name[60];
    c->fail_at(0, 0, false);
    int status = live(&l, model, c);
    long calls = c->calls(), last = l.calls;
    CHECK(status == 0 && last > 50, "without a failing call: status %d after %ld calls", status,
          last);
    for (long call = 1; call <= calls; call += check_quick() ? QUICK_STEP * step : step) {
        c->fail_at(call, error, ever_after);
        status = live(&l, model, c);
        snprintf(name, sizeof name, "%s", c->failed_call());
        c->fail_at(0, 0, false);
        int leaks = c->leaks(left, sizeof left);
        CHECK(leaks == 0, "%s (call %ld) failed: %s were not released", name, call, left);
        bool gives_back = strstr(name, "Destroy") || strstr(name, "Free");
        /* If one of these calls fails, the backend reports no failure: it uses its own product
         * kernel or single launches instead. After a failure of cudaSetDevice(), a real GPU
         * would refuse the calls for the other device, but the emulator does not. */
        bool replaced = strstr(name, "GetHeuristic") ||
                        (model->desc.divided && strstr(name, "SetDevice")) ||
                        (error == OUT_OF_MEMORY &&
                         (strstr(name, "GraphInstantiate") || strstr(name, "GraphUpload")));
        CHECK(gives_back || replaced || call > last || status < 0,
              "the failure of %s (call %ld) was not reported", name, call);
        CHECK(status == 0 || l.err[0], "%s (call %ld) failed without an error message", name,
              call);
        CHECK(error != OUT_OF_MEMORY || status == 0 || status == ESP_E_MEMORY ||
                  status == ESP_E_DEVICE || status == ESP_E_UNSUPPORTED,
              "%s (call %ld): status %d", name, call, status);
    }
    status = live(&l, model, c);
    CHECK(status == 0, "afterwards: %d, %s", status, l.err);
}

TEST(every_failing_call_gives_a_status_and_leaks_nothing)
{
    struct controls c;
    struct life l;
    struct random_shape small = shape;
    struct random_model *model = calloc(1, sizeof *model);
    /* a second layer would make the same calls */
    small.layers = check_quick() ? 1 : shape.layers;
    random_model_make(model, &small, 3);
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

TEST(every_failing_call_with_two_gpus_gives_a_status_and_leaks_nothing)
{
    static const struct random_shape wide = {"wide", 1,     64,         2,     2,
                                             16,     80,    VOCABULARY, 16,    ESP_BF16,
                                             false,  false, false,      false, false};
    struct controls c;
    if (!find_controls(&c))
        return;
    struct random_model *model = calloc(1, sizeof *model);
    random_model_make(model, &wide, 3);
    model->desc.divided = true;
    c.set_devices(2);
    /* the backend reads a part of this memory to measure the device's speed */
    c.set_memory((size_t)256 << 20);
    fail_each(&c, model, DEVICE_FAULT, false, 41);
    fail_each(&c, model, OUT_OF_MEMORY, false, 151);
    c.set_memory((size_t)4 << 30);
    c.set_devices(1);
    random_model_free(model);
    free(model);
}

TEST(too_little_memory_is_reported_and_leaks_nothing)
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
        CHECK(leaks == 0, "with %d/40 of the memory, %s were not released", part, left);
        CHECK(part == 40 ? status == 0 : status == ESP_E_MEMORY && strstr(l.err, "memory"),
              "%d/40 of the memory: %d, %s", part, status, l.err);
    }
    c.set_memory((size_t)4 << 30);
    random_model_free(model);
    free(model);
}

/* -------------------------------------------------------------- the backend after a failure */

enum { ASKED = 2, BEST = 4 };

/* Stores the results of calls. The test below makes these calls fail. */
struct answers {
    int32_t ids[ASKED * BEST];
    float values[VOCABULARY];
    double numbers[ESP_RATIO_CLASSES], more[ESP_RATIO_CLASSES];
};

static const int32_t asked[ASKED] = {0, 2};

static int ask_step(struct life *l, struct answers *to)
{
    const struct esp_step step = {{0.8, 1, 0}, BEST, to->ids, to->values, ESP_NOW};
    const int32_t token = 3, position = BATCH;
    struct esp_batch batch = {.rows = 1,
                              .tokens = &token,
                              .positions = &position,
                              .first = BATCH,
                              .prefix = BATCH,
                              .logits = l->rows,
                              .step = &step};
    return l->backend->ops->forward(l->cache, &batch);
}

static int ask_argmax(struct life *l, struct answers *to)
{
    return l->backend->ops->argmax(l->rows, asked, ASKED, to->ids, ESP_NOW);
}

static int ask_top_k(struct life *l, struct answers *to)
{
    return l->backend->ops->top_k(l->rows, asked, ASKED, BEST, to->ids, to->values, ESP_NOW);
}

static int ask_gather(struct life *l, struct answers *to)
{
    return l->backend->ops->gather(l->rows, asked, asked, ASKED, to->numbers, ESP_NOW);
}

static int ask_gather_later(struct life *l, struct answers *to)
{
    return l->backend->ops->gather(l->rows, asked, asked, ASKED, to->numbers, ESP_LATER);
}

static int ask_sample(struct life *l, struct answers *to)
{
    const double u[ASKED] = {0.2, 0.7};
    return l->backend->ops->sample(l->rows, asked, u, ASKED, 1, NULL, 0, to->ids, to->numbers,
                                   ESP_NOW);
}

static int ask_combine(struct life *l, struct answers *to)
{
    const struct esp_combination f = {1, 0, -1, 1};
    return l->backend->ops->combine(l->rows, 0, l->rows, 2, &f, NULL, 0, to->numbers);
}

static int ask_masses(struct life *l, struct answers *to)
{
    return l->backend->ops->ratio_masses(l->rows, 0, l->rows, 2, to->numbers, to->more);
}

static int ask_row(struct life *l, struct answers *to)
{
    return l->backend->ops->read_row(l->rows, 0, to->values);
}

/* Requests deferred results, then makes a call that is refused without reaching the device. */
static int ask_and_be_refused(struct life *l, struct answers *to)
{
    int status = ask_gather_later(l, to);
    return status < 0 ? status : l->backend->ops->argmax(l->rows, asked, -1, to->ids, ESP_NOW);
}

static int ask_twice(struct life *l, struct answers *to)
{
    int status = ask_gather_later(l, to);
    return status < 0 ? status : ask_argmax(l, to);
}

/* Prepares rows with probabilities and a cache with a prompt. */
static int make_ready(struct life *l)
{
    const struct esp_sampling sampling = {0.8, 1, 0};
    int status = pass(l, 0, BATCH);
    if (status == 0)
        status = l->backend->ops->softmax(l->rows, asked, ASKED, &sampling);
    return status == 0
               ? l->backend->ops->argmax(l->rows, asked, ASKED, (int32_t[ASKED]){0}, ESP_NOW)
               : status;
}

static void open_life(struct life *l, struct random_model *model)
{
    memset(l, 0, sizeof *l);
    l->model = model;
    random_model_make(model, &shape, 3);
    int status = open_all(l);
    CHECK(status == 0, "%d, %s", status, l->err);
    status = make_ready(l);
    CHECK(status == 0, "%d, %s", status, l->backend->ops->failure(l->backend));
}

static void close_parts(struct life *l)
{
    const struct esp_backend_ops *ops = l->backend->ops;
    ops->rows_close(l->rows);
    ops->cache_close(l->cache);
    ops->weights_close(l->weights);
    ops->close(l->backend);
}

static void close_life(struct life *l)
{
    close_parts(l);
    random_model_free(l->model);
    free(l->model);
}

TEST(a_failure_discards_all_deferred_results)
{
    static int (*const ask[])(struct life *, struct answers *) = {
        ask_step,    ask_argmax, ask_top_k, ask_gather,         ask_sample,
        ask_combine, ask_masses, ask_row,   ask_and_be_refused, ask_twice};
    static struct answers here, untouched;
    struct controls c;
    struct life l;
    if (!find_controls(&c))
        return;
    open_life(&l, calloc(1, sizeof *l.model));
    memset(&untouched, 0x5a, sizeof untouched);
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        long call = 0, calls;
        do {
            char name[60];
            c.fail_at(++call, DEVICE_FAULT, false);
            int status = ask[i](&l, &here);
            calls = c.calls();
            snprintf(name, sizeof name, "%s", c.failed_call());
            c.fail_at(0, 0, false);
            CHECK(status < 0 || calls < call, "call %zu: the failure of %s was not reported", i,
                  name);
            here = untouched; /* after a failure, no call may write to `here` */
            status = make_ready(&l);
            CHECK(status == 0, "after call %zu, in which %s failed: status %d, %s", i, name,
                  status, l.backend->ops->failure(l.backend));
            CHECK(memcmp(&here, &untouched, sizeof here) == 0,
                  "call %zu: results were written although %s had failed", i, name);
        } while (call < calls);
    }
    close_life(&l);
}

/* ------------------------------------------------------------------ unreported failures */

static void mark_time(struct life *l)
{
    l->backend->ops->mark(l->backend, 1);
}

static void measure_time(struct life *l)
{
    CHECK(l->backend->ops->between(l->backend, 0, 1) >= 0);
}

static void ask_memory(struct life *l)
{
    l->backend->ops->memory_free(l->backend);
}

static void measure_reading(struct life *l)
{
    CHECK(l->backend->ops->read_rate(l->backend, 1 << 16) >= 0);
}

static void open_and_close_others(struct life *l)
{
    const struct esp_backend_ops *ops = l->backend->ops;
    struct life other = *l;
    other.weights = NULL;
    other.cache = NULL;
    other.rows = NULL;
    if (ops->weights_open(&other.weights, l->backend, &l->model->desc, NULL, NULL, other.err,
                          sizeof other.err) < 0)
        return;
    if (ops->cache_open(&other.cache, other.weights, CACHE, BATCH, other.err,
                        sizeof other.err) == 0)
        ops->cache_close(other.cache);
    if (ops->rows_open(&other.rows, l->backend, BATCH, VOCABULARY, other.err,
                       sizeof other.err) == 0)
        ops->rows_close(other.rows);
    ops->weights_close(other.weights);
}

TEST(an_unreported_failure_does_not_affect_the_next_launch)
{
    static void (*const quiet[])(struct life *) = {mark_time, measure_time, ask_memory,
                                                   measure_reading, open_and_close_others};
    struct controls c;
    struct life l;
    if (!find_controls(&c))
        return;
    open_life(&l, calloc(1, sizeof *l.model));
    l.backend->ops->mark(l.backend, 0);
    l.backend->ops->mark(l.backend, 1);
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        long call = 0, calls;
        do {
            char name[60];
            c.fail_at(++call, DEVICE_FAULT, false);
            quiet[i](&l);
            calls = c.calls();
            snprintf(name, sizeof name, "%s", c.failed_call());
            c.fail_at(0, 0, false);
            int status = pass(&l, 0, 1);
            CHECK(status == 0, "after %s failed in case %zu: %d, %s", name, i, status,
                  l.backend->ops->failure(l.backend));
        } while (call < calls);
    }
    close_life(&l);
}

/* ------------------------------------------------------------------ drivers */

TEST(a_driver_that_is_too_old_is_reported)
{
    struct controls c;
    struct esp_backend *backend = NULL;
    char err[300] = "";
    if (!find_controls(&c))
        return;
    c.set_driver(12040);
    int status = esp_backend_open(&backend, "cuda", 0, 0, err, sizeof err);
    CHECK(status == ESP_E_DEVICE && strstr(err, "driver") && strstr(err, "12.4") &&
              strstr(err, "CUDA 13") && strstr(err, "driver 580"),
          "%d, %s", status, err);
    *err = '\0';
    status = esp_backend_open(&backend, "auto", 0, 0, err, sizeof err);
    CHECK(status == 0 && backend->ops == &esp_backend_cpu && strstr(err, "driver"), "%d, %s",
          status, err);
    backend->ops->close(backend);
    c.set_driver(0); /* with backend "auto", a missing driver must not be reported */
    status = esp_backend_open(&backend, "auto", 0, 0, err, sizeof err);
    CHECK(status == 0 && backend->ops == &esp_backend_cpu && !*err, "%d, %s", status, err);
    backend->ops->close(backend);
    c.set_driver(13000);
    status = esp_backend_open(&backend, "cuda", 0, 0, err, sizeof err);
    CHECK(status == 0, "%d, %s", status, err);
    backend->ops->close(backend);
}

/* --------------------------------------------------------------- a backend without cuBLASLt */

static void read_logits(struct life *l, bool exact, float *logits)
{
    memset(l->err, 0, sizeof l->err);
    l->backend = NULL;
    int status = esp_backend_open(&l->backend, "cuda", 0, 0, l->err, sizeof l->err);
    CHECK(status == 0, "%d, %s", status, l->err);
    const struct esp_backend_ops *ops = l->backend->ops;
    ops->set_exact(l->backend, exact);
    CHECK(open_parts(l) == 0, "%s", l->err);
    status = pass(l, 0, BATCH);
    CHECK(status == 0, "%d, %s", status, ops->failure(l->backend));
    for (int i = 0; i < BATCH; i++)
        CHECK(ops->read_row(l->rows, i, logits + i * VOCABULARY) == 0);
}

/* Without cuBLASLt, the backend's own kernels must compute all products. */
TEST(products_work_without_cublaslt)
{
    static float with[BATCH * VOCABULARY], exact[BATCH * VOCABULARY],
        without[BATCH * VOCABULARY];
    static const int versions[] = {13, 12, 11};
    double error = 0, norm = 0;
    struct controls c;
    struct life l = {.model = calloc(1, sizeof *l.model)};
    if (!find_controls(&c))
        return;
    random_model_make(l.model, &shape, 3);
    read_logits(&l, true, exact);
    CHECK(!strstr(l.backend->ops->device(l.backend), "cuBLASLt"));
    close_parts(&l);
    c.set_lt(0);
    read_logits(&l, false, without);
    CHECK(strstr(l.backend->ops->device(l.backend), "no cuBLASLt"), "%s",
          l.backend->ops->device(l.backend));
    close_parts(&l);
    for (int i = 0; i < BATCH * VOCABULARY; i++) {
        error += (without[i] - exact[i]) * (without[i] - exact[i]);
        norm += exact[i] * exact[i];
    }
    CHECK(error < 1e-4 * norm, "off by %g", sqrt(error / norm));
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        c.set_lt(versions[i]);
        read_logits(&l, false, with);
        CHECK(!strstr(l.backend->ops->device(l.backend), "cuBLASLt"),
              "cuBLASLt of version %d was not found", versions[i]);
        CHECK(memcmp(with, without, sizeof with) != 0,
              "products of BATCH = %d rows do not use cuBLASLt", (int)BATCH);
        close_parts(&l);
    }
    c.set_lt(13);
    random_model_free(l.model);
    free(l.model);
}

TEST(shapes_without_a_cublaslt_algorithm_use_our_own_products)
{
    static const enum emu_heuristic answers[] = {EMU_FINDS_NONE, EMU_REFUSES};
    static float with[BATCH * VOCABULARY], own[BATCH * VOCABULARY], first[BATCH * VOCABULARY];
    struct controls c;
    struct life l = {.model = calloc(1, sizeof *l.model)};
    if (!find_controls(&c))
        return;
    random_model_make(l.model, &shape, 3);
    read_logits(&l, false, with);
    close_parts(&l);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        double error = 0, norm = 0;
        c.set_heuristic(answers[i]);
        read_logits(&l, false, own);
        close_parts(&l);
        c.set_heuristic(EMU_FINDS);
        for (int k = 0; k < BATCH * VOCABULARY; k++) {
            error += (own[k] - with[k]) * (own[k] - with[k]);
            norm += with[k] * with[k];
        }
        CHECK(error < 1e-4 * norm, "off by %g", sqrt(error / norm));
        CHECK(memcmp(own, with, sizeof own) != 0, "products still use cuBLASLt");
        CHECK(i == 0 || memcmp(own, first, sizeof own) == 0);
        memcpy(first, own, sizeof own);
    }
    random_model_free(l.model);
    free(l.model);
}

/* ------------------------------------------------------------------ memory that graphs take */

/* Captures graphs. Each of their nodes takes `node` bytes of the device's memory. All graphs
 * may take `graph_bytes`, and the device has `memory` bytes. Returns how many bytes the graphs
 * took. */
static size_t take_graphs(const struct controls *c, struct random_model *model, size_t node,
                          size_t graph_bytes, size_t memory, float *logits)
{
    struct life l = {.model = model};
    const size_t before = c->memory_used();
    model->desc.graph_bytes = graph_bytes;
    c->set_node_bytes(node);
    c->set_memory(memory);
    CHECK(open_all(&l) == 0,
          "opening failed with %zu bytes for a node and a limit of %zu bytes: %s", node,
          graph_bytes, l.err);
    const size_t open = c->memory_used() - before;
    CHECK(pass(&l, 0, 4) == 0, "%s", l.backend->ops->failure(l.backend));
    for (int i = 0; i < 4; i++)
        CHECK(l.backend->ops->read_row(l.rows, i, logits + i * VOCABULARY) == 0);
    close_parts(&l);
    c->set_node_bytes(0);
    c->set_memory((size_t)4 << 30);
    CHECK(c->memory_used() == before, "the memory of graphs was not released");
    return open;
}

TEST(graphs_use_only_the_allowed_memory)
{
    enum { NODE = 10000, ALLOWED = 1000000 };
    static float with[4 * VOCABULARY], without[4 * VOCABULARY];
    const size_t large = (size_t)4 << 30;
    struct controls c;
    if (!find_controls(&c))
        return;
    struct random_model *model = calloc(1, sizeof *model);
    random_model_make(model, &shape, 3);
    const size_t none = take_graphs(&c, model, 0, 0, large, with);
    const size_t all = take_graphs(&c, model, NODE, 0, large, without) - none;
    CHECK(memcmp(with, without, sizeof with) == 0);
    CHECK(all > 2 * ALLOWED, "all graphs take %zu bytes", all);
    const size_t some = take_graphs(&c, model, NODE, ALLOWED, large, without) - none;
    CHECK(some >= ALLOWED && some < ALLOWED + 30 * NODE, "%zu bytes of %d", some, ALLOWED);
    CHECK(memcmp(with, without, sizeof with) == 0);
    const size_t one = take_graphs(&c, model, NODE, 1, large, without) - none;
    CHECK(one > 0 && one < 30 * NODE, "the first graph takes %zu bytes", one);
    CHECK(memcmp(with, without, sizeof with) == 0);
    const size_t left = take_graphs(&c, model, large, 0, large, without);
    CHECK(left == none, "with a graph that does not fit, %zu bytes are used, not %zu", left,
          none);
    CHECK(memcmp(with, without, sizeof with) == 0);
    random_model_free(model);
    free(model);
}

/* ------------------------------------------------------------------ several devices */

static void *use_elsewhere(void *life)
{
    struct life *l = life;
    return use_all(l) == 0 ? life : NULL;
}

/* In CUDA, each thread has its own current device. Callers of the backend must not notice
 * this. */
TEST(a_device_serves_every_thread)
{
    struct controls c;
    struct life lives[2] = {{.backend = NULL}};
    struct random_model *model = calloc(1, sizeof *model);
    if (!find_controls(&c)) {
        free(model);
        return;
    }
    random_model_make(model, &shape, 3);
    c.set_devices(2);
    for (int i = 0; i < 2; i++) {
        struct life *l = &lives[i];
        l->model = model;
        int status = esp_backend_open(&l->backend, "cuda", 0, i, l->err, sizeof l->err);
        CHECK(status == 0, "%d: %s", i, l->err);
        status = open_parts(l);
        CHECK(status == 0, "%d: %s", i, l->err);
    }
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *used;
        struct life *l = &lives[i];
        CHECK(use_all(l) == 0, "%s", l->backend->ops->failure(l->backend));
        CHECK(pthread_create(&thread, NULL, use_elsewhere, l) == 0);
        pthread_join(thread, &used);
        CHECK(used, "device %d cannot be used by another thread: %s", i,
              l->backend->ops->failure(l->backend));
    }
    for (int i = 0; i < 2; i++)
        close_parts(&lives[i]);
    c.set_devices(1);
    random_model_free(model);
    free(model);
}
