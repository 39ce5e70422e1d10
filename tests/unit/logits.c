/* logits.c - compares the forward pass with an independent implementation, and each node of a
 * tree with a pass over the node's path alone.
 *
 * tests/vectors/logits has small random models with the logits that the Hugging Face library
 * computes for one sequence. Every backend must agree, whether the sequence runs in one batch,
 * token by token or in chunks. In a tree that is computed as one batch, each node sees only its
 * ancestors. Its logits must be bit-identical to the logits of a pass over its path alone. (On
 * CUDA, this is true in exact mode.)
 */
#include <cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/each_backend.h"
#include "tests/rounding.h"
#include "engine/model/model.h"
#include "kernels/model_desc.h"

enum { TOKENS = 40, GREEDY = 48, PREFIX = 9, NODES = 20, CACHE = 96, MAX_VOCABULARY = 128 };

static const char *const folders[] = {"llama-mha",
                                      "llama-gqa",
                                      "llama-mqa-tied",
                                      "llama-bias",
                                      "llama-head-dim",
                                      "llama-rope3",
                                      "llama-rope3-f16",
                                      "llama-bf16",
                                      "neox-parallel",
                                      "neox-sequential",
                                      "neox-bf16",
                                      "neox-f16-tied",
                                      "llama-linear",
                                      "mistral",
                                      "qwen2",
                                      "qwen3",
                                      "mistral-window",
                                      "qwen2-window",
                                      "qwen3-window",
                                      "llama-yarn",
                                      "qwen3-yarn",
                                      "gemma2",
                                      "gemma3",
                                      "gemma3-layers",
                                      "phi3-short",
                                      "phi3-long",
                                      "phi3-partial",
                                      "olmo2",
                                      "smollm3",
                                      "smollm3-window",
                                      "gpt2",
                                      "gpt2-f16",
                                      "granite",
                                      "gemma3-pictures",
                                      "mistral3-pictures",
                                      "qwen3-moe",
                                      "qwen3-moe-some",
                                      "gpt-oss",
                                      "gpt-oss-floats",
                                      "llava-pictures",
                                      "lfm2",
                                      "lfm2-bias",
                                      "qwen3-5",
                                      "qwen3-5-tied",
                                      "qwen3-5-pictures",
                                      "qwen3-5-moe",
                                      "qwen3-5-moe-fused",
                                      "granite-hybrid",
                                      "granite-hybrid-moe",
                                      "qwen3-next",
                                      "nemotron-h",
                                      "lfm2-moe",
                                      "nemotron-h-ends",
                                      "nemotron-h-moe"};

enum { FOLDERS = sizeof folders / sizeof *folders };

struct setup {
    struct esp_model *model;
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
    int count; /* tokens */
    int32_t tokens[TOKENS], greedy[GREEDY];
    bool has_greedy;
    float reference[TOKENS][MAX_VOCABULARY];
};

static FILE *open_file(const struct setup *setup, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", setup->model->path, name);
    FILE *file = fopen(path, "rb");
    CHECK(file, "cannot open %s", path);
    return file;
}

static void read_reference(struct setup *setup)
{
    char text[4096] = "";
    FILE *file = open_file(setup, "reference.json");
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    cJSON *json = cJSON_ParseWithLength(text, n);
    cJSON *list = cJSON_GetObjectItem(json, "tokens");
    setup->count = cJSON_GetArraySize(list);
    CHECK(setup->count >= 24 && setup->count <= TOKENS);
    for (int i = 0; i < setup->count; i++)
        setup->tokens[i] = cJSON_GetArrayItem(list, i)->valueint;
    list = cJSON_GetObjectItem(json, "greedy");
    setup->has_greedy = list != NULL;
    CHECK(!list || cJSON_GetArraySize(list) == GREEDY);
    for (int i = 0; list && i < GREEDY; i++)
        setup->greedy[i] = cJSON_GetArrayItem(list, i)->valueint;
    cJSON_Delete(json);

    size_t vocabulary = (size_t)setup->model->desc.vocabulary;
    file = open_file(setup, "logits.f32");
    for (int i = 0; i < setup->count; i++)
        CHECK(fread(setup->reference[i], sizeof(float), vocabulary, file) == vocabulary);
    CHECK(fgetc(file) == EOF);
    fclose(file);
}

