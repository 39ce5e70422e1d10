/* ranks.c - tests models that are divided among processes: results are bit-identical for any
 * number of ranks and any plan, and a process that ends, hangs or has another file gives an
 * error message.
 *
 * The other ranks run this test program (tests/check.c calls esp_is_rank()).
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/model/inflate.h"
#include "engine/model/model.h"
#include "engine/model/own_copy.h"
#include "kernels/clock.h"
#include "kernels/cpu/orders.h"
#include "kernels/model_desc.h"
#include "kernels/ranks/desc_wire.h"
#include "tests/check.h"

enum { CACHE = 80, PREFIX = 9, NODES = 12, MOST_LOGITS = 1 << 17 };

/* Describes how a model is divided. */
struct division {
    int ranks, threads;
    double share[5];
    unsigned whole;
    bool by_layers;
};

enum {
    ATTENTION = 1 << ESP_RANK_ATTENTION,
    OUTPUT = 1 << ESP_RANK_OUTPUT,
    MLP = 1 << ESP_RANK_MLP | 1 << ESP_RANK_EXPERTS,
    DOWN = 1 << ESP_RANK_DOWN,
    HEAD = 1 << ESP_RANK_HEAD,
    STATES = 1 << ESP_RANK_STATES,
    GATES = 1 << ESP_RANK_GATES
};

static struct esp_backend *open_backend(const struct division *d)
{
    struct esp_backend *backend;
    char err[512] = "";
    CHECK(esp_cpu_open(&backend, NULL, d->threads, err, sizeof err) == 0, "%s", err);
    if (d->ranks < 2)
        return backend;
    struct esp_rank_options options = {.ranks = d->ranks,
                                       .threads = d->threads,
                                       .whole = d->whole,
                                       .planned = true,
                                       .by_layers = d->by_layers};
    memcpy(options.share, d->share, sizeof d->share);
    CHECK(backend->ops->start_ranks(backend, &options, err, sizeof err) == 0, "%s", err);
    return backend;
}

static struct esp_model *open_model(const char *name)
{
    struct esp_model *model;
    char path[128], err[512] = "";
    snprintf(path, sizeof path, "vectors/%s", name);
    CHECK(esp_model_open(&model, check_path(path), err, sizeof err) == 0, "%s: %s", name, err);
    esp_model_set_context(model, CACHE);
    model->desc.divided = true;
    return model;
}

/* ------------------------------------------------------------------ passes */

struct open_model {
    const struct esp_backend_ops *ops;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits, *states;
    int vocabulary, hidden;
};

static void open_on(struct open_model *m, struct esp_backend *backend,
                    const struct esp_model_desc *desc)
{
    char err[512] = "";
    *m = (struct open_model){
        .ops = backend->ops, .vocabulary = desc->vocabulary, .hidden = desc->hidden};
    int status = m->ops->weights_open(&m->weights, backend, desc, NULL, NULL, err, sizeof err);
    CHECK(status == 0, "%s", err);
    status = m->ops->cache_open(&m->cache, m->weights, CACHE, CACHE, err, sizeof err);
    CHECK(status == 0, "%s", err);
    CHECK(m->ops->rows_open(&m->logits, backend, CACHE, m->vocabulary, err, sizeof err) == 0);
    CHECK(m->ops->rows_open(&m->states, backend, CACHE, 2 * m->hidden, err, sizeof err) == 0);
}

static void close_on(struct open_model *m)
{
    m->ops->rows_close(m->states);
    m->ops->rows_close(m->logits);
    m->ops->cache_close(m->cache);
    m->ops->weights_close(m->weights);
}

static int32_t token_of(const struct open_model *m, int i)
{
    return (int32_t)((i * 7919 + 13) % m->vocabulary);
}

/* Runs `count` rows after `first` rows. Their tokens are `seed`, seed + 1, ...; the first
 * `text` rows are text, which cannot be removed again. */
static int run_rows(struct open_model *m, int first, int seed, int count, int text, bool wanted)
{
    int32_t tokens[CACHE], positions[CACHE];
    for (int i = 0; i < count; i++) {
        tokens[i] = token_of(m, seed + i);
        positions[i] = first + i;
    }
    const struct esp_batch batch = {.rows = count,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = first,
                                    .prefix = first,
                                    .text = text,
                                    .logits = wanted ? m->logits : NULL};
    return m->ops->forward(m->cache, &batch);
}

static int run_chain(struct open_model *m, int first, int count, bool wanted)
{
    return run_rows(m, first, first, count, 0, wanted);
}

