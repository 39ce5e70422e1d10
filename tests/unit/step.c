/* step.c - tests draft steps and deferred results (ESP_LATER). Both exist only to save time. A
 * step must be bit-identical to a pass, softmax and top-k in sequence, whether or not it runs
 * as one graph (few rows, small k). A deferred result must equal the result of an immediate
 * call. On the emulator, the test counts how many kernels and waits are saved. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/drafters/drafter.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"
#include "engine/session_parts.h"

enum { CACHE = 200, BATCH = 80, MOST_K = 100, LONG = 17000 };

/* One block of threads processes a short row. A long row is divided into parts. */
static const struct random_shape shapes[] = {
    {"short rows", 2, 32, 2, 1, 16, 40, 150, 16, ESP_BF16, false, false, false, false, false},
    {"long rows", 1, 16, 1, 1, 16, 16, LONG, 16, ESP_F16, false, false, false, true, false},
};

static const struct esp_sampling samplings[] = {
    {.temperature = 1, .top_p = 1},
    {.temperature = 0.6, .top_p = 1, .top_k = 7},
    {.temperature = 1.3, .top_p = 0.8},
    {.temperature = 0.05, .top_p = 0.95, .top_k = 40},
};

struct setup {
    struct random_model model;
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *rows[2];
    int32_t tokens[BATCH], positions[BATCH], at[BATCH];
};

static void open_setup(struct setup *s, const struct random_shape *shape,
                       struct esp_backend *backend)
{
    unsigned long long seed = 5;
    char err[200] = "";
    memset(s, 0, sizeof *s);
    s->ops = backend->ops;
    random_model_make(&s->model, shape, 3);
    CHECK(s->ops->weights_open(&s->weights, backend, &s->model.desc, NULL, NULL, err,
                               sizeof err) == 0,
          "%s", err);
    CHECK(s->ops->cache_open(&s->cache, s->weights, CACHE, BATCH, err, sizeof err) == 0, "%s",
          err);
    for (int i = 0; i < 2; i++)
        CHECK(s->ops->rows_open(&s->rows[i], backend, BATCH, shape->vocabulary, err,
                                sizeof err) == 0,
              "%s", err);
    for (int i = 0; i < BATCH; i++) {
        s->tokens[i] = (int32_t)(check_uniform(&seed) * shape->vocabulary);
        s->positions[i] = i;
    }
}

static void close_setup(struct setup *s)
{
    for (int i = 0; i < 2; i++)
        s->ops->rows_close(s->rows[i]);
    s->ops->cache_close(s->cache);
    s->ops->weights_close(s->weights);
    random_model_free(&s->model);
}

/* Makes a batch that computes the logits of those rows that have an index divisible by `every`.
 * The logits are stored in reverse order. */
static struct esp_batch batch_of(struct setup *s, int count, int every, int *wanted)
{
    *wanted = 0;
    for (int i = 0; i < count; i++)
        s->at[i] = i % every ? -1 : (count - 1 - i) % BATCH;
    for (int i = 0; i < count; i++)
        *wanted += s->at[i] >= 0;
    return (struct esp_batch){.rows = count,
                              .tokens = s->tokens,
                              .positions = s->positions,
                              .logits = s->rows[0],
                              .logits_row = s->at};
}

struct outcome {
    int32_t ids[BATCH * MOST_K];
    float values[BATCH * MOST_K];
};

