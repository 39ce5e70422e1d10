/* batch_invariant.c - tests a guarantee of kernels.h: every bit of a row's logits depends only
 * on the tokens and positions that the row sees.
 *
 * The reference is plain decoding, one row at a time, on one thread of the portable build.
 * Every instruction set and number of threads must give bit-identical results for batches of 1
 * to 64 rows, chains and trees, after prefixes of many lengths, and after compaction. AMX and
 * CUDA (in exact mode) add in a different order. So each of them is compared with its own plain
 * decoding.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"

enum { TOKENS = 168, CACHE = 240, BATCH = 64, VOCABULARY = 75, SHORT_PREFIX = 16 };

static const struct random_shape shapes[] = {
    {"llama", 2, 72, 6, 3, 24, 80, VOCABULARY, 24, ESP_BF16, false, false, false, false, false},
    {"neox", 2, 40, 2, 2, 20, 96, VOCABULARY, 6, ESP_F32, true, true, true, false, false},
    {"mixed quantised types", 1, 256, 4, 2, 24, 64, VOCABULARY, 24, ESP_Q8_0, false, false,
     true, false, false},
    {"experts of mixed types", 1, 256, 4, 2, 24, 64, VOCABULARY, 24, ESP_Q8_0, false, false,
     false, false, false},
    {"experts with limits and sinks", 1, 64, 4, 2, 24, 64, VOCABULARY, 24, ESP_MXFP4, false,
     false, true, false, false},
    {"experts in f16", 1, 64, 4, 1, 16, 64, VOCABULARY, 16, ESP_F16, false, false, true, true,
     true},
    {"narrow experts in bf16", 2, 64, 4, 2, 16, 208, VOCABULARY, 16, ESP_BF16, false, false,
     false, true, true},
    {"short convolutions", 3, 72, 6, 3, 24, 80, VOCABULARY, 24, ESP_BF16, false, false, false,
     false, false},
    {"delta rules", 3, 72, 6, 3, 24, 80, VOCABULARY, 24, ESP_F32, false, false, false, false,
     false},
    {"state spaces of mixed types", 3, 256, 4, 2, 24, 64, VOCABULARY, 24, ESP_Q8_0, false,
     false, false, false, false},
    {"quantised experts in a bf16 model", 2, 256, 4, 2, 32, 320, VOCABULARY, 32, ESP_BF16,
     false, false, true, false, true},
};

/* Describes the last layer of each shape. Experts that are as wide as the model can be
 * K-quants, because a K-quant has blocks of 256 columns. Narrow experts use only a part of the
 * buffers for activations. */
static const struct {
    int expert_ffn; /* 0 means no experts */
    enum esp_dtype experts;
    bool sinks;
    int window;
    enum esp_mixer mixer; /* the mixer of the first and of the last layer */
} last_layers[] = {{.window = 21},
                   {.window = 21},
                   {.window = 0},
                   {256, ESP_Q8_0, false, 0, ESP_MIXER_ATTENTION},
                   {64, ESP_MXFP4, true, 0, ESP_MIXER_ATTENTION},
                   {64, ESP_F16, false, 0, ESP_MIXER_ATTENTION},
                   {48, ESP_BF16, false, 21, ESP_MIXER_ATTENTION},
                   {.experts = ESP_BF16, .mixer = ESP_MIXER_CONV},
                   {.mixer = ESP_MIXER_DELTA},
                   {.experts = ESP_Q8_0, .mixer = ESP_MIXER_SSM},
                   {256, ESP_Q8_0, false, 21, ESP_MIXER_ATTENTION}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

static int shape_count(void)
{
#ifdef __SANITIZE_ADDRESS__
    return check_quick() ? 1 : SHAPES;
#else
    return SHAPES;
#endif
}

static void make_model(struct random_model *model, int shape, unsigned long long seed)
{
    const int last = shapes[shape].layers - 1;
    random_model_make(model, &shapes[shape], seed);
    model->shape.dtype = last_layers[shape].experts;
    if (last_layers[shape].expert_ffn)
        random_model_mix(model, last, 2, last_layers[shape].expert_ffn);
    if (last_layers[shape].sinks)
        random_model_add_sinks(model);
    model->layers[last].window = last_layers[shape].window;
    if (last_layers[shape].mixer != ESP_MIXER_ATTENTION) {
        random_model_recur(model, 0, last_layers[shape].mixer);
        random_model_recur(model, last, last_layers[shape].mixer);
        model->desc.state_slots = 1;
    }
}

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits;
};