/* Runs a tree of NODES nodes after PREFIX rows: node i is a child of node (i - 1) / 2. Asks
 * for logits of every second node and hidden states of every third one, with a window if one
 * is given. */
static int run_tree(struct open_model *m, const struct esp_window *window)
{
    int32_t tokens[NODES], positions[NODES], logits_row[NODES], states_row[NODES];
    uint64_t mask[NODES];
    struct esp_states states = {
        .count = 2, .state = {1, ESP_STATE_NORMED}, .to = m->states, .row = states_row};
    for (int i = 0; i < NODES; i++) {
        tokens[i] = token_of(m, 100 + i);
        mask[i] = (i > 0 ? mask[(i - 1) / 2] : 0) | (uint64_t)1 << i;
        positions[i] = PREFIX - 1 + __builtin_popcountll(mask[i]);
        logits_row[i] = i % 2 ? -1 : i / 2;
        states_row[i] = i % 3 ? -1 : i / 3;
    }
    const struct esp_batch batch = {.rows = NODES,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = PREFIX,
                                    .prefix = PREFIX,
                                    .mask = mask,
                                    .mask_words = 1,
                                    .window = window,
                                    .logits = m->logits,
                                    .logits_row = logits_row,
                                    .states = &states};
    return m->ops->forward(m->cache, &batch);
}

/* Writes all outputs of a chain, a tree, a kept path and one more step. */
static size_t run_all(struct open_model *m, const struct esp_window *window, float *out)
{
    static const int32_t path[] = {PREFIX, PREFIX + 2, PREFIX + 5};
    size_t n = 0;
    const size_t width = (size_t)m->vocabulary;
    CHECK(run_chain(m, 0, PREFIX, true) == 0);
    for (int i = 0; i < PREFIX; i++, n += width)
        CHECK(m->ops->read_row(m->logits, i, out + n) == 0);
    CHECK(run_tree(m, window) == 0);
    for (int i = 0; i < NODES / 2; i++, n += width)
        CHECK(m->ops->read_row(m->logits, i, out + n) == 0);
    for (int i = 0; i < NODES / 3; i++, n += 2 * (size_t)m->hidden)
        CHECK(m->ops->read_row(m->states, i, out + n) == 0);
    CHECK(m->ops->keep(m->cache, PREFIX, path, 3) == 0);
    CHECK(run_chain(m, PREFIX + 3, 1, true) == 0);
    CHECK(m->ops->read_row(m->logits, 0, out + n) == 0);
    return n + width;
}

/* ------------------------------------------------------------------ bit-identical results */

/* The results of one process, with which every division is compared. */
struct expected {
    size_t count;
    float *values;
};

static float room[MOST_LOGITS];

static struct expected compute(struct esp_backend *backend, const struct esp_model_desc *desc,
                               const struct esp_window *window)
{
    struct open_model m;
    struct expected e;
    open_on(&m, backend, desc);
    CHECK((size_t)(PREFIX + NODES) * (size_t)(m.vocabulary + m.hidden) < MOST_LOGITS);
    e.count = run_all(&m, window, room);
    e.values = malloc(e.count * sizeof *e.values);
    memcpy(e.values, room, e.count * sizeof *e.values);
    close_on(&m);
    return e;
}

static void compare(struct esp_backend *backend, const struct esp_model_desc *desc,
                    const struct esp_window *window, const struct expected *e, const char *name,
                    const struct division *d)
{
    struct expected other = compute(backend, desc, window);
    size_t differ = 0;
    CHECK(other.count == e->count);
    for (size_t i = 0; i < e->count; i++)
        differ += memcmp(&e->values[i], &other.values[i], sizeof(float)) != 0;
    CHECK(differ == 0, "%s, %d ranks, whole %u: %zu of %zu numbers differ", name, d->ranks,
          d->whole, differ, e->count);
    free(other.values);
}

static const char *const models[] = {
    "logits/llama-gqa",      "logits/llama-mqa-tied",
    "logits/llama-bf16",     "logits/qwen3",
    "logits/qwen3-moe-some", "logits/olmo2",
    "logits/gemma2",         "logits/gemma3",
    "logits/gpt-oss",        "logits/neox-parallel",
    "logits/gpt2-f16",       "logits/granite",
    "logits/phi3-long",      "logits/smollm3-window",
    "logits/llama-head-dim", "logits/lfm2",
    "logits/qwen3-5",        "logits/qwen3-5-moe",
    "logits/granite-hybrid", "logits/granite-hybrid-moe",
    "logits/qwen3-next",     "logits/nemotron-h",
    "logits/nemotron-h-moe", "logits/lfm2-moe",
    "gguf/qwen3-moe.gguf",   "gguf/mixed.gguf",
    "gguf/llama-gqa-00001-of-00002.gguf"};
