/* forward.c - compares the forward pass of every backend with the reference transformer of
 * tests/random_model.c. The models belong to the families Llama and NeoX. They use every dtype,
 * and have sizes that do not fill registers. They run chains and trees. Other tests cover
 * compaction of the cache, and batches that must be refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"
#include "tests/rounding.h"

enum { CACHE = 100, BATCH = 64, MAX_VOCABULARY = 256, NODES = 40 };

static const struct random_shape shapes[] = {
    {"llama f32", 2, 64, 4, 2, 16, 96, 100, 16, ESP_F32, false, false, false, false, false},
    {"llama bf16 tied", 2, 96, 3, 3, 32, 256, 256, 32, ESP_BF16, false, false, false, true,
     false},
    {"llama f16 odd sizes", 3, 37, 5, 1, 18, 45, 33, 18, ESP_F16, false, false, true, false,
     true},
    {"llama with one of each", 1, 1, 1, 1, 2, 1, 2, 2, ESP_F32, false, false, false, false,
     false},
    {"neox parallel", 2, 64, 4, 4, 16, 256, 90, 4, ESP_F32, true, true, true, false, false},
    {"neox sequential bf16", 2, 48, 3, 3, 16, 100, 130, 16, ESP_BF16, true, false, true, false,
     false},
    {"neox f16 odd sizes", 2, 39, 3, 3, 13, 71, 47, 6, ESP_F16, true, true, true, true, false},
    /* These models have heads as wide as the heads of Llama 3.2 1B, Pythia 2.8B, Llama 3.1 8B
     * and Pythia 1B. */
    {"llama bf16 heads of 64", 1, 32, 4, 1, 64, 40, 40, 64, ESP_BF16, false, false, false,
     false, false},
    {"neox f16 heads of 80", 1, 40, 2, 2, 80, 48, 50, 20, ESP_F16, true, true, true, false,
     false},
    {"llama bf16 heads of 128", 1, 48, 2, 1, 128, 56, 60, 128, ESP_BF16, false, false, false,
     true, true},
    {"neox bf16 heads of 256", 1, 32, 2, 2, 256, 64, 40, 64, ESP_BF16, true, true, true, false,
     false},
};

/* The last four shapes are for tests of attention. Other tests do not use them. */
enum { SHAPES = sizeof shapes / sizeof *shapes, NARROW_SHAPES = SHAPES - 4 };

struct setup {
    struct random_model model;
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    int32_t tokens[NODES], positions[NODES], parents[NODES];
    double reference[NODES * MAX_VOCABULARY];
    double square; /* on the CPU: the sum of the squared differences from the reference */
    long compared;
};

/* Opens the weights and a cache for the model `s->model`, which must already be made. */
static void open_model(struct setup *s, struct esp_backend *backend)
{
    const struct esp_backend_ops *ops = backend->ops;
    const struct random_shape *shape = &s->model.shape;
    char err[200] = "";
    s->backend = backend;
    if (ops == &esp_backend_cpu)
        ((struct esp_cpu_backend *)s->backend)->worth_a_thread = 0;
    CHECK(ops->weights_open(&s->weights, backend, &s->model.desc, NULL, NULL, err,
                            sizeof err) == 0,
          "%s: %s", shape->name, err);
    CHECK(ops->cache_open(&s->cache, s->weights, CACHE, BATCH, err, sizeof err) == 0, "%s",
          err);
    CHECK(ops->rows_open(&s->logits, backend, BATCH, shape->vocabulary, err, sizeof err) == 0,
          "%s", err);
}

static void open_setup(struct setup *s, const struct random_shape *shape,
                       struct esp_backend *backend, unsigned long long seed)
{
    memset(s, 0, sizeof *s);
    random_model_make(&s->model, shape, seed);
    if (shape->layers > 1)
        s->model.layers[shape->layers - 1].window = 3;
    open_model(s, backend);
    for (int i = 0; i < NODES; i++)
        s->tokens[i] = (int32_t)(check_uniform(&seed) * shape->vocabulary);
}

static void close_model(struct setup *s)
{
    s->backend->ops->rows_close(s->logits);
    s->backend->ops->cache_close(s->cache);
    s->backend->ops->weights_close(s->weights);
}

static void compute_logits(struct esp_backend *cpu, void *user, float *out, int count);