/* Returns the name of the i-th instruction set, then "cuda", then NULL. */
static const char *isa_name(int i)
{
    int count = 0;
    while (test_isa(count))
        count++;
    return i < count ? test_isa(i) : i == count && has_cuda() ? "cuda" : NULL;
}

static const char *yardstick(const char *isa)
{
    static const char *const own[] = {"amx", "tiles", "cuda"};
    for (int i = 0; i < 3; i++)
        if (strcmp(isa, own[i]) == 0)
            return own[i];
    return "generic";
}

/* Returns true if a case is skipped. On a GPU, only one number of threads is tested, because
 * the number of threads has no effect on a GPU. */
static bool skipped(int shape, const char *isa, int threads)
{
    if (strcmp(isa, "cuda") == 0 && !cuda_is_real()) {
        if (shape == SHAPES - 1)
            /* cuda_blocks.c tests the wide experts, which are slow on the emulator */
            return true;
    }
    return (check_quick() || shape > 1 || strcmp(isa, "cuda") == 0) && threads != 2;
}

/* Returns true if fewer sizes are tested: in quick runs, and for short convolutions and delta
 * rules on the emulator. tests/unit/states.c tests these layers more thoroughly. */
static bool is_short(const struct runner *r)
{
    const enum esp_mixer mixer = r->weights->desc->layer[0].mixer;
    return check_quick() || (r->backend->ops != &esp_backend_cpu && !cuda_is_real() &&
                             (mixer == ESP_MIXER_CONV || mixer == ESP_MIXER_DELTA));
}

/* Makes the thread pool work as on a processor whose cores differ in speed. */
static void make_uneven(struct esp_cpu_backend *cpu)
{
    esp_pool_close(cpu->pool);
    cpu->pool = esp_pool_open(cpu->threads, true);
    CHECK(cpu->pool);
}

/* Opens a runner that divides even small batches among all threads. In every second runner, the
 * pool works as if cores differed in speed. Returns false if this computer lacks the
 * instruction set. */
static bool open_runner(struct runner *r, const struct random_model *model, const char *isa,
                        int threads)
{
    static bool uneven;
    char err[200] = "";
    if (strcmp(isa, "cuda") == 0) {
        r->backend = open_cuda();
        r->backend->ops->set_exact(r->backend, true);
    } else {
        if (esp_cpu_open(&r->backend, isa, threads, err, sizeof err) == ESP_E_DEVICE)
            return false;
        ((struct esp_cpu_backend *)r->backend)->worth_a_thread = 0;
        if ((uneven = !uneven))
            make_uneven((struct esp_cpu_backend *)r->backend);
    }
    const struct esp_backend_ops *ops = r->backend->ops;
    CHECK(ops->weights_open(&r->weights, r->backend, &model->desc, NULL, NULL, err,
                            sizeof err) == 0 &&
              ops->cache_open(&r->cache, r->weights, CACHE, BATCH, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, r->backend, BATCH, model->desc.vocabulary, err,
                             sizeof err) == 0,
          "%s", err);
    return true;
}

static void close_runner(struct runner *r)
{
    r->backend->ops->rows_close(r->logits);
    r->backend->ops->cache_close(r->cache);
    r->backend->ops->weights_close(r->weights);
    r->backend->ops->close(r->backend);
}