enum { MODELS = sizeof models / sizeof *models };

static const struct division divisions[] = {
    {.ranks = 2, .threads = 1},
    {.ranks = 3, .threads = 1},
    {.ranks = 2, .threads = 2, .share = {3, 1}},
    {.ranks = 2, .threads = 1, .by_layers = true},
    {.ranks = 5, .threads = 1},
    {.ranks = 2, .threads = 1, .whole = OUTPUT},
    {.ranks = 2, .threads = 1, .whole = DOWN | GATES},
    {.ranks = 2, .threads = 1, .whole = MLP | STATES},
    {.ranks = 2, .threads = 1, .whole = ATTENTION},
    {.ranks = 2, .threads = 1, .whole = HEAD},
    {.ranks = 3, .threads = 1, .share = {1, 5, 2}, .whole = OUTPUT | HEAD},
    {.ranks = 3, .threads = 1, .share = {1, 2, 1}, .by_layers = true}};
enum { DIVISIONS = sizeof divisions / sizeof *divisions };

TEST(any_division_gives_the_same_bits)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    static const struct esp_window window = {.sinks = 2, .recent = 5};
    struct esp_model *model[MODELS];
    struct expected expected[MODELS];
    struct esp_backend *backend = open_backend(&alone);
    for (int i = 0; i < MODELS; i++) {
        model[i] = open_model(models[i]);
        expected[i] = compute(backend, &model[i]->desc, i % 2 ? &window : NULL);
    }
    backend->ops->close(backend);
    for (int k = 0, layers = 0; k < (check_quick() ? 4 : DIVISIONS); k++) {
        backend = open_backend(&divisions[k]);
        for (int i = 0; i < MODELS; i++) {
            if (divisions[k].by_layers && model[i]->desc.layers <= divisions[k].ranks)
                continue;
            layers += divisions[k].by_layers;
            compare(backend, &model[i]->desc, i % 2 ? &window : NULL, &expected[i], models[i],
                    &divisions[k]);
        }
        CHECK(!divisions[k].by_layers || layers > 0);
        backend->ops->close(backend);
    }
    for (int i = 0; i < MODELS; i++) {
        esp_model_close(model[i]);
        free(expected[i].values);
    }
}

/* Quantises all matrices of the layers; they are converted while they are read. */
static void quantise(struct esp_layer *layer, const struct esp_model_desc *desc,
                     struct esp_tensor_file *source, enum esp_dtype dtype)
{
    for (int i = 0; i < desc->layers; i++) {
        const struct esp_layer *from = &desc->layer[i];
        const struct esp_tensor *matrix[] = {&from->query,  &from->key,  &from->value,
                                             &from->output, &from->gate, &from->up,
                                             &from->down};
        struct esp_tensor *to[] = {&layer[i].query,  &layer[i].key,  &layer[i].value,
                                   &layer[i].output, &layer[i].gate, &layer[i].up,
                                   &layer[i].down};
        layer[i] = *from;
        for (size_t k = 0; k < sizeof to / sizeof *to; k++)
            if (matrix[k]->columns % esp_dtype_block(dtype) == 0)
                *to[k] = (struct esp_tensor){.data = matrix[k]->data,
                                             .dtype = dtype,
                                             .rows = matrix[k]->rows,
                                             .columns = matrix[k]->columns,
                                             .block = matrix[k]->rows,
                                             .stride = matrix[k]->rows,
                                             .source = source,
                                             .original = matrix[k]};
    }
}

TEST(every_quantised_type_gives_the_same_bits)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_tensor_file source = {.fd = -1};
    struct esp_backend *one = open_backend(&alone), *many = open_backend(&three);
    struct esp_model *model = open_model("logits/llama-gqa");
    char err[300] = "";
    int types = 0;
    const int wide = 256 / model->desc.hidden > 1 ? 256 / model->desc.hidden : 1;
    CHECK(esp_model_enlarge(model, wide, 0, err, sizeof err) == 0, "%s", err);
    struct esp_layer *layer = calloc((size_t)model->desc.layers, sizeof *layer);
    for (int t = 0; t < ESP_DTYPE_COUNT; t++) {
        struct esp_model_desc desc = model->desc;
        if (!esp_dtype_quantised((enum esp_dtype)t) ||
            desc.hidden % esp_dtype_block((enum esp_dtype)t) != 0)
            continue;
        quantise(layer, &model->desc, &source, (enum esp_dtype)t);
        desc.layer = layer;
        struct expected e = compute(one, &desc, NULL);
        compare(many, &desc, NULL, &e, esp_dtype_name((enum esp_dtype)t), &three);
        free(e.values);
        types++;
    }
    CHECK(types >= 8, "%d types", types);
    free(layer);
    esp_model_close(model);
    one->ops->close(one);
    many->ops->close(many);
}