static void check_step(struct setup *s, int count, int every,
                       const struct esp_sampling *sampling, int k, bool deferred)
{
    static struct outcome want, got;
    static float row[2][LONG];
    int32_t which[BATCH], first;
    int wanted, n = 0;
    struct esp_batch batch = batch_of(s, count, every, &wanted);
    for (int i = 0; i < count; i++)
        if (s->at[i] >= 0)
            which[n++] = s->at[i];
    CHECK(s->ops->forward(s->cache, &batch) == 0);
    CHECK(s->ops->softmax(s->rows[0], which, n, sampling) == 0);
    CHECK(s->ops->top_k(s->rows[0], which, n, k, want.ids, want.values, ESP_NOW) == 0);

    const struct esp_step step = {*sampling, k, got.ids, got.values,
                                  deferred ? ESP_LATER : ESP_NOW};
    memset(&got, 0xff, sizeof got);
    batch.logits = s->rows[1];
    batch.step = &step;
    CHECK(s->ops->forward(s->cache, &batch) == 0);
    if (deferred) /* any call that waits also delivers deferred results */
        CHECK(s->ops->argmax(s->rows[0], which, 1, &first, ESP_NOW) == 0 &&
              first == want.ids[0]);
    size_t answers = (size_t)n * (size_t)k;
    CHECK(memcmp(got.ids, want.ids, answers * sizeof *got.ids) == 0 &&
              memcmp(got.values, want.values, answers * sizeof *got.values) == 0,
          "%d rows, %d answers, k %d: others", count, n, k);
    CHECK(got.ids[answers] == -1, "more results were written than there are rows");
    for (int i = 0; i < n; i += 1 + n / 3) {
        for (int m = 0; m < 2; m++)
            CHECK(s->ops->read_row(s->rows[m], which[i], row[m]) == 0);
        CHECK(memcmp(row[0], row[1], (size_t)s->rows[0]->vocabulary * sizeof(float)) == 0,
              "%d rows: another distribution", count);
    }
}

EACH_BACKEND(a_step_is_a_pass_and_softmax_and_top_k)
{
    static const int counts[] = {1, 3, 16, 21, 64, 70}, ks[] = {1, 5, 64, MOST_K};
    struct setup s;
    open_setup(&s, &shapes[0], backend);
    for (int c = 0; c < 6; c++)
        for (int i = 0; i < 4; i++)
            check_step(&s, counts[c], 1 + (c + i) % 3, &samplings[i], ks[(c + i) % 4], i % 2);
    close_setup(&s);
    open_setup(&s, &shapes[1], backend);
    for (int i = 0; i < 4; i++)
        check_step(&s, 1 + i, 1, &samplings[i], ks[i], i % 2);
    close_setup(&s);
}

EACH_BACKEND(a_step_works_with_rows_of_another_vocabulary)
{
    static const int vocabulary[] = {40, 170};
    struct setup s;
    char err[200];
    for (int v = 0; v < 2; v++) {
        open_setup(&s, &shapes[0], backend);
        for (int i = 0; i < 2; i++) {
            s.ops->rows_close(s.rows[i]);
            CHECK(s.ops->rows_open(&s.rows[i], backend, BATCH, vocabulary[v], err,
                                   sizeof err) == 0);
        }
        check_step(&s, 4, 1, &samplings[1], 6, false);
        close_setup(&s);
    }
}

EACH_BACKEND(invalid_steps_are_refused)
{
    int32_t ids[4];
    float values[4];
    const struct esp_sampling plain = {.temperature = 1, .top_p = 1}, cold = {.top_p = 1};
    const struct esp_step bad[] = {{plain, 0, ids, values, ESP_NOW},
                                   {plain, 151, ids, values, ESP_NOW},
                                   {plain, 1, NULL, values, ESP_NOW},
                                   {plain, 1, ids, NULL, ESP_NOW},
                                   {cold, 1, ids, values, ESP_NOW}};
    struct setup s;
    int wanted;
    open_setup(&s, &shapes[0], backend);
    struct esp_batch batch = batch_of(&s, 1, 1, &wanted);
    for (int i = 0; i < 5; i++) {
        batch.step = &bad[i];
        CHECK(s.ops->forward(s.cache, &batch) == ESP_E_ARGUMENT, "step %d", i);
    }
    batch.step = &(struct esp_step){plain, 1, ids, values, ESP_NOW};
    batch.logits = NULL;
    CHECK(s.ops->forward(s.cache, &batch) == ESP_E_ARGUMENT);
    close_setup(&s);
}

/* If a deferred call meets NaN, the next call that waits must report it. */
EACH_BACKEND(a_deferred_answer_does_not_hide_a_value_that_is_not_a_number)
{
    static float bad[150];
    int32_t which = 2, id;
    double value;
    struct setup s;
    open_setup(&s, &shapes[0], backend);
    bad[7] = NAN;
    CHECK(s.ops->write_row(s.rows[0], 2, bad) == 0);
    int first = s.ops->argmax(s.rows[0], &which, 1, &id, ESP_LATER);
    int second = s.ops->gather(s.rows[1], &which, &(int32_t){1}, 1, &value, ESP_NOW);
    CHECK(first == ESP_E_NUMERIC || second == ESP_E_NUMERIC, "%d, then %d", first, second);
    CHECK(s.ops->gather(s.rows[1], &which, &(int32_t){1}, 1, &value, ESP_NOW) == ESP_OK,
          "it stays");
    close_setup(&s);
}