static void open_setup(struct setup *setup, const char *folder, struct esp_backend *backend)
{
    const struct esp_backend_ops *ops = backend->ops;
    char name[64], err[512] = "";
    memset(setup, 0, sizeof *setup);
    setup->backend = backend;
    if (ops->set_exact)
        ops->set_exact(backend, true);
    snprintf(name, sizeof name, "vectors/logits/%s", folder);
    int status = esp_model_open(&setup->model, check_path(name), err, sizeof err);
    CHECK(status == 0, "%s: %d, %s", folder, status, err);
    esp_model_set_context(setup->model, CACHE);
    status = ops->weights_open(&setup->weights, backend, &setup->model->desc, NULL, NULL, err,
                               sizeof err);
    if (status == 0)
        status = ops->cache_open(&setup->cache, setup->weights, CACHE, CACHE, err, sizeof err);
    if (status == 0)
        status = ops->rows_open(&setup->logits, setup->backend, CACHE,
                                setup->model->desc.vocabulary, err, sizeof err);
    CHECK(status == 0, "%s: %d, %s", folder, status, err);
    read_reference(setup);
}

static void close_setup(struct setup *setup)
{
    setup->backend->ops->rows_close(setup->logits);
    setup->backend->ops->cache_close(setup->cache);
    setup->backend->ops->weights_close(setup->weights);
    esp_model_close(setup->model);
}

/* Runs `count` consecutive tokens, starting at cache row and position `first`. */
static void run_chain(struct setup *setup, const int32_t *tokens, int count, int first)
{
    int32_t positions[CACHE];
    for (int i = 0; i < count; i++)
        positions[i] = first + i;
    struct esp_batch batch = {.rows = count,
                              .tokens = tokens,
                              .positions = positions,
                              .first = first,
                              .prefix = first,
                              .logits = setup->logits};
    int status = setup->backend->ops->forward(setup->cache, &batch);
    CHECK(status == 0, "forward: %d", status);
}

static void read_logits(struct setup *setup, int row, float *values)
{
    CHECK(setup->backend->ops->read_row(setup->logits, row, values) == 0);
}

/* ------------------------------------------------------------------ the reference */

/* Computes all logits of the reference's tokens. `user` is the name of the model's folder. */
static void compute_logits(struct esp_backend *cpu, void *user, float *out, int count)
{
    static struct setup setup;
    open_setup(&setup, user, cpu);
    const int vocabulary = setup.model->desc.vocabulary;
    CHECK(count == setup.count * vocabulary);
    run_chain(&setup, setup.tokens, setup.count, 0);
    for (int i = 0; i < setup.count; i++)
        read_logits(&setup, i, out + i * vocabulary);
    close_setup(&setup);
}

/* Returns the largest allowed norm of the difference, relative to the norm of the reference.
 * CUDA rounds weights and activations to 16 bits. Recurrent states accumulate the errors of all
 * tokens. In the worst of these models, the error is 5 % with bf16 and .5 % with fp16. */
static double tolerance(const struct setup *setup, const char *folder)
{
    const int vocabulary = setup->model->desc.vocabulary, count = setup->count * vocabulary;
    double square = 0;
    for (int i = 0; i < count; i++)
        square += pow(setup->reference[i / vocabulary][i % vocabulary], 2) / count;
    if (setup->backend->ops == &esp_backend_cpu)
        return rounding_bound(setup->backend, compute_logits, (void *)folder, count, count) /
               sqrt(square);
    if (strcmp(setup->model->dtype, "F16") == 0)
        return 1e-2;
    return esp_model_desc_recurrent(&setup->model->desc) ? 6e-2 : 5e-2;
}

static bool is_emulated(const struct esp_backend *backend)
{
    return backend->ops != &esp_backend_cpu && !cuda_is_real();
}

/* The emulator is slow, so with many small passes only every third model is tested. */
static int step_of(const struct esp_backend *backend, int chunk)
{
    return chunk < 16 && is_emulated(backend) ? 3 : 1;
}

/* Under sanitizers, the emulator is even slower, so trees are computed only with every third
 * model. */
static int step_of_trees(const struct esp_backend *backend)
{
#ifdef __SANITIZE_ADDRESS__
    return is_emulated(backend) ? 3 : 1;
#else
    (void)backend;
    return 1;
#endif
}

/* Holds sums over the values of a row. Its relative difference from the reference is the root
 * of error / norm. */
struct difference {
    double error, norm; /* squared */
};