/* Models in memory are used by tests of other backends. */
TEST(tensors_in_memory_reach_the_ranks)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_backend *one = open_backend(&alone), *many = open_backend(&two);
    struct esp_model *model = open_model("logits/llama-gqa");
    struct expected e = compute(one, &model->desc, NULL);
    struct esp_tensor *t = &model->desc.layer[0].up;
    char *rows = malloc((size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns));
    esp_tensor_copy_rows(t, 0, t->rows, rows);
    *t = (struct esp_tensor){.data = rows,
                             .dtype = t->dtype,
                             .rows = t->rows,
                             .columns = t->columns,
                             .block = t->rows,
                             .stride = t->rows};
    compare(many, &model->desc, NULL, &e, "in memory", &two);
    free(rows);
    free(e.values);
    esp_model_close(model);
    one->ops->close(one);
    many->ops->close(many);
}

/* Runs the target's own copy on the target's cache. */
static size_t run_joined(struct esp_backend *backend, struct esp_model *model,
                         struct esp_model *copy, float *out)
{
    struct open_model m, c;
    char err[300] = "";
    open_on(&m, backend, &model->desc);
    copy->desc.lender = m.weights;
    copy->desc.divided = true;
    c = m;
    CHECK(m.ops->weights_open(&c.weights, backend, &copy->desc, NULL, NULL, err, sizeof err) ==
              0,
          "%s", err);
    CHECK(m.ops->cache_join(&c.cache, c.weights, m.cache, CACHE, err, sizeof err) == 0, "%s",
          err);
    CHECK(run_chain(&m, 0, PREFIX, false) == 0);
    CHECK(run_chain(&c, PREFIX, 2, false) == 0);
    CHECK(run_chain(&c, PREFIX + 2, 1, true) == 0);
    CHECK(m.ops->read_row(m.logits, 0, out) == 0);
    m.ops->cache_close(c.cache);
    m.ops->weights_close(c.weights);
    close_on(&m);
    return (size_t)m.vocabulary;
}

TEST(an_own_copy_is_divided_with_its_target)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    const struct division two = {.ranks = 2, .threads = 1, .share = {2, 1}, .whole = OUTPUT};
    struct esp_backend *one = open_backend(&alone), *many = open_backend(&two);
    struct esp_model *model = open_model("logits/llama-gqa"), *copy;
    static float a[4096], b[4096];
    char err[300] = "";
    CHECK(esp_own_copy_open(&copy, model, "self:q4_0", err, sizeof err) == 0, "%s", err);
    const size_t n = run_joined(one, model, copy, a);
    CHECK(run_joined(many, model, copy, b) == n && n <= 4096);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    esp_model_close(copy);
    esp_model_close(model);
    one->ops->close(one);
    many->ops->close(many);
}

/* ------------------------------------------------------------------ failures */

/* Returns child number `which` of this process, counted from 0; 0 if it has fewer children. */
static pid_t child(int which)
{
    DIR *folder = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *e; found == 0 && folder && (e = readdir(folder));) {
        char path[300], state;
        int parent = 0, pid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%.200s/stat", e->d_name);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) == 2 &&
            parent == (int)getpid() && state != 'Z' && which-- == 0)
            found = pid;
        if (file)
            fclose(file);
    }
    closedir(folder);
    return found;
}

/* Returns whether all children end within a few seconds. */
static bool no_child_is_left(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < 300 && child(0) > 0; i++)
        nanosleep(&moment, NULL);
    return child(0) == 0;
}

static void check_failed(struct esp_backend *backend, struct open_model *m, const char *says,
                         double most)
{
    const double start = esp_clock();
    CHECK(run_chain(m, PREFIX, 1, true) == ESP_E_DEVICE);
    CHECK(esp_clock() - start < most, "%.1f s", esp_clock() - start);
    CHECK(strstr(backend->ops->failure(backend), says), "%s", backend->ops->failure(backend));
    CHECK(run_chain(m, PREFIX, 1, true) == ESP_E_DEVICE);
    CHECK(no_child_is_left());
    close_on(m);
    backend->ops->close(backend);
}