/* ------------------------------------------------------------------ savings */

/* Holds a small model on a backend. The tests run passes of one row with it. */
struct small {
    struct random_model model;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *rows;
};

static const int32_t first_token = 1, first_position = 0;

static struct esp_batch open_small(struct small *s, struct esp_backend *backend,
                                   struct random_shape shape, int layers, bool mixed)
{
    const struct esp_backend_ops *ops = backend->ops;
    char err[200] = "";
    shape.layers = layers;
    random_model_make(&s->model, &shape, 3);
    for (int i = 0; i < layers && mixed; i++)
        random_model_mix(&s->model, i, 2, 20);
    for (int i = 0; i < layers && esp_dtype_quantised(shape.dtype); i++) {
        s->model.layers[i].value = s->model.layers[i].key;
        s->model.layers[i].up = s->model.layers[i].gate;
    }
    CHECK(ops->weights_open(&s->weights, backend, &s->model.desc, NULL, NULL, err,
                            sizeof err) == 0 &&
              ops->cache_open(&s->cache, s->weights, 8, 4, err, sizeof err) == 0 &&
              ops->rows_open(&s->rows, backend, 4, shape.vocabulary, err, sizeof err) == 0,
          "%s", err);
    return (struct esp_batch){
        .rows = 1, .tokens = &first_token, .positions = &first_position, .logits = s->rows};
}

static void close_small(struct small *s, struct esp_backend *backend)
{
    backend->ops->rows_close(s->rows);
    backend->ops->cache_close(s->cache);
    backend->ops->weights_close(s->weights);
    random_model_free(&s->model);
}

/* Returns the number of kernels in a pass. */
static long kernels_of(struct esp_backend *backend, const struct random_shape *shape,
                       int layers, bool mixed, long (*run)(void))
{
    struct small small;
    float values[150];
    const struct esp_batch batch = open_small(&small, backend, *shape, layers, mixed);
    const long before = run();
    CHECK(backend->ops->forward(small.cache, &batch) == 0 &&
          backend->ops->read_row(small.rows, 0, values) == 0);
    const long count = run() - before;
    close_small(&small, backend);
    return count;
}

/* A layer takes five kernels: one product, attention, and three products. Norms are separate
 * kernels with fp16 and with LayerNorm. (A parallel residual has one kernel for both norms.) A
 * mixture has separate kernels for the router, the order of the rows, and the sum. With
 * quantised blocks, tensors of different types are separate products. So here, queries, keys
 * and values are not computed by a single kernel. Norms and activation functions are separate
 * kernels, too. */
TEST(a_layer_takes_five_kernels_and_eight_with_experts)
{
    static const struct {
        struct random_shape shape;
        bool mixed;
        int most;
    } models[] = {
        {{"llama", 2, 32, 2, 1, 16, 40, 150, 16, ESP_BF16, false, false, false, false, false},
         false,
         5},
        {{"qwen3", 2, 32, 2, 1, 16, 40, 150, 16, ESP_BF16, false, false, false, true, true},
         false,
         5},
        {{"experts", 2, 32, 2, 1, 16, 40, 150, 16, ESP_BF16, false, false, false, false, false},
         true,
         8},
        {{"blocks", 2, 256, 4, 2, 64, 256, 150, 16, ESP_Q8_0, false, false, false, false,
          false},
         false,
         9},
        {{"fp16", 2, 32, 2, 1, 16, 40, 150, 16, ESP_F16, false, false, false, false, false},
         false,
         7},
        {{"neox", 2, 32, 2, 2, 16, 40, 150, 8, ESP_BF16, true, true, true, false, false},
         false,
         6},
    };
    long (*run)(void);
    if (cuda_is_real())
        return;
    struct esp_backend *backend = open_cuda();
    *(void **)&run = dlsym(dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW), "emu_kernels_run");
    CHECK(run, "no emulator");
    for (int exact = 0; exact < 2; exact++) {
        backend->ops->set_exact(backend, exact);
        for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
            const struct random_shape *shape = &models[i].shape;
            const long one = kernels_of(backend, shape, 1, models[i].mixed, run);
            const long two = kernels_of(backend, shape, 2, models[i].mixed, run);
            CHECK(two - one == models[i].most, "%s: %ld, not %d", shape->name, two - one,
                  models[i].most);
        }
    }
    backend->ops->close(backend);
}