/* Runs tokens at consecutive positions, starting at `first`, in batches of at most `chunk`. */
static void run_chain(struct runner *r, const int32_t *tokens, int first, int count, int chunk)
{
    int32_t positions[BATCH];
    for (int done = 0, rows; done < count; done += rows) {
        rows = count - done < chunk ? count - done : chunk;
        for (int i = 0; i < rows; i++)
            positions[i] = first + done + i;
        struct esp_batch batch = {.rows = rows,
                                  .tokens = tokens + done,
                                  .positions = positions,
                                  .first = first + done,
                                  .prefix = first + done,
                                  .logits = r->logits};
        CHECK(r->backend->ops->forward(r->cache, &batch) == 0);
    }
}

static bool same_row(struct runner *r, int row, const float *want)
{
    float values[VOCABULARY];
    r->backend->ops->read_row(r->logits, row, values);
    return memcmp(values, want, sizeof values) == 0;
}

static void random_tokens(int32_t *tokens, int count, unsigned long long *state)
{
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(check_uniform(state) * VOCABULARY);
}

/* Writes the logits of plain decoding to `want` (TOKENS, VOCABULARY). */
static void decode_plainly(const struct random_model *model, const char *isa,
                           const int32_t *tokens, float *want)
{
    struct runner r;
    CHECK(open_runner(&r, model, isa, 1));
    for (int i = 0; i < (is_short(&r) ? SHORT_PREFIX + BATCH : TOKENS); i++) {
        run_chain(&r, tokens + i, i, 1, 1);
        r.backend->ops->read_row(r.logits, 0, want + i * VOCABULARY);
    }
    close_runner(&r);
}

static void check_chains(struct runner *r, int shape, const int32_t *tokens, const float *want)
{
    static const int prefixes[] = {0, 1, 15, SHORT_PREFIX, 33, 100};
    const bool brief = is_short(r);
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        int prefix = prefixes[p];
        if (brief && p % 3 != 0)
            continue;
        run_chain(r, tokens, 0, prefix, 1 + prefix / 3);
        const bool each = p == 5 && shape < 2;
        for (int rows = 1; rows <= BATCH; rows += each ? 1 : brief ? 1 + rows : 1 + rows / 4) {
            run_chain(r, tokens + prefix, prefix, rows, rows);
            for (int i = 0; i < rows; i++)
                CHECK(same_row(r, i, want + (prefix + i) * VOCABULARY),
                      "%s, %s: row %d of %d after %d rows", shapes[shape].name,
                      r->backend->ops->device(r->backend), i, rows, prefix);
        }
    }
}

TEST(chains_of_1_to_64_rows_equal_plain_decoding)
{
    static const int threads[] = {1, 2, 3};
    for (int shape = 0; shape < shape_count(); shape++) {
        struct random_model model;
        int32_t tokens[TOKENS];
        unsigned long long state = 11;
        static float want[TOKENS * VOCABULARY];
        const char *decoded = ""; /* the instruction set that computed `want` */
        make_model(&model, shape, 100 + (unsigned)shape);
        random_tokens(tokens, TOKENS, &state);
        for (int i = 0; isa_name(i); i++)
            for (int t = 0; t < 3; t++) {
                const char *isa = isa_name(i);
                struct runner r;
                if (skipped(shape, isa, threads[t]) ||
                    !open_runner(&r, &model, isa, threads[t]))
                    continue;
                if (strcmp(decoded, yardstick(isa)) != 0)
                    decode_plainly(&model, decoded = yardstick(isa), tokens, want);
                check_chains(&r, shape, tokens, want);
                close_runner(&r);
            }
        random_model_free(&model);
    }
}

/* ------------------------------------------------------------------ trees */

struct random_tree {
    int rows;
    int32_t tokens[BATCH], positions[BATCH], parents[BATCH];
    uint64_t mask[BATCH][2];
};

/* Makes a random tree. Node 0 is the root at position `prefix`. Its cache row is `first`, so it
 * has bit first - prefix in the masks. */