TEST(a_rank_that_is_killed_ends_the_pass_with_a_sentence)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_model *model = open_model("logits/llama-gqa");
    for (int which = 0; which < 2; which++) {
        struct esp_backend *backend = open_backend(&three);
        struct open_model m;
        open_on(&m, backend, &model->desc);
        CHECK(run_chain(&m, 0, PREFIX, true) == 0);
        CHECK(child(which) > 0 && kill(child(which), SIGKILL) == 0);
        check_failed(backend, &m, "of 3 ended (signal 9)", 1.5);
    }
    esp_model_close(model);
}

TEST(a_rank_that_hangs_is_ended)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_model *model = open_model("logits/llama-gqa");
    struct open_model m;
    setenv("ESPALIER_RANKS_PATIENCE", "0.5", 1);
    struct esp_backend *backend = open_backend(&two);
    unsetenv("ESPALIER_RANKS_PATIENCE");
    open_on(&m, backend, &model->desc);
    CHECK(run_chain(&m, 0, PREFIX, true) == 0);
    CHECK(kill(child(0), SIGSTOP) == 0);
    check_failed(backend, &m, "has not answered", 2.5);
    esp_model_close(model);
}

static int asked;

/* Waits for a while, then lets the stopped rank go on. */
static bool wakes(void *user, int rank, int ranks, double seconds)
{
    asked += rank == 1 && ranks == 2;
    if (seconds > 0.4)
        kill(*(const pid_t *)user, SIGCONT);
    return true;
}

TEST(a_rank_that_hangs_may_be_waited_for)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_model *model = open_model("logits/llama-gqa");
    struct open_model m;
    setenv("ESPALIER_RANKS_PATIENCE", "0.2", 1);
    struct esp_backend *backend = open_backend(&two);
    unsetenv("ESPALIER_RANKS_PATIENCE");
    pid_t rank = child(0);
    backend->ops->ask_about_ranks(backend, wakes, &rank);
    open_on(&m, backend, &model->desc);
    CHECK(kill(rank, SIGSTOP) == 0);
    CHECK(run_chain(&m, 0, PREFIX, true) == 0, "%s", backend->ops->failure(backend));
    CHECK(asked > 0);
    close_on(&m);
    backend->ops->close(backend);
    esp_model_close(model);
}

/* After a restart, the weights stay loaded, caches must be opened again, and results are
 * bit-identical. */
TEST(ranks_that_were_killed_are_started_again_once)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_model *model = open_model("logits/llama-gqa");
    struct esp_backend *backend = open_backend(&three);
    const struct esp_backend_ops *ops = backend->ops;
    struct open_model m;
    struct esp_rank_times times;
    struct esp_cache *old;
    static float a[4096], b[4096];
    char why[512] = "", err[512] = "";
    open_on(&m, backend, &model->desc);
    CHECK(m.vocabulary <= 4096 && run_chain(&m, 0, PREFIX, false) == 0);
    CHECK(run_chain(&m, PREFIX, 1, true) == 0 && ops->read_row(m.logits, 0, a) == 0);
    CHECK(ops->restart_ranks(backend, 30, why, sizeof why) < 0); /* the ranks are alive */
    CHECK(kill(child(0), SIGKILL) == 0);
    CHECK(run_chain(&m, 0, PREFIX, true) == ESP_E_DEVICE);
    CHECK(ops->restart_ranks(backend, 0, why, sizeof why) < 0); /* would take too long */
    CHECK(ops->restart_ranks(backend, 30, why, sizeof why) == 0);
    CHECK(strstr(why, "ended (signal 9)"), "%s", why);
    CHECK(ops->rank_times(backend, &times) && times.starts == 2);
    CHECK(run_chain(&m, 0, PREFIX, true) == ESP_E_DEVICE); /* a cache of the old ranks */
    CHECK(strstr(ops->failure(backend), "do not know this text"), "%s", ops->failure(backend));
    old = m.cache;
    CHECK(ops->cache_open(&m.cache, m.weights, CACHE, CACHE, err, sizeof err) == 0, "%s", err);
    ops->cache_close(old);
    CHECK(run_chain(&m, 0, PREFIX, false) == 0);
    CHECK(run_chain(&m, PREFIX, 1, true) == 0 && ops->read_row(m.logits, 0, b) == 0);
    CHECK(memcmp(a, b, (size_t)m.vocabulary * sizeof *a) == 0);
    CHECK(kill(child(0), SIGKILL) == 0);
    CHECK(run_chain(&m, 0, PREFIX, true) == ESP_E_DEVICE);
    CHECK(ops->restart_ranks(backend, 30, why, sizeof why) < 0);
    close_on(&m);
    ops->close(backend);
    CHECK(no_child_is_left());
    esp_model_close(model);
}