/* Checks that a pass of one row runs the kernels that were predicted for it. */
static void check_prediction(struct esp_backend *backend, const struct esp_model_desc *desc,
                             const struct esp_kernel_time *run, int count)
{
    enum { MOST = 16 };
    static const struct esp_device_speed speed = {1e12, 1e9}, slow = {5e11, 1e9}, no = {0, 1e9};
    struct esp_kernel_time kernel[MOST], slower[MOST];
    CHECK(backend->ops->predict(backend, desc, 1, 0, &speed, kernel, MOST) == count);
    CHECK(backend->ops->predict(backend, desc, 1, 0, &slow, slower, MOST) == count);
    for (int i = 0; i < count; i++)
        CHECK(strcmp(kernel[i].name, run[i].name) == 0 && kernel[i].count == run[i].count &&
                  kernel[i].bytes == run[i].bytes && kernel[i].seconds > 0 &&
                  slower[i].seconds >= kernel[i].seconds,
              "%s: %d times, %g bytes, %g s", kernel[i].name, kernel[i].count, kernel[i].bytes,
              kernel[i].seconds);
    CHECK(backend->ops->predict(backend, desc, 65, 0, &speed, kernel, MOST) == ESP_E_ARGUMENT &&
          backend->ops->predict(backend, desc, 1, 0, &no, kernel, MOST) == ESP_E_ARGUMENT);
}

/* Tests the times that tests/cuda/shapes prints. */
TEST(the_kernels_of_a_pass_are_timed_and_make_the_same_logits)
{
    static const struct {
        const char *name;
        int count;
        bool reads;
    } wanted[] = {
        {"embedding", 1, false}, {"norm", 2, false},  {"queries, keys, values", 2, true},
        {"attention", 2, true},  {"output", 2, true}, {"gate and up", 2, true},
        {"down", 2, true},       {"head", 1, true}};
    enum { KINDS = sizeof wanted / sizeof *wanted };
    struct esp_backend *backend = open_cuda();
    const struct esp_backend_ops *ops = backend->ops;
    struct small small;
    struct esp_kernel_time kernel[KINDS + 1];
    float values[2][150];
    struct esp_batch batch = open_small(&small, backend, shapes[0], 2, false);
    CHECK(ops->forward(small.cache, &batch) == 0 &&
          ops->read_row(small.rows, 0, values[0]) == 0);
    const int count = ops->time_kernels(small.cache, &batch, kernel, KINDS + 1);
    CHECK(ops->read_row(small.rows, 0, values[1]) == 0);
    CHECK(memcmp(values[0], values[1], (size_t)small.rows->vocabulary * sizeof(float)) == 0);
    CHECK(count == KINDS, "%d kinds", count);
    for (int i = 0; i < KINDS; i++)
        CHECK(strcmp(kernel[i].name, wanted[i].name) == 0 &&
                  kernel[i].count == wanted[i].count && kernel[i].seconds >= 0 &&
                  (kernel[i].bytes > 0) == wanted[i].reads,
              "%s: %d times, %g s, %g bytes", kernel[i].name, kernel[i].count,
              kernel[i].seconds, kernel[i].bytes);
    CHECK(ops->time_kernels(small.cache, &batch, kernel, 1) == 1,
          "more times were written than there is room for");
    check_prediction(backend, &small.model.desc, kernel, count);
    const struct esp_step step = {.k = 1};
    batch.step = &step;
    CHECK(ops->time_kernels(small.cache, &batch, kernel, KINDS) == ESP_E_ARGUMENT);
    close_small(&small, backend);
    backend->ops->close(backend);
}

struct wait_count {
    long (*made)(void);
    long before;
    int iterations;
};

/* Returns the number of calls that draw further children of a tree's nodes. The first four
 * children of a node are drawn in the pass of the node. After that, each call draws 4, 8, 16,
 * 16, ... more children. */