static void plant(struct random_tree *t, int rows, int prefix, int first,
                  unsigned long long *state)
{
    memset(t, 0, sizeof *t);
    t->rows = rows;
    random_tokens(t->tokens, rows, state);
    int reach = 1 + (int)(check_uniform(state) * rows);
    for (int i = 0; i < rows; i++) {
        int back = 1 + (int)(check_uniform(state) * (reach < i ? reach : i));
        t->parents[i] = i == 0 ? -1 : i - back;
        t->positions[i] = i == 0 ? prefix : t->positions[t->parents[i]] + 1;
        for (int up = i; up >= 0; up = t->parents[up]) {
            int bit = first - prefix + up;
            t->mask[i][bit / 64] |= (uint64_t)1 << bit % 64;
        }
    }
}

static void run_tree(struct runner *r, const struct random_tree *t, int prefix, int first)
{
    struct esp_batch batch = {.rows = t->rows,
                              .tokens = t->tokens,
                              .positions = t->positions,
                              .first = first,
                              .prefix = prefix,
                              .mask = t->mask[0],
                              .mask_words = 2,
                              .logits = r->logits};
    CHECK(r->backend->ops->forward(r->cache, &batch) == 0);
}

/* Writes the tokens on the path from the root to `node`. Returns how many there are. */
static int path_to(const struct random_tree *t, int node, int32_t *path)
{
    int length = t->positions[node] - t->positions[0] + 1, at = length;
    for (int up = node; up >= 0; up = t->parents[up])
        path[--at] = t->tokens[up];
    return length;
}

/* Does the same as decode_paths() for models with recurrent layers. Recurrent states cannot be
 * rolled back, so each path starts from the states after the prefix. */
static void decode_each_path(struct runner *plain, const struct random_tree *t, float *want)
{
    const struct esp_backend_ops *ops = plain->backend->ops;
    int32_t path[BATCH];
    CHECK(ops->fold(plain->cache, t->positions[0], 0) == 0);
    CHECK(ops->state_save(plain->cache, 0, t->positions[0]) == 0);
    for (int node = 0; node < t->rows; node++) {
        CHECK(ops->state_load(plain->cache, 0) == 0);
        run_chain(plain, path, t->positions[0], path_to(t, node, path), 1);
        ops->read_row(plain->logits, 0, want + node * VOCABULARY);
    }
}

/* Decodes the path of each node alone, and writes the node's logits to `want` (rows,
 * VOCABULARY). Nodes are computed after their parents. So the cache already has a node's
 * ancestors, and only one row is decoded for the node. */
static void decode_paths(struct runner *plain, const struct random_tree *t, int node,
                         float *want)
{
    run_chain(plain, t->tokens + node, t->positions[node], 1, 1);
    plain->backend->ops->read_row(plain->logits, 0, want + node * VOCABULARY);
    for (int child = node + 1; child < t->rows; child++)
        if (t->parents[child] == node)
            decode_paths(plain, t, child, want);
}

/* Compares the logits of tree nodes with the logits of plain decoding on the path to each node.
 * Decoding the paths one by one takes most of the time. So if `plain` is NULL, the logits of an
 * earlier call with the same seed and the same reference are used. */
static void check_trees(struct runner *r, struct runner *plain,
                        const struct random_shape *shape, unsigned long long seed)
{
    static const int rows[] = {1, 2, 3, 5, 8, 12, 17, 33, 64};
    enum { SIZES = sizeof rows / sizeof *rows };
    static float want[SIZES][BATCH * VOCABULARY];
    int32_t tokens[TOKENS];
    const bool brief = is_short(r), all = shape == &shapes[0] || shape == &shapes[1];
    for (int i = 0; i < SIZES - (brief ? 2 : 0); i += brief ? 3 : all ? 1 : 2) {
        struct random_tree tree;
        int prefix = (int)(check_uniform(&seed) * 100);
        /* number of rows of other branches between the prefix and the tree */
        int gap = (int)(check_uniform(&seed) * 40);
        random_tokens(tokens, prefix + gap, &seed);
        run_chain(r, tokens, 0, prefix, BATCH);
        run_chain(r, tokens + prefix, prefix, gap, BATCH);
        plant(&tree, rows[i], prefix, prefix + gap, &seed);
        if (plain) {
            run_chain(plain, tokens, 0, prefix, BATCH);
            if (esp_model_desc_recurrent(plain->weights->desc))
                decode_each_path(plain, &tree, want[i]);
            else
                decode_paths(plain, &tree, 0, want[i]);
        }
        run_tree(r, &tree, prefix, prefix + gap);
        for (int node = 0; node < rows[i]; node++)
            CHECK(same_row(r, node, want[i] + node * VOCABULARY),
                  "%s, %s: node %d of %d, prefix %d, gap %d", shape->name,
                  r->backend->ops->device(r->backend), node, rows[i], prefix, gap);
    }
}