static struct difference difference_of(struct setup *setup, int row, int token)
{
    struct difference d = {0, 0};
    float values[MAX_VOCABULARY];
    read_logits(setup, row, values);
    for (int v = 0; v < setup->model->desc.vocabulary; v++) {
        const double want = setup->reference[token][v];
        d.error += (values[v] - want) * (values[v] - want);
        d.norm += want * want;
    }
    return d;
}

/* Returns the difference of all rows together. If a row's two best experts are nearly equally
 * likely, rounding can exchange them. So for a mixture on CUDA, the worst row is ignored. */
static double join_rows(const struct setup *setup, const struct difference *d)
{
    const bool mixed =
        setup->model->desc.experts > 0 && setup->backend->ops != &esp_backend_cpu;
    double error = 0, norm = 0;
    int worst = -1;
    for (int i = 0; mixed && i < setup->count; i++)
        if (worst < 0 || d[i].error * d[worst].norm > d[worst].error * d[i].norm)
            worst = i;
    for (int i = 0; i < setup->count; i++)
        if (i != worst) {
            error += d[i].error;
            norm += d[i].norm;
        }
    return sqrt(error / norm);
}

static void check_chunks(struct esp_backend *backend, int chunk)
{
    static struct setup setup;
    for (int f = 0; f < FOLDERS; f += step_of(backend, chunk)) {
        struct difference d[TOKENS];
        open_setup(&setup, folders[f], backend);
        for (int first = 0; first < setup.count; first += chunk) {
            int count = first + chunk < setup.count ? chunk : setup.count - first;
            run_chain(&setup, setup.tokens + first, count, first);
            for (int i = 0; i < count; i++)
                d[first + i] = difference_of(&setup, i, first + i);
        }
        const double error = join_rows(&setup, d);
        const double most = tolerance(&setup, folders[f]);
        CHECK(error < most, "%s: logits differ by %g, more than %g", folders[f], error, most);
        close_setup(&setup);
    }
}

EACH_BACKEND(one_batch_matches_the_reference)
{
    check_chunks(backend, TOKENS);
}

EACH_BACKEND(token_by_token_matches_the_reference)
{
    check_chunks(backend, 1);
}

EACH_BACKEND(chunks_match_the_reference)
{
    if (!check_quick())
        check_chunks(backend, 5);
    check_chunks(backend, 16);
}

/* This test uses only the CPU. If two tokens are nearly equally likely, CUDA's rounding can
 * change which of them is chosen. The test uses one thread, which loads several panels of a
 * transposed matrix at a time. */
TEST(greedy_tokens_are_those_of_the_reference)
{
    static struct setup setup;
    struct esp_backend *backend;
    int compared = 0;
    CHECK(esp_backend_cpu.open(&backend, 1, NULL, 0) == 0);
    for (int f = 0; f < FOLDERS; f++) {
        open_setup(&setup, folders[f], backend);
        run_chain(&setup, setup.tokens, setup.count, 0);
        for (int i = 0, row = setup.count - 1; setup.has_greedy && i < GREEDY; i++, row = 0) {
            int32_t best;
            CHECK(backend->ops->argmax(setup.logits, &row, 1, &best, ESP_NOW) == 0);
            CHECK(best == setup.greedy[i], "%s: token %d is %d, not %d", folders[f], i, best,
                  setup.greedy[i]);
            run_chain(&setup, &best, 1, setup.count + i);
        }
        compared += setup.has_greedy;
        close_setup(&setup);
    }
    backend->ops->close(backend);
    CHECK(compared >= 17);
}

/* ------------------------------------------------------------------ trees */

struct tree {
    int32_t tokens[NODES], positions[NODES];
    int parent[NODES]; /* -1 means the last row of the prefix */
    uint64_t mask[NODES];
};

/* Makes a random tree, with parents before children. */
static void grow(struct tree *tree, int vocabulary, unsigned long long *state)
{
    for (int i = 0; i < NODES; i++) {
        int parent = (int)(check_uniform(state) * (i + 1)) - 1;
        tree->tokens[i] = (int32_t)(check_uniform(state) * vocabulary);
        tree->parent[i] = parent;
        tree->positions[i] = parent < 0 ? PREFIX : tree->positions[parent] + 1;
        tree->mask[i] = (parent < 0 ? 0 : tree->mask[parent]) | UINT64_C(1) << i;
    }
}

/* Runs the path from the prefix to `node` alone. Returns the length of the path. */
static int run_path(struct setup *setup, const struct tree *tree, int node)
{
    int32_t path[NODES];
    int depth = tree->positions[node] - PREFIX + 1;
    for (int i = depth - 1, n = node; i >= 0; i--, n = tree->parent[n])
        path[i] = tree->tokens[n];
    run_chain(setup, path, depth, PREFIX);
    return depth;
}