/* ------------------------------------------------------------------ what a pass does */

/* Two ranks with whole layers: rank 0 computes, then rank 1, then rank 0. After each of the
 * first two laps, the rows travel for the delay of the simulated network. */
TEST(laps_of_a_pass_say_who_computes)
{
    static const double DELAY = 0.02;
    const struct division two = {.ranks = 2, .threads = 1, .by_layers = true};
    struct esp_model *model = open_model("logits/qwen3-5");
    struct esp_backend *backend = open_backend(&two);
    struct open_model m;
    struct esp_rank_times times;
    open_on(&m, backend, &model->desc);
    CHECK(backend->ops->set_rank_delay(backend, "20ms") == 0);
    CHECK(run_chain(&m, 0, PREFIX, true) == 0);
    CHECK(backend->ops->rank_times(backend, &times) && times.lap_count == 6);
    for (int i = 0; i < 6; i++) {
        const struct esp_rank_lap *lap = &times.laps[i];
        CHECK(lap->rank == i % 2 && lap->wait >= 0);
        /* A hop is the time of an exchange without that of waiting, so it may be a bit less. */
        CHECK(i > 3 || (lap->hop > 0.9 * DELAY && lap->hop < 1), "%d: hop %g", i, lap->hop);
        CHECK(i <= 3 || (lap->hop == 0 && lap->wait == 0));
        CHECK(i / 2 % 2 != i % 2 || lap->compute > 0);
        CHECK(i != 5 || lap->compute == 0); /* rank 0 has the last layers and the head */
    }
    close_on(&m);
    backend->ops->close(backend);
    esp_model_close(model);
}

/* Divided matrices need many exchanges, so a lap has several of them. */
TEST(laps_of_many_exchanges_are_joined)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_model *model = open_model("logits/qwen3-5");
    struct esp_backend *backend = open_backend(&three);
    struct open_model m;
    struct esp_rank_times times;
    double sums[3] = {0};
    open_on(&m, backend, &model->desc);
    backend->ops->rank_times(backend, &times);
    const long before = times.exchanges;
    const double start = esp_clock();
    CHECK(run_chain(&m, 0, PREFIX, true) == 0);
    const double took = esp_clock() - start;
    CHECK(backend->ops->rank_times(backend, &times) && times.exchanges - before > 12);
    CHECK(times.lap_count % 3 == 0 && times.lap_count > 3 * 6 && times.lap_count <= 3 * 12);
    for (int i = 0; i < times.lap_count; i++) {
        CHECK(times.laps[i].rank == i % 3);
        sums[i % 3] += times.laps[i].compute + times.laps[i].wait + times.laps[i].hop;
    }
    CHECK(sums[0] > 0 && sums[0] <= took, "%g of %g s", sums[0], took);
    CHECK(sums[1] > 0 && sums[2] > 0);
    close_on(&m);
    backend->ops->close(backend);
    esp_model_close(model);
}

TEST(a_rank_that_is_killed_before_a_model_is_loaded_fails_it)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_model *model = open_model("logits/llama-gqa");
    struct esp_backend *backend = open_backend(&two);
    struct esp_weights *weights;
    char err[512] = "";
    CHECK(kill(child(0), SIGKILL) == 0);
    CHECK(backend->ops->weights_open(&weights, backend, &model->desc, NULL, NULL, err,
                                     sizeof err) == ESP_E_DEVICE);
    CHECK(!weights && strstr(err, "rank 1 of 2 ended (signal 9)"), "%s", err);
    CHECK(no_child_is_left());
    backend->ops->close(backend);
    esp_model_close(model);
}

TEST(ranks_leave_with_their_backend)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_backend *backend = open_backend(&three);
    CHECK(child(1) > 0 && child(2) == 0);
    const double start = esp_clock();
    backend->ops->close(backend);
    CHECK(esp_clock() - start < 1.5);
    CHECK(no_child_is_left());
}

static bool stop_at_once(void *user, const char *what, size_t done, size_t total)
{
    (void)user, (void)what, (void)done, (void)total;
    return false;
}

TEST(loading_can_be_cancelled)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_backend *backend = open_backend(&two);
    struct esp_model *model = open_model("logits/llama-gqa");
    struct esp_weights *weights;
    char err[512] = "";
    CHECK(backend->ops->weights_open(&weights, backend, &model->desc, stop_at_once, NULL, err,
                                     sizeof err) == ESP_E_CANCELLED);
    backend->ops->close(backend);
    CHECK(no_child_is_left());
    esp_model_close(model);
}