static void close_setup(struct setup *s)
{
    close_model(s);
    if (s->compared > 0) {
        const double error = sqrt(s->square / (double)s->compared);
        const double most = rounding_bound(s->backend, compute_logits, s,
                                           NODES * s->model.desc.vocabulary, s->compared);
        CHECK(error < most, "%s: logits differ by %g, more than %g", s->model.shape.name, error,
              most);
    }
    random_model_free(&s->model);
}

/* Makes a tree. The first `trunk` nodes are a chain. Each other node has a random parent: the
 * end of the chain or a later node. */
static void plant(struct setup *s, int trunk, unsigned long long seed)
{
    for (int i = 0; i < NODES; i++) {
        s->parents[i] =
            i < trunk ? i - 1 : trunk - 1 + (int)(check_uniform(&seed) * (i - trunk + 1));
        s->positions[i] = i == 0 ? 0 : s->positions[s->parents[i]] + 1;
    }
}

static void refer(struct setup *s)
{
    random_model_reference(&s->model, s->tokens, s->parents, NODES, s->reference);
}

/* Checks a row on CUDA, which rounds weights and activations to 16 bits. */
static void check_row_on_cuda(const struct setup *s, int node, const float *values)
{
    const int n = s->model.desc.vocabulary;
    const double part = s->model.shape.dtype == ESP_F16 ? 4e-3 : 3e-2;
    double square = 0;
    for (int i = 0; i < n; i++)
        square += s->reference[node * n + i] * s->reference[node * n + i] / n;
    for (int i = 0; i < n; i++) {
        double want = s->reference[node * n + i];
        CHECK(fabs(values[i] - want) < part * (1 + sqrt(square)) * s->model.desc.layers,
              "%s: node %d token %d is %.8g, not %.8g", s->model.shape.name, node, i, values[i],
              want);
    }
}

/* Checks a row. On a CPU, only adds up the differences, which close_setup() checks for all rows
 * together. */
static void check_row(struct setup *s, int row, int node)
{
    float values[MAX_VOCABULARY];
    const int n = s->model.desc.vocabulary;
    CHECK(s->backend->ops->read_row(s->logits, row, values) == 0);
    if (s->backend->ops != &esp_backend_cpu) {
        check_row_on_cuda(s, node, values);
        return;
    }
    for (int i = 0; i < n; i++)
        s->square += pow(values[i] - s->reference[node * n + i], 2);
    s->compared += n;
}

/* Runs nodes first..first+rows-1. With a mask, a node attends to the cache rows before
 * `prefix`. Of the later rows, it attends only to its ancestors. */
static int run(struct setup *s, int first, int rows, int prefix, bool masked)
{
    uint64_t mask[NODES] = {0};
    for (int i = 0; i < rows; i++)
        for (int up = first + i; up >= prefix; up = s->parents[up])
            mask[i] |= (uint64_t)1 << (up - prefix);
    struct esp_batch batch = {
        .rows = rows,
        .tokens = s->tokens + first,
        .positions = s->positions + first,
        .first = first,
        .prefix = prefix,
        .mask = masked ? mask : NULL,
        .mask_words = 1,
        .logits = s->logits,
    };
    return s->backend->ops->forward(s->cache, &batch);
}

/* Computes the logits of all nodes in one batch. */
static void compute_logits(struct esp_backend *cpu, void *user, float *out, int count)
{
    struct setup *s = user;
    const int vocabulary = s->model.desc.vocabulary;
    CHECK(count == NODES * vocabulary);
    open_model(s, cpu);
    CHECK(run(s, 0, NODES, 0, true) == 0);
    for (int i = 0; i < NODES; i++)
        CHECK(cpu->ops->read_row(s->logits, i, out + i * vocabulary) == 0);
    close_model(s);
}

EACH_BACKEND(a_chain_agrees_with_the_reference)
{
    for (int i = 0; i < SHAPES; i++) {
        struct setup s;
        open_setup(&s, &shapes[i], backend, 1 + (unsigned)i);
        plant(&s, NODES, 0);
        refer(&s);
        CHECK(run(&s, 0, NODES, 0, false) == 0);
        for (int node = 0; node < NODES; node++)
            check_row(&s, node, node);
        for (int node = 0; node < NODES; node++) {
            CHECK(run(&s, node, 1, node, false) == 0);
            check_row(&s, 0, node);
        }
        close_setup(&s);
    }
}