static bool is_leaf(const struct tree *tree, int node)
{
    for (int i = node + 1; i < NODES; i++)
        if (tree->parent[i] == node)
            return false;
    return true;
}

EACH_BACKEND(a_tree_equals_its_paths)
{
    static struct setup setup;
    unsigned long long state = 7;
    for (int f = 0; f < FOLDERS; f += step_of_trees(backend)) {
        static float masked[NODES][MAX_VOCABULARY], alone[MAX_VOCABULARY];
        struct tree tree;
        open_setup(&setup, folders[f], backend);
        size_t bytes = sizeof(float) * (size_t)setup.model->desc.vocabulary;
        const bool one = check_quick() || is_emulated(backend);
        for (int round = 0; round < (one ? 1 : 3); round++) {
            grow(&tree, setup.model->desc.vocabulary, &state);
            run_chain(&setup, setup.tokens, PREFIX, 0);
            struct esp_batch batch = {.rows = NODES,
                                      .tokens = tree.tokens,
                                      .positions = tree.positions,
                                      .first = PREFIX,
                                      .prefix = PREFIX,
                                      .mask = tree.mask,
                                      .mask_words = 1,
                                      .logits = setup.logits};
            CHECK(setup.backend->ops->forward(setup.cache, &batch) == 0);
            for (int i = 0; i < NODES; i++)
                read_logits(&setup, i, masked[i]);
            /* the path of a leaf also gives the logits of its ancestors */
            for (int i = 0; i < NODES; i++) {
                int row = is_leaf(&tree, i) ? run_path(&setup, &tree, i) : 0;
                for (int n = i; row-- > 0; n = tree.parent[n]) {
                    read_logits(&setup, row, alone);
                    CHECK(memcmp(masked[n], alone, bytes) == 0, "%s: node %d of round %d",
                          folders[f], n, round);
                }
            }
            /* Siblings with different tokens must have different logits. Otherwise the
             * comparison proves nothing. */
            for (int i = 1; i < NODES; i++)
                CHECK(tree.tokens[i] == tree.tokens[0] ||
                      memcmp(masked[i], masked[0], bytes) != 0);
        }
        close_setup(&setup);
    }
}

/* The accepted path of a tree is moved to the end of the text in the cache. This must not
 * affect later results. */
EACH_BACKEND(compaction_keeps_a_path)
{
    static struct setup setup;
    unsigned long long state = 11;
    for (int f = 0; f < FOLDERS; f += step_of_trees(backend)) {
        static float kept[MAX_VOCABULARY], alone[MAX_VOCABULARY];
        struct tree tree;
        open_setup(&setup, folders[f], backend);
        grow(&tree, setup.model->desc.vocabulary, &state);
        int deepest = 0;
        for (int i = 0; i < NODES; i++)
            deepest = tree.positions[i] > tree.positions[deepest] ? i : deepest;
        int depth = tree.positions[deepest] - PREFIX + 1;
        int32_t rows[NODES], next = 3;
        for (int i = depth - 1, n = deepest; i >= 0; i--, n = tree.parent[n])
            rows[i] = PREFIX + n;

        run_chain(&setup, setup.tokens, PREFIX, 0);
        struct esp_batch batch = {.rows = NODES,
                                  .tokens = tree.tokens,
                                  .positions = tree.positions,
                                  .first = PREFIX,
                                  .prefix = PREFIX,
                                  .mask = tree.mask,
                                  .mask_words = 1};
        CHECK(setup.backend->ops->forward(setup.cache, &batch) == 0);
        CHECK(setup.backend->ops->keep(setup.cache, PREFIX, rows, depth) == 0);
        run_chain(&setup, &next, 1, PREFIX + depth);
        read_logits(&setup, 0, kept);

        /* recurrent states cannot be shortened, so the prefix runs again */
        run_chain(&setup, setup.tokens, PREFIX, 0);
        read_logits(&setup, run_path(&setup, &tree, deepest) - 1, alone);
        run_chain(&setup, &next, 1, PREFIX + depth);
        read_logits(&setup, 0, alone);
        CHECK(memcmp(kept, alone, sizeof(float) * (size_t)setup.model->desc.vocabulary) == 0,
              "%s", folders[f]);
        close_setup(&setup);
    }
}