/* ------------------------------------------------------------------ descriptions */

TEST(a_file_that_differs_is_refused_by_a_rank)
{
    char path[] = "/tmp/espalier-ranks-XXXXXX", err[512] = "";
    const int fd = mkstemp(path);
    struct esp_model *model = open_model("logits/llama-gqa");
    struct esp_tensor_file file = {.fd = fd, .path = path};
    struct esp_tensor *t = &model->desc.layer[0].up;
    struct esp_wire wire = {.bytes = NULL};
    struct esp_desc_copy copy;
    char *rows = malloc((size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns));
    esp_tensor_copy_rows(t, 0, t->rows, rows);
    const size_t size = (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
    CHECK(write(fd, rows, size) == (ssize_t)size);
    t->source = &file;
    t->offset = 0;
    esp_desc_write(&wire, &model->desc);
    CHECK(!wire.failed);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == 0, "%s", err);
    esp_desc_copy_close(&copy);
    CHECK(pwrite(fd, "x", 1, 0) == 1);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == ESP_E_MISMATCH);
    CHECK(strstr(err, path) && strstr(err, "differs from the file"), "%s", err);
    esp_desc_copy_close(&copy);
    CHECK(ftruncate(fd, 100) == 0);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == ESP_E_MISMATCH);
    esp_desc_copy_close(&copy);
    CHECK(unlink(path) == 0);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == ESP_E_FILE);
    esp_desc_copy_close(&copy);
    close(fd);
    free(rows);
    free(wire.bytes);
    esp_model_close(model);
}

TEST(a_description_that_is_cut_off_is_refused)
{
    struct esp_model *model = open_model("logits/qwen3-moe-some");
    struct esp_wire wire = {.bytes = NULL};
    char err[512];
    esp_desc_write(&wire, &model->desc);
    CHECK(!wire.failed && wire.size > 0);
    for (size_t size = 0; size < wire.size; size += 1 + size / 40) {
        struct esp_desc_copy copy;
        CHECK(esp_desc_read(&copy, wire.bytes, size, err, sizeof err) < 0, "%zu", size);
        esp_desc_copy_close(&copy);
    }
    struct esp_desc_copy copy;
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == 0, "%s", err);
    CHECK(esp_model_desc_check(&copy.desc, err, sizeof err) == 0, "%s", err);
    esp_desc_copy_close(&copy);
    free(wire.bytes);
    esp_model_close(model);
}

/* ------------------------------------------------------------------ greetings */

/* A group of two ranks in which rank 1 sends a copy of rank 0's greeting with one change. */
struct mirror {
    struct esp_ranks base;
    char *area[2];
    void (*differ)(struct esp_greeting *greeting);
};

static char *mirror_own(struct esp_ranks *ranks)
{
    return ((struct mirror *)ranks)->area[0];
}

static const char *mirror_of(struct esp_ranks *ranks, int rank)
{
    return ((struct mirror *)ranks)->area[rank];
}

static int mirror_meet(struct esp_ranks *ranks, const size_t *bytes, bool to_first)
{
    struct mirror *m = (struct mirror *)ranks;
    struct esp_greeting greeting;
    (void)to_first;
    memcpy(m->area[1], m->area[0], bytes[0]);
    if (bytes[0] != sizeof greeting + sizeof(struct esp_rank_said))
        return ESP_OK;
    memcpy(&greeting, m->area[1], sizeof greeting);
    if (m->differ)
        m->differ(&greeting);
    memcpy(m->area[1], &greeting, sizeof greeting);
    return ESP_OK;
}

static void mirror_fail(struct esp_ranks *ranks, const char *sentence)
{
    (void)ranks, (void)sentence;
}

static const struct esp_transport mirror = {.name = "mirror",
                                            .own = mirror_own,
                                            .of = mirror_of,
                                            .meet = mirror_meet,
                                            .fail = mirror_fail};

static void other_version(struct esp_greeting *g)
{
    memcpy(g->version, "99.1", sizeof "99.1");
}

static void other_protocol(struct esp_greeting *g)
{
    memcpy(g->protocol, "77", sizeof "77");
}

static void other_build(struct esp_greeting *g)
{
    g->build[0] = g->build[0] == '1' ? '2' : '1';
}

static void other_layout(struct esp_greeting *g)
{
    memcpy(g->layout, "1+2", sizeof "1+2");
}