EACH_BACKEND(a_tree_agrees_with_the_reference)
{
    for (int i = 0; i < SHAPES; i++)
        for (int trunk = 1; trunk < 30; trunk += check_quick() ? 28 : 14) {
            struct setup s;
            open_setup(&s, &shapes[i], backend, 20 + (unsigned)i);
            plant(&s, trunk, 5 + (unsigned)trunk);
            refer(&s);
            CHECK(run(&s, 0, trunk, 0, false) == 0);
            CHECK(run(&s, trunk, 3, trunk, true) == 0);
            CHECK(run(&s, trunk + 3, NODES - trunk - 3, trunk, true) == 0);
            for (int node = trunk + 3; node < NODES; node++)
                check_row(&s, node - trunk - 3, node);
            close_setup(&s);
        }
}

/* A cache must not change the device's settings that another cache needs. Each of two caches
 * runs a prompt, for which there is no graph, and then a tree. */
EACH_BACKEND(a_cache_of_wide_heads_works_beside_one_of_narrow_heads)
{
    for (int wide = 0; wide < SHAPES; wide++) {
        struct setup target, draft;
        if (shapes[wide].head_dim < 64)
            continue;
        open_setup(&target, &shapes[wide], backend, 80 + (unsigned)wide);
        open_setup(&draft, &shapes[1], backend, 90);
        for (int i = 0; i < 2; i++) {
            struct setup *s = i ? &draft : &target;
            plant(s, 30, 7);
            refer(s);
            struct esp_batch prompt = {
                .rows = 30, .tokens = s->tokens, .positions = s->positions};
            CHECK(backend->ops->forward(s->cache, &prompt) == 0, "%s: %s", s->model.shape.name,
                  backend->ops->failure ? backend->ops->failure(backend) : "");
            CHECK(run(s, 30, NODES - 30, 30, true) == 0);
            for (int node = 30; node < NODES; node++)
                check_row(s, node - 30, node);
        }
        close_setup(&draft);
        close_setup(&target);
    }
}

EACH_BACKEND(only_wanted_rows_get_logits)
{
    for (int i = 0; i < NARROW_SHAPES; i++) {
        struct setup s;
        float values[MAX_VOCABULARY], before[MAX_VOCABULARY];
        open_setup(&s, &shapes[i], backend, 40 + (unsigned)i);
        plant(&s, NODES, 0);
        refer(&s);
        for (int j = 0; j < MAX_VOCABULARY; j++)
            before[j] = 42;
        for (int row = 0; row < BATCH; row++)
            backend->ops->write_row(s.logits, row, before);
        int32_t rows[10] = {-1, -1, 5, -1, -1, 0, -1, -1, -1, 63};
        struct esp_batch batch = {.rows = 10,
                                  .tokens = s.tokens,
                                  .positions = s.positions,
                                  .logits = s.logits,
                                  .logits_row = rows};
        CHECK(backend->ops->forward(s.cache, &batch) == 0);
        check_row(&s, 5, 2);
        check_row(&s, 0, 5);
        check_row(&s, 63, 9);
        for (int row = 1; row < 63; row++) {
            backend->ops->read_row(s.logits, row, values);
            CHECK(row == 5 || values[0] == 42, "row %d was written", row);
        }
        batch.tokens += 10;
        batch.positions += 10;
        batch.first = 10;
        batch.logits = NULL;
        CHECK(backend->ops->forward(s.cache, &batch) == 0);
        CHECK(run(&s, 20, 1, 20, false) == 0);
        check_row(&s, 0, 20);
        close_setup(&s);
    }
}

/* The vocabularies of draft and target can be padded to different sizes. */
EACH_BACKEND(logits_may_be_wider_or_narrower_than_the_model)
{
    for (int i = 0; i < NARROW_SHAPES; i++)
        for (int more = -40; more <= 70; more += check_quick() ? 55 : 11) {
            struct setup s;
            struct esp_rows *other;
            float values[MAX_VOCABULARY], odd[2 * MAX_VOCABULARY];
            char err[200];
            open_setup(&s, &shapes[i], backend, 50 + (unsigned)i);
            plant(&s, NODES, 0);
            int n = s.model.desc.vocabulary, width = n + more;
            if (width < 1) {
                close_setup(&s);
                continue;
            }
            CHECK(backend->ops->rows_open(&other, s.backend, 7, width, err, sizeof err) == 0);
            struct esp_batch batch = {
                .rows = 7, .tokens = s.tokens, .positions = s.positions, .logits = s.logits};
            CHECK(backend->ops->forward(s.cache, &batch) == 0);
            batch.logits = other;
            CHECK(backend->ops->forward(s.cache, &batch) == 0);
            for (int row = 0; row < 7; row++) {
                backend->ops->read_row(s.logits, row, values);
                backend->ops->read_row(other, row, odd);
                CHECK(memcmp(values, odd, (size_t)(more < 0 ? width : n) * sizeof *odd) == 0);
                for (int j = n; j < width; j++)
                    CHECK(odd[j] == -1e30f, "column %d is %g", j, odd[j]);
            }
            backend->ops->rows_close(other);
            close_setup(&s);
        }
}