static int refills(const struct esp_tree *tree)
{
    int calls = 0;
    for (int u = 0; u < tree->count; u++) {
        int children = 0;
        for (int c = 1; c < tree->count; c++)
            children += tree->nodes[c].parent == u;
        for (int have = 4, more = 4; have < children;
             have += more, more = have < 16 ? have : 16)
            calls++;
    }
    return calls;
}

/* Returns the maximum number of waits in an iteration. Greedy decoding waits once for each
 * layer of the tree and once for the verification. Verifiers that draw also wait for the
 * residual after a rejection and for the last draw. If children are drawn without replacement,
 * they also wait for the siblings' new probabilities. `nss` draws at every node, and `khisti`
 * reads ratio classes at every node. */
static int most_waits(const struct esp_iteration *it)
{
    int most = it->draft_passes + 1, refused = 0;
    if (!strncmp(it->drafter, "dyspec", 6) || !strcmp(it->drafter, "sequoia") ||
        !strcmp(it->drafter, "dynatree"))
        most += refills(&it->tree);
    if (!strcmp(it->verifier, "greedy"))
        return most;
    for (int u = 1; u < it->tree.count; u++)
        refused += it->tree.nodes[u].verdict == ESP_REJECTED && !isnan(it->tree.nodes[u].u);
    if (!strcmp(it->verifier, "nss") || !strcmp(it->verifier, "khisti"))
        return most + it->path_length + 2;
    return most + 1 + refused * (strcmp(it->verifier, "swor") ? 1 : 2);
}

static void count_waits(void *user, const struct esp_event *event)
{
    struct wait_count *w = user;
    const struct esp_iteration *it = event->iteration;
    if (event->type == ESP_EVENT_ITERATION) {
        long waits = w->made() - w->before;
        CHECK(waits >= 1 && waits <= most_waits(it), "%s with %s: %ld waits, %d draft passes",
              it->drafter, it->verifier, waits, it->draft_passes);
        w->iterations++;
    }
    if (event->type == ESP_EVENT_ITERATION || event->type == ESP_EVENT_PROMPT)
        w->before = w->made();
}

static void check_waits(struct esp_engine *engine, const char *drafter, const char *verifier,
                        struct wait_count *w)
{
    struct esp_session *session;
    char err[300] = "";
    struct esp_session_options options = {.drafter = drafter,
                                          .verifier = verifier,
                                          .values.temperature = verifier ? 1 : 0,
                                          .observer = count_waits,
                                          .user = w,
                                          .values.seed = 1};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    int32_t prompt[] = {40, 41, 42, 43};
    CHECK(esp_session_prompt(session, prompt, 4, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, 8);
    w->iterations = 0;
    for (int i = 0; i < 2 && esp_session_step(session, err, sizeof err) > 0; i++)
        continue;
    CHECK(w->iterations > 0, "%s: %s", drafter, err);
    esp_session_close(session);
}

TEST(an_iteration_waits_for_each_layer_and_for_the_verification)
{
    static const char *const drawn[][2] = {
        {"iid:K=2,L=3", "traversal"}, {"iid:K=2,L=3", "specinfer"},
        {"iid:K=3,L=2", "naivetree"}, {"iid:K=2,L=3", "khisti"},
        {"dyspec:N=12", "swor"},      {"dyspec-layer:N=12", "swor"},
        {"sequoia:N=8", "swor"},      {"dynatree:N=8,draws=topk", "nss"},
        {"dynatree:N=12", "swor"},
    };
    struct esp_engine *engine;
    struct wait_count w = {0};
    char err[300] = "";
    const struct esp_engine_options options = {.backend = "cuda", .max_nodes = 24};
    if (cuda_is_real())
        return;
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    void *plugin = dlopen(getenv("ESPALIER_CUDA_PLUGIN"), RTLD_NOW);
    *(void **)&w.made = dlsym(plugin, "emu_waits_made");
    CHECK(w.made, "no emulator");
    for (int i = 0; esp_drafters[i] && !check_quick(); i++)
        /* drafter nde needs hidden states, which this backend does not return */
        if (!esp_drafters[i]->chooser)
            check_waits(engine, esp_drafters[i]->name, NULL, &w);
    for (int i = 0; i < 9; i += check_quick() ? 4 : 1)
        check_waits(engine, drawn[i][0], drawn[i][1], &w);
    esp_engine_close(engine);
}