static void other_sums(struct esp_greeting *g)
{
    memcpy(g->sums, "another", sizeof "another");
}

static void without_end(struct esp_greeting *g)
{
    memset(g->version, 'v', sizeof g->version);
}

static void slower(struct esp_greeting *g)
{
    g->read /= 2;
}

TEST(ranks_that_cannot_compute_the_same_bits_are_refused_at_once)
{
    static const struct {
        void (*differ)(struct esp_greeting *greeting);
        const char *says;
    } cases[] = {{other_version, "rank 1 has version 99.1 and this program "},
                 {other_protocol, "rank 1 has protocol 77 and this program 1;"},
                 {other_build, "build all ranks from the same source"},
                 {other_layout, "rank 1 has layout of structs 1+2 and this program "},
                 {other_sums, "rank 1 has order of sums another and this program "},
                 {without_end, "rank 1 has version vvvv"},
                 {slower, NULL},
                 {NULL, NULL}};
    const struct division alone = {.ranks = 1, .threads = 1};
    struct esp_backend *backend = open_backend(&alone);
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)backend;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char err[512] = "";
        struct mirror m = {.base = {.transport = &mirror, .count = 2},
                           .area = {malloc(ESP_RANK_AREA), malloc(ESP_RANK_AREA)},
                           .differ = cases[i].differ};
        cpu->ranks = &m.base;
        const int status = esp_cpu_greet(cpu, err, sizeof err);
        CHECK(status == (cases[i].says ? ESP_E_MISMATCH : ESP_OK), "%zu: %s", i, err);
        CHECK(m.base.failed == (cases[i].says != NULL));
        CHECK(!cases[i].says || strstr(err, cases[i].says), "%s", err);
        free(m.area[0]);
        free(m.area[1]);
    }
    cpu->ranks = NULL;
    backend->ops->close(backend);
}

/* ------------------------------------------------------------------ recurrent layers */

static int run_text(struct open_model *m, int first, int seed, int count)
{
    return run_rows(m, first, seed, count, count, true);
}

/* Writes the logits of a text that continues, returns to a saved copy of its states, and
 * continues differently. */
static size_t run_states(struct esp_backend *backend, const struct esp_model_desc *desc,
                         float *out)
{
    struct open_model m;
    open_on(&m, backend, desc);
    const size_t width = (size_t)m.vocabulary;
    CHECK(run_text(&m, 0, 0, PREFIX) == 0);
    CHECK(m.ops->state_save(m.cache, 0) == 0);
    CHECK(run_chain(&m, PREFIX, 3, false) == 0);
    CHECK(m.ops->fold(m.cache, PREFIX + 3, 0) == 0);
    CHECK(run_text(&m, PREFIX + 3, 40, 2) == 0);
    CHECK(m.ops->read_row(m.logits, 1, out) == 0);
    CHECK(run_text(&m, PREFIX, 50, 2) == ESP_E_ARGUMENT); /* the states are past this row */
    CHECK(m.ops->state_load(m.cache, 1) == ESP_E_ARGUMENT);
    CHECK(m.ops->state_load(m.cache, 0) == 0);
    CHECK(run_text(&m, PREFIX, 60, 2) == 0);
    CHECK(m.ops->read_row(m.logits, 1, out + width) == 0);
    close_on(&m);
    return 2 * width;
}

TEST(states_go_on_and_back_in_all_ranks)
{
    static const char *const names[] = {"logits/lfm2", "logits/granite-hybrid",
                                        "logits/qwen3-5"};
    const struct division alone = {.ranks = 1, .threads = 1};
    static const struct division divided[] = {{.ranks = 3, .threads = 1},
                                              {.ranks = 2, .threads = 1, .by_layers = true}};
    static float a[4096], b[4096];
    struct esp_backend *one = open_backend(&alone), *many[2];
    for (int k = 0; k < 2; k++)
        many[k] = open_backend(&divided[k]);
    for (int i = 0; i < 3; i++) {
        struct esp_model *model = open_model(names[i]);
        model->desc.state_slots = 2;
        CHECK(2 * model->desc.vocabulary <= 4096);
        const size_t count = run_states(one, &model->desc, a);
        for (int k = 0; k < 2; k++) {
            CHECK(run_states(many[k], &model->desc, b) == count);
            CHECK(memcmp(a, b, count * sizeof *a) == 0, "%s, division %d", names[i], k);
        }
        esp_model_close(model);
    }
    for (int k = 0; k < 2; k++)
        many[k]->ops->close(many[k]);
    one->ops->close(one);
}