EACH_BACKEND(a_batch_that_does_not_fit_is_refused)
{
    struct setup s;
    open_setup(&s, &shapes[0], backend, 60);
    plant(&s, NODES, 0);
    uint64_t mask[4] = {1, 3, 7, 15};
    int32_t tokens[4] = {1, 2, 3, 4}, rows[4] = {0, 1, 2, 3};
    const struct esp_batch good = {.rows = 4,
                                   .tokens = tokens,
                                   .positions = s.positions,
                                   .mask = mask,
                                   .mask_words = 1,
                                   .logits = s.logits,
                                   .logits_row = rows};
    CHECK(backend->ops->forward(s.cache, &good) == 0);
#define REFUSED(...)                                                                           \
    do {                                                                                       \
        struct esp_batch b = good;                                                             \
        __VA_ARGS__;                                                                           \
        CHECK(backend->ops->forward(s.cache, &b) == ESP_E_ARGUMENT, #__VA_ARGS__);             \
    } while (0)
    REFUSED(b.rows = 0);
    REFUSED(b.rows = -1);
    REFUSED(b.rows = BATCH + 1);
    REFUSED(b.first = -1);
    REFUSED(b.first = b.prefix = CACHE - 3);
    REFUSED(b.first = b.prefix = INT32_MAX);
    REFUSED(b.prefix = -1);
    REFUSED(b.prefix = 1);
    REFUSED(b.mask_words = 0);
    REFUSED(mask[2] = 3);
    REFUSED(mask[2] = 15);
    mask[2] = 7;
    REFUSED(tokens[3] = -1);
    REFUSED(tokens[3] = s.model.desc.vocabulary);
    tokens[3] = 0;
    REFUSED(s.positions[1] = -1);
    s.positions[1] = 1;
    REFUSED(rows[0] = BATCH);
    REFUSED(rows[0] = -2);
    rows[0] = 0;
    REFUSED(b.tokens = NULL);
    REFUSED(b.positions = NULL);
#undef REFUSED
    CHECK(backend->ops->forward(s.cache, &good) == 0);
    int32_t which[3] = {5, 7, 9};
    CHECK(backend->ops->keep(s.cache, 5, which, 3) == 0);
    CHECK(backend->ops->keep(s.cache, 6, which, 3) == ESP_E_ARGUMENT);
    CHECK(backend->ops->keep(s.cache, -1, which, 3) == ESP_E_ARGUMENT);
    CHECK(backend->ops->keep(s.cache, 0, which, -1) == ESP_E_ARGUMENT);
    which[2] = CACHE;
    CHECK(backend->ops->keep(s.cache, 5, which, 3) == ESP_E_ARGUMENT);
    which[2] = 7;
    CHECK(backend->ops->keep(s.cache, 5, which, 3) == ESP_E_ARGUMENT);
    close_setup(&s);
}

static bool stop_at_once(void *user, const char *what, size_t done, size_t total)
{
    int *calls = user;
    (*calls)++;
    return what == NULL || done > total;
}

static bool count_calls(void *user, const char *what, size_t done, size_t total)
{
    size_t *last = user;
    bool ok = what && done > *last && done <= total;
    *last = done;
    return ok;
}

EACH_BACKEND(weights_report_progress_and_failures)
{
    struct setup s;
    struct esp_weights *other;
    char err[200] = "";
    int calls = 0;
    size_t last = 0;
    open_setup(&s, &shapes[0], backend, 70);
    CHECK(backend->ops->weights_open(&other, s.backend, &s.model.desc, stop_at_once, &calls,
                                     err, sizeof err) == ESP_E_CANCELLED);
    CHECK(calls == 1 && other == NULL && *err);
    CHECK(backend->ops->weights_open(&other, s.backend, &s.model.desc, count_calls, &last, err,
                                     sizeof err) == 0);
    CHECK(last == other->bytes, "ended at %zu", last);
    backend->ops->weights_close(other);

    struct esp_model_desc wrong = s.model.desc;
    wrong.ffn++;
    CHECK(backend->ops->weights_open(&other, s.backend, &wrong, NULL, NULL, err, sizeof err) ==
          ESP_E_FORMAT);
    CHECK(strstr(err, "gate") && strstr(err, "layer 0"), "%s", err);
    wrong = s.model.desc;
    wrong.kv_heads = 3;
    CHECK(backend->ops->weights_open(&other, s.backend, &wrong, NULL, NULL, err, sizeof err) ==
          ESP_E_FORMAT);
    wrong = s.model.desc;
    wrong.head.data = NULL;
    CHECK(backend->ops->weights_open(&other, s.backend, &wrong, NULL, NULL, err, sizeof err) ==
          ESP_E_FORMAT);
    struct esp_cache *cache;
    CHECK(backend->ops->cache_open(&cache, s.weights, 0, 1, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(backend->ops->cache_open(&cache, s.weights, 8, 0, err, sizeof err) == ESP_E_ARGUMENT);
    close_setup(&s);
}

EACH_BACKEND(an_unknown_type_is_refused)
{
    static const int unknown[] = {ESP_DTYPE_COUNT, ESP_DTYPE_COUNT + 1, 255, -1};
    struct setup s;
    open_setup(&s, &shapes[0], backend, 70);
    struct esp_model_desc wrong = s.model.desc;
    struct esp_layer layers[2];
    CHECK(wrong.layers == 2);
    memcpy(layers, wrong.layer, sizeof layers);
    wrong.layer = layers;
    const struct {
        struct esp_tensor *tensor;
        const char *name;
    } places[] = {
        {&wrong.embedding, "the embedding"},
        {&wrong.head, "the head matrix"},
        {&wrong.norm_final, "a norm weight"},
        {&layers[0].query, "the query matrix"},
        {&layers[1].value, "the value matrix of layer 1"},
        {&layers[1].down, "the down matrix"},
        {&layers[0].norm1, "a norm weight of layer 0"},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t j = 0; j < sizeof unknown / sizeof *unknown; j++) {
            const enum esp_dtype before = places[i].tensor->dtype;
            struct esp_weights *none;
            char err[200] = "";
            places[i].tensor->dtype = (enum esp_dtype)unknown[j];
            CHECK(backend->ops->weights_open(&none, s.backend, &wrong, NULL, NULL, err,
                                             sizeof err) == ESP_E_UNSUPPORTED,
                  "%s: %s", places[i].name, err);
            CHECK(none == NULL && strstr(err, places[i].name) && strstr(err, "unknown type"),
                  "%s", err);
            places[i].tensor->dtype = before;
        }
    close_setup(&s);
}

/* ------------------------------------------------------------------ states with many keys */

enum {
    MANY_KEYS = 260,
    KEYS = 256,
    UNUSED_KEYS = MANY_KEYS - KEYS,
    MOST_CHANNELS = 2048,
    FEW_TOKENS = 5
};

static const struct random_shape recurrent = {
    "many keys", 2, 40, 2, 1, 16, 48, 75, 8, ESP_F32, false, false, false, false, false};

/* Sets a row of a tensor of floats to zero. */
static void clear_row(const struct esp_tensor *t, int row)
{
    const size_t bytes = (size_t)t->columns * sizeof(float);
    memset((char *)t->data + (size_t)row * bytes, 0, bytes);
}

/* Makes a model with a recurrent layer that has MANY_KEYS keys. The first keys of each head are
 * always 0. So the model `few`, which lacks these keys, has the same logits, up to rounding.
 * `used` receives the channels of the convolution of `few`. */
static void make_many_keys(struct random_model *m, enum esp_mixer mixer,
                           struct esp_model_desc *few, struct esp_layer layers[2],
                           int32_t used[MOST_CHANNELS])
{
    int count = 0;
    random_model_make(m, &recurrent, 21);
    m->desc.key_dim = MANY_KEYS;
    /* the norm's epsilon is small, because queries are divided by the root of the number of
     * keys */
    m->desc.norm_epsilon = 1e-12f;
    random_model_recur(m, 0, mixer);
    memcpy(layers, m->layers, 2 * sizeof *layers);
    struct esp_tensor *const tensors[] = {&layers[0].conv_in, &layers[0].conv,
                                          &layers[0].conv_bias};
    const int first = mixer == ESP_MIXER_SSM ? m->desc.state_heads * m->desc.value_dim : 0;
    const int end = first + 2 * m->desc.key_heads * MANY_KEYS;
    for (int i = 0; i < layers[0].conv.rows; i++) {
        const bool unused = i >= first && i < end && (i - first) % MANY_KEYS < UNUSED_KEYS;
        if (!unused)
            used[count++] = i;
        for (int t = 0; t < 3 && unused; t++)
            clear_row(tensors[t], i);
    }
    *few = m->desc;
    few->key_dim = KEYS;
    few->layer = layers;
    for (int t = 0; t < 3; t++) {
        tensors[t]->rows = count;
        tensors[t]->listed = used;
    }
}

/* Computes the logits after FEW_TOKENS tokens. */
static void compute_last(struct setup *s, struct esp_backend *backend,
                         const struct esp_model_desc *desc, float *logits)
{
    const struct esp_model_desc own = s->model.desc;
    s->model.desc = *desc;
    open_model(s, backend);
    CHECK(run(s, 0, FEW_TOKENS, 0, false) == 0);
    CHECK(backend->ops->read_row(s->logits, FEW_TOKENS - 1, logits) == 0);
    close_model(s);
    s->model.desc = own;
}

static double relative_difference(const float *a, const float *b, int n)
{
    double error = 0, norm = 0;
    for (int i = 0; i < n; i++) {
        error += pow((double)a[i] - b[i], 2);
        norm += pow(b[i], 2);
    }
    return sqrt(error / norm);
}

/* The CPU backend computes recurrent states with a key dimension above 256. The CUDA backend
 * refuses them, but computes a key dimension of 256. */
EACH_BACKEND(states_of_many_keys_are_computed_or_refused)
{
    static const enum esp_mixer mixers[] = {ESP_MIXER_DELTA, ESP_MIXER_SSM};
    const bool on_cpu = backend->ops == &esp_backend_cpu;
    for (int m = 0; m < 2; m++) {
        static struct setup s;
        struct esp_model_desc few;
        struct esp_layer layers[2];
        int32_t used[MOST_CHANNELS];
        float want[MAX_VOCABULARY], got[MAX_VOCABULARY];
        struct esp_backend *cpu;
        struct esp_weights *none;
        char err[300] = "";
        make_many_keys(&s.model, mixers[m], &few, layers, used);
        for (int i = 0; i < NODES; i++) {
            s.tokens[i] = i * 7 % recurrent.vocabulary;
            s.positions[i] = i;
            s.parents[i] = i - 1;
        }
        CHECK(esp_cpu_open(&cpu, "generic", 1, err, sizeof err) == 0, "%s", err);
        compute_last(&s, cpu, &few, want);
        cpu->ops->close(cpu);
        compute_last(&s, backend, on_cpu ? &s.model.desc : &few, got);
        const double off = relative_difference(got, want, recurrent.vocabulary);
        CHECK(off < (on_cpu ? 1e-4 : 3e-2), "mixer %d: %g", mixers[m], off);
        if (!on_cpu) {
            CHECK(backend->ops->weights_open(&none, backend, &s.model.desc, NULL, NULL, err,
                                             sizeof err) == ESP_E_UNSUPPORTED);
            CHECK(!none && strstr(err, "states have 260 keys") &&
                      strstr(err, "--backend cpu") && !strchr(err, '\n'),
                  "%s", err);
        }
        few.key_dim = 4100;
        CHECK(backend->ops->weights_open(&none, backend, &few, NULL, NULL, err, sizeof err) ==
              ESP_E_UNSUPPORTED);
        CHECK(!none && strstr(err, "keys of 4100 and values of 32 numbers"), "%s", err);
        random_model_free(&s.model);
    }
}

TEST(an_instruction_set_that_the_processor_lacks_is_refused)
{
    struct esp_backend *backend;
    char err[200] = "";
    CHECK(esp_cpu_open(&backend, "z80", 1, err, sizeof err) == ESP_E_DEVICE && *err);
    CHECK(esp_cpu_open(&backend, NULL, -1, err, sizeof err) == ESP_E_ARGUMENT && *err);
}