TEST(a_node_of_a_tree_equals_its_path_alone)
{
    for (int shape = 0; shape < shape_count(); shape++) {
        struct random_model model;
        make_model(&model, shape, 200 + (unsigned)shape);
        for (int threads = 1; threads <= 3; threads++) {
            const char *decoded = ""; /* the instruction set that computed the paths */
            for (int i = 0; isa_name(i); i++) {
                const char *isa = isa_name(i);
                struct runner r, plain;
                if (skipped(shape, isa, threads) || !open_runner(&r, &model, isa, threads))
                    continue;
                const bool known = strcmp(decoded, yardstick(isa)) == 0;
                decoded = yardstick(isa);
                if (!known)
                    CHECK(open_runner(&plain, &model, decoded, 1));
                check_trees(&r, known ? NULL : &plain, &shapes[shape], 7 * (unsigned)threads);
                if (!known)
                    close_runner(&plain);
                close_runner(&r);
            }
        }
        random_model_free(&model);
    }
}

/* Compares the logits after each compaction with the logits of `plain`, which are stored in
 * `want` (TOKENS, VOCABULARY). If `plain` is NULL, `want` already has the logits of an earlier
 * call with the same seed and the same reference. */
static void check_compaction(struct runner *r, struct runner *plain,
                             const struct random_shape *shape, unsigned long long state,
                             float *want)
{
    const int end = is_short(r) && !check_quick() ? SHORT_PREFIX : TOKENS - BATCH;
    int length = 0;
    for (int turn = 0; length < end; turn++) {
        struct random_tree tree;
        int32_t path[BATCH], rows[BATCH];
        plant(&tree, 1 + (int)(check_uniform(&state) * BATCH), length, length, &state);
        run_tree(r, &tree, length, length);
        int node = (int)(check_uniform(&state) * tree.rows), count = path_to(&tree, node, path);
        for (int at = count, up = node; up >= 0; up = tree.parents[up])
            rows[--at] = length + up;
        CHECK(r->backend->ops->keep(r->cache, length, rows, count) == 0);
        int32_t next = (int32_t)(check_uniform(&state) * VOCABULARY);
        if (plain) {
            run_chain(plain, path, length, count, 1);
            run_chain(plain, &next, length + count, 1, 1);
            plain->backend->ops->read_row(plain->logits, 0, want + turn * VOCABULARY);
        }
        length += count;
        run_chain(r, &next, length, 1, 1);
        CHECK(same_row(r, 0, want + turn * VOCABULARY), "%s, %s: after %d tokens", shape->name,
              r->backend->ops->device(r->backend), length);
    }
}

TEST(decoding_after_compaction_equals_plain_decoding)
{
    for (int shape = 0; shape < shape_count(); shape++) {
        struct random_model model;
        static float want[TOKENS * VOCABULARY];
        const char *decoded = ""; /* the instruction set that computed `want` */
        make_model(&model, shape, 300);
        for (int i = 0; isa_name(i); i++) {
            const char *isa = isa_name(i);
            struct runner r, plain;
            if (skipped(shape, isa, 2) || !open_runner(&r, &model, isa, 2))
                continue;
            const bool known = strcmp(decoded, yardstick(isa)) == 0;
            decoded = yardstick(isa);
            if (!known)
                CHECK(open_runner(&plain, &model, decoded, 1));
            check_compaction(&r, known ? NULL : &plain, &shapes[shape], 300 + (unsigned)shape,
                             want);
            if (!known)
                close_runner(&plain);
            close_runner(&r);
        }
        random_model_free(&model);
    }
}
