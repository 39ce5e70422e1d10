/* states.c - tests recurrent layers. Tests which state a row reads, that rows of a tree leave
 * no trace in the states, and that a text can be shortened.
 *
 * tests/unit/batch_invariant.c compares the logits of trees and chains with recurrent layers
 * bit by bit. This file tests the states: how much memory they take, which rows change them,
 * and the checkpoints that esp_kv_cache_cut() returns to. CUDA runs in exact mode, except in
 * one test.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kv_cache.h"
#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"

enum { VOCABULARY = 75, TOKENS = 300, TREE = 24, BATCH = 128 };

static const struct random_shape shape = {
    "hybrid", 3, 40, 2, 1, 16, 48, VOCABULARY, 8, ESP_F32, false, false, false, false, false};

static const enum esp_mixer mixers[] = {ESP_MIXER_CONV, ESP_MIXER_DELTA, ESP_MIXER_SSM};

enum { MIXERS = sizeof mixers / sizeof *mixers };

/* The backend on which the current test runs, its mode (on CUDA), and its memory limit. A limit
 * of 0 means that there is no limit. */
static bool on_cuda, in_default_mode;
static size_t limit;

/* Defines a test that runs on the CPU backend and on CUDA. */
#define ON_BOTH(test_name)                                                                     \
    static void test_name##_on(void);                                                          \
    TEST(test_name)                                                                            \
    {                                                                                          \
        for (int i = 0; i < (has_cuda() ? 2 : 1); i++) {                                       \
            on_cuda = i == 1;                                                                  \
            test_name##_on();                                                                  \
        }                                                                                      \
        on_cuda = false;                                                                       \
    }                                                                                          \
    static void test_name##_on(void)

/* Returns whether the test runs on the emulator, which is slow. */
static bool is_emulated(void)
{
    return on_cuda && !cuda_is_real();
}

struct runner {
    struct random_model model;
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_rows *logits;
    struct esp_kv_cache cache;
    int32_t text[TOKENS];
};

/* Opens a model whose first and last layers are recurrent. */
static void open_runner(struct runner *r, enum esp_mixer mixer, int slots)
{
    unsigned long long state = 5;
    char err[300] = "";
    random_model_make(&r->model, &shape, 17);
    random_model_recur(&r->model, 0, mixer);
    random_model_recur(&r->model, 2, mixer);
    r->model.desc.state_slots = slots;
    r->model.desc.limit = (struct esp_memory_limit){limit, 0};
    if (on_cuda)
        r->backend = open_cuda();
    else
        CHECK(esp_backend_cpu.open(&r->backend, 2, err, sizeof err) == 0, "%s", err);
    const struct esp_backend_ops *ops = r->backend->ops;
    if (on_cuda)
        ops->set_exact(r->backend, !in_default_mode);
    CHECK(ops->weights_open(&r->weights, r->backend, &r->model.desc, NULL, NULL, err,
                            sizeof err) == 0,
          "%s", err);
    CHECK(ops->rows_open(&r->logits, r->backend, BATCH, VOCABULARY, err, sizeof err) == 0);
    CHECK(esp_kv_cache_open(&r->cache, ops, r->weights, VOCABULARY, TOKENS, TREE, err,
                            sizeof err) == 0,
          "%s", err);
    for (int i = 0; i < TOKENS; i++)
        r->text[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
}

static void close_runner(struct runner *r)
{
    esp_kv_cache_close(&r->cache);
    r->backend->ops->rows_close(r->logits);
    r->backend->ops->weights_close(r->weights);
    r->backend->ops->close(r->backend);
    random_model_free(&r->model);
}

static const struct esp_cpu_states *states_of(const struct runner *r)
{
    return &((const struct esp_cpu_cache *)r->cache.cache)->states;
}

/* Returns how many bytes all states take, including the inputs that convolutions read from the
 * last tokens. */
static size_t state_bytes(const struct runner *r)
{
    return r->backend->ops->state_bytes(&r->model.desc);
}

/* Computes the logits after the first `length` tokens of the text from the beginning, in a
 * separate cache. */
static void compute_afresh(const struct runner *r, int length, float *logits)
{
    struct esp_kv_cache cache;
    CHECK(esp_kv_cache_open(&cache, r->backend->ops, r->weights, VOCABULARY, TOKENS, TREE, NULL,
                            0) == 0);
    CHECK(esp_kv_cache_append(&cache, r->text, length, r->logits, NULL) == 0);
    CHECK(r->backend->ops->read_row(r->logits, 0, logits) == 0);
    esp_kv_cache_close(&cache);
}

/* Computes the logits after the first `length` tokens of the text. The cache already has a part
 * of these tokens. */
static void compute_on(struct runner *r, int length, float *logits)
{
    CHECK(r->cache.length < length);
    CHECK(esp_kv_cache_append(&r->cache, r->text + r->cache.length, length - r->cache.length,
                              r->logits, NULL) == 0);
    CHECK(r->backend->ops->read_row(r->logits, 0, logits) == 0);
}

static void check_logits(struct runner *r, int length, const char *what)
{
    float own[VOCABULARY], want[VOCABULARY];
    compute_on(r, length, own);
    compute_afresh(r, length, want);
    CHECK(memcmp(own, want, sizeof own) == 0, "%s: %d tokens", what, length);
}

/* Runs the next `rows` rows of the text, but tells the backend that only the first `certain`
 * rows are text. */
static int run_rows(struct runner *r, int rows, int certain)
{
    struct esp_batch batch = {.rows = rows, .text = certain};
    return esp_kv_cache_run(&r->cache, r->text + r->cache.length, &batch);
}

ON_BOTH(any_chunks_of_a_prompt_give_the_same_bits)
{
    static struct runner r;
    const bool emulated = is_emulated();
    const int step = emulated ? 34 : check_quick() ? 23 : 3, length = emulated ? 90 : 200;
    for (int m = 0; m < MIXERS; m++)
        for (int chunk = 1; chunk <= 70; chunk += step)
            for (int certain = 0; certain < 3; certain++) {
                if (emulated && certain != chunk % 3)
                    continue;
                open_runner(&r, mixers[m], 0);
                while (r.cache.length + chunk < length)
                    CHECK(run_rows(&r, chunk, certain * chunk / 2) == 0, "%d of %d", certain,
                          chunk);
                check_logits(&r, length, "chunks");
                close_runner(&r);
            }
}

/* ------------------------------------------------------------------ trees */

/* Runs a random tree after the text, and accepts a random path of it. Node 0 is a token of the
 * text. */
static void run_tree(struct runner *r, int nodes, int32_t *parents, unsigned long long *state)
{
    int32_t tokens[TREE], positions[TREE];
    uint64_t mask[TREE];
    for (int i = 0; i < nodes; i++) {
        parents[i] = i == 0 ? -1 : (int32_t)(check_uniform(state) * i);
        tokens[i] =
            i == 0 ? r->text[r->cache.length] : (int32_t)(check_uniform(state) * VOCABULARY);
        positions[i] = i == 0 ? r->cache.length : positions[parents[i]] + 1;
        mask[i] = (i == 0 ? 0 : mask[parents[i]]) | UINT64_C(1) << i;
    }
    struct esp_batch batch = {.rows = nodes,
                              .tokens = tokens,
                              .positions = positions,
                              .mask = mask,
                              .mask_words = 1,
                              .text = check_uniform(state) < 0.5};
    esp_kv_cache_place(&r->cache, 0, &batch);
    CHECK(esp_kv_cache_forward(&r->cache, &batch) == 0);
    /* The accepted path becomes the text. */
    int path[TREE], depth = 0;
    for (int node = (int)(check_uniform(state) * nodes); node >= 0; node = parents[node])
        path[depth++] = node;
    int32_t which[TREE];
    for (int i = 0; i < depth; i++) {
        which[i] = path[depth - 1 - i];
        r->text[r->cache.length + i] = tokens[which[i]];
    }
    CHECK(esp_kv_cache_keep(&r->cache, which, depth) == 0);
}

ON_BOTH(a_rejected_row_leaves_no_trace)
{
    static struct runner r, chain;
    for (int m = 0; m < MIXERS; m++) {
        unsigned long long state = 40 + (unsigned)m;
        int32_t parents[TREE];
        open_runner(&r, mixers[m], 0);
        while (r.cache.length < (is_emulated() ? 80 : TOKENS - TREE))
            run_tree(&r, 1 + (int)(check_uniform(&state) * TREE), parents, &state);
        CHECK(r.backend->ops->fold(r.cache.cache, r.cache.length, 0) == 0);
        open_runner(&chain, mixers[m], 0);
        memcpy(chain.text, r.text, sizeof r.text);
        CHECK(esp_kv_cache_append(&chain.cache, chain.text, r.cache.length, NULL, NULL) == 0);
        CHECK(chain.cache.cache->folded == r.cache.cache->folded);
        /* the states on the device cannot be read, but the next logits depend on them */
        if (on_cuda) {
            const int length = r.cache.length + 3;
            float own[VOCABULARY], want[VOCABULARY];
            compute_on(&r, length, own);
            compute_on(&chain, length, want);
            CHECK(memcmp(own, want, sizeof own) == 0);
        } else {
            CHECK(memcmp(states_of(&r)->memory, states_of(&chain)->memory, state_bytes(&r)) ==
                  0);
        }
        close_runner(&chain);
        close_runner(&r);
    }
}

/* If a tree runs in several passes, as in a draft model, the rows must be the same as in one
 * pass. */
ON_BOTH(a_tree_in_several_passes_gives_the_same_rows)
{
    static struct runner r;
    for (int m = 0; m < MIXERS; m++) {
        float once[4][VOCABULARY], later[VOCABULARY];
        const int32_t tokens[4] = {3, 9, 11, 60}, positions[4] = {20, 20, 21, 22};
        /* row 0 is alone, and rows 1, 2 and 3 are a chain */
        const uint64_t mask[4] = {1, 2, 6, 14};
        open_runner(&r, mixers[m], 0);
        CHECK(esp_kv_cache_append(&r.cache, r.text, 20, NULL, NULL) == 0);
        for (int several = 0; several < 2; several++)
            for (int first = 0; first < 4; first += several ? 1 : 4) {
                struct esp_batch batch = {.rows = several ? 1 : 4,
                                          .tokens = tokens + first,
                                          .positions = positions + first,
                                          .mask = mask + first,
                                          .mask_words = 1,
                                          .logits = r.logits};
                esp_kv_cache_place(&r.cache, first, &batch);
                CHECK(esp_kv_cache_forward(&r.cache, &batch) == 0);
                for (int i = 0; i < batch.rows; i++)
                    CHECK(r.backend->ops->read_row(r.logits, i, several ? later : once[i]) ==
                          0);
                CHECK(!several || memcmp(once[first], later, sizeof later) == 0, "row %d",
                      first);
            }
        close_runner(&r);
    }
}

/* Runs a pass over `rows` rows, and returns how many states the pass reads and writes. The rows
 * are a chain, or a tree in which the parent of row i is row (i - 1) / 2. The first `certain`
 * rows are text. */
static struct esp_state_traffic count_pass(struct runner *r, int rows, bool tree, int certain)
{
    int32_t tokens[TREE], positions[TREE];
    uint64_t mask[TREE];
    for (int i = 0; i < rows; i++) {
        const int parent = tree ? (i - 1) / 2 : i - 1;
        tokens[i] = r->text[r->cache.length + i];
        positions[i] = i == 0 ? r->cache.length : positions[parent] + 1;
        mask[i] = (i == 0 ? 0 : mask[parent]) | UINT64_C(1) << i;
    }
    const struct esp_state_traffic before = r->cache.cache->traffic;
    struct esp_batch batch = {.rows = rows,
                              .tokens = tokens,
                              .positions = positions,
                              .mask = mask,
                              .mask_words = 1,
                              .text = certain};
    esp_kv_cache_place(&r->cache, 0, &batch);
    CHECK(esp_kv_cache_forward(&r->cache, &batch) == 0);
    const struct esp_state_traffic *now = &r->cache.cache->traffic;
    return (struct esp_state_traffic){now->steps - before.steps, now->read - before.read,
                                      now->written - before.written};
}

static int folded_after(int length)
{
    return length / ESP_STATE_CHUNK * ESP_STATE_CHUNK;
}

/* A tree must take as many updates as a chain with the same number of rows. A pass must read
 * each state once, and must write it only if the text has completed a chunk. If each node had a
 * copy of the states, a pass would write them once per node. */
ON_BOTH(a_tree_costs_the_updates_of_a_chain)
{
    static struct runner r;
    const int32_t path[3] = {0, 2, 6};
    for (int m = 0; m < MIXERS; m++)
        for (int rows = 1; rows <= TREE; rows += 7)
            for (int tree = 0; tree < 2; tree++) {
                const int begin = 16 + rows % ESP_STATE_CHUNK;
                int folded = folded_after(begin);
                open_runner(&r, mixers[m], 0);
                const int64_t states = (int64_t)state_bytes(&r);
                CHECK(esp_kv_cache_append(&r.cache, r.text, begin, NULL, NULL) == 0);
                for (int pass = 0; pass < (is_emulated() ? 3 : 6); pass++) {
                    const int certain = pass % 3 != 2, text = r.cache.length + certain;
                    const bool writes = folded_after(text) > folded;
                    struct esp_state_traffic t = count_pass(&r, rows, tree, certain);
                    CHECK(t.steps == 2 * rows, "%d rows had %d updates", rows, (int)t.steps);
                    CHECK(t.read == states && t.written == (writes ? states : 0),
                          "%d rows after %d tokens", rows, text);
                    folded = folded_after(text);
                    CHECK(r.cache.cache->folded == folded);
                    CHECK(esp_kv_cache_keep(&r.cache, path, rows > 6 ? 3 : 1) == 0);
                }
                close_runner(&r);
            }
}

/* Checks walks through random trees. A walk computes the state for each row of a tree that
 * follows some tokens of a text. At level 0, it starts with the state of the text. */
TEST(a_walk_reads_the_state_after_the_parent)
{
    enum { MOST = 300, SCRATCH = MOST + 1 };
    static int32_t parent[MOST], scratch[6][SCRATCH];
    static struct esp_walk_step step[MOST];
    unsigned long long random = 3;
    struct esp_state_walk walk = {0,          0,          parent,     step,       scratch[0],
                                  scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]};
    for (int trial = 0; trial < 200; trial++) {
        int holds[ESP_WALK_LEVELS] = {-1}, levels = 0;
        bool seen[MOST] = {false};
        walk.texts = trial % 4;
        walk.count = walk.texts + (int)(check_uniform(&random) * (MOST - 4));
        for (int i = 0; i < walk.count; i++)
            parent[i] = i <= walk.texts ? i - 1
                        : trial % 3     ? walk.texts - 1 +
                                          (int)(check_uniform(&random) * (i - walk.texts + 1))
                                    : i - 1 - (int)(check_uniform(&random) * 2);
        esp_walk_order(&walk);
        for (int i = 0; i < walk.count; i++) {
            const struct esp_walk_step *s = &step[i];
            CHECK(s->entry >= 0 && s->entry < walk.count && !seen[s->entry]);
            CHECK(holds[s->from] == parent[s->entry],
                  "step %d reads the state after %d, not %d", i, holds[s->from],
                  parent[s->entry]);
            CHECK((s->to == 0) == (s->entry < walk.texts));
            holds[s->to] = s->entry;
            seen[s->entry] = true;
            levels = s->to > levels ? s->to : levels;
        }
        CHECK(levels < 2 || 1 << (levels - 1) <= walk.count, "%d levels for %d rows", levels,
              walk.count);
    }
}

/* Follows the path of an entry of the plan back to the start of the entry's chunk. Returns the
 * last entry before that chunk, or -1. */
static int before_chunk(const struct esp_state_plan *p, int entry)
{
    for (int i = p->entry[entry].place; i >= 0; i--)
        entry = p->entry[entry].parent;
    return entry;
}

/* Makes a random batch whose first `text` rows are a chain. */
static struct esp_batch random_batch(unsigned long long *random, int rows, int text, int prefix,
                                     uint64_t *mask, int *depth)
{
    for (int i = 0; i < rows; i++) {
        const int low = text > 0 ? text - 1 : -1;
        const int parent = i <= text ? i - 1
                           : check_uniform(random) < 0.6
                               ? i - 1
                               : low + (int)(check_uniform(random) * (i - low));
        mask[i] = (parent < 0 ? 0 : mask[parent]) | UINT64_C(1) << i;
        depth[i] = parent < 0 ? 0 : depth[parent] + 1;
    }
    return (struct esp_batch){.rows = rows,
                              .first = prefix,
                              .prefix = prefix,
                              .mask = mask,
                              .mask_words = 1,
                              .text = text};
}

/* Each row must be in a group that begins with the state before the chunk of the row. */
TEST(a_row_reads_the_state_before_its_chunk)
{
    enum { ROWS = 60 };
    unsigned long long random = 8;
    struct esp_state_plan p = {.room = esp_state_plan_room(ROWS), .ring = 200};
    void *memory = malloc(esp_state_plan_bytes(p.room));
    CHECK(memory != NULL);
    esp_state_plan_lay_out(&p, memory);
    for (int trial = 0; trial < 500; trial++) {
        uint64_t mask[ROWS];
        int depth[ROWS], seen[ROWS] = {0};
        const int rows = (int)(check_uniform(&random) * (ROWS + 1));
        const int text = (int)(check_uniform(&random) * (rows + 1));
        const int folded = ESP_STATE_CHUNK * (int)(check_uniform(&random) * 9);
        const int prefix = folded + (int)(check_uniform(&random) * (p.room - rows));
        const struct esp_cache cache = {.folded = folded};
        const struct esp_batch batch = random_batch(&random, rows, text, prefix, mask, depth);
        CHECK(esp_state_plan_make(&p, &cache, &batch));
        CHECK(p.folded == folded_after(prefix + text));
        CHECK(p.walk.texts == (p.folded - (prefix == 0 ? 0 : folded)) / ESP_STATE_CHUNK);
        for (int g = 0; g < p.groups; g++)
            for (int m = 0; m < p.group[g].count; m++) {
                const int row = p.member[p.group[g].first + m];
                const int entry = esp_state_plan_entry(&p, row);
                CHECK(p.entry[entry].place == (prefix + depth[row]) % ESP_STATE_CHUNK);
                CHECK(before_chunk(&p, entry) == p.group[g].last);
                CHECK(m == 0 || row > p.member[p.group[g].first + m - 1]);
                seen[row]++;
            }
        for (int row = 0; row < rows; row++)
            CHECK(seen[row] == 1);
    }
    free(memory);
}

ON_BOTH(states_that_are_not_available_are_refused)
{
    static struct runner r;
    const int32_t token = 1, position = 10;
    open_runner(&r, ESP_MIXER_DELTA, 1);
    const struct esp_backend_ops *ops = r.backend->ops;
    CHECK(esp_kv_cache_append(&r.cache, r.text, 30, NULL, NULL) == 0);
    struct esp_batch batch = {
        .rows = 1, .tokens = &token, .positions = &position, .first = 10, .prefix = 10};
    CHECK(ops->forward(r.cache.cache, &batch) == ESP_E_ARGUMENT);
    CHECK(r.cache.cache->folded == 24);
    CHECK(ops->fold(r.cache.cache, 23, 0) == ESP_E_ARGUMENT);
    CHECK(ops->state_load(r.cache.cache, 0) == ESP_E_ARGUMENT); /* no states were saved */
    CHECK(ops->state_save(r.cache.cache, 1, 30) == ESP_E_ARGUMENT);
    CHECK(ops->state_save(r.cache.cache, -1, 30) == ESP_E_ARGUMENT);
    CHECK(ops->state_save(r.cache.cache, 0, 23) == ESP_E_ARGUMENT);
    /* refused, because only 24 tokens are in the states */
    CHECK(ops->state_save(r.cache.cache, 0, 32) == ESP_E_ARGUMENT);
    /* The second row does not attend to the first row, which is text. So the batch must be
     * refused. */
    const uint64_t mask[2] = {1, 2};
    const int32_t tokens[2] = {1, 2}, positions[2] = {30, 30};
    struct esp_batch apart = {.rows = 2,
                              .tokens = tokens,
                              .positions = positions,
                              .first = 30,
                              .prefix = 30,
                              .mask = mask,
                              .mask_words = 1,
                              .text = 1};
    CHECK(ops->forward(r.cache.cache, &apart) == ESP_E_ARGUMENT);
    apart.text = 0;
    CHECK(ops->forward(r.cache.cache, &apart) == 0);
    apart.first = 31;
    apart.text = 1;
    CHECK(ops->forward(r.cache.cache, &apart) == ESP_E_ARGUMENT);
    check_logits(&r, 40, "after that");
    close_runner(&r);
}

/* In default mode, a prompt of 100 rows uses different matrix products than in exact mode. */
TEST(modes_differ_only_by_rounding)
{
    static struct runner r;
    if (!has_cuda())
        check_skip();
    for (int m = 0; m < MIXERS; m++) {
        float logits[2][VOCABULARY];
        double error = 0, square = 0;
        for (int i = 0; i < 2; i++) {
            on_cuda = true;
            in_default_mode = i == 1;
            open_runner(&r, mixers[m], 0);
            on_cuda = in_default_mode = false;
            compute_on(&r, 100, logits[i]);
            close_runner(&r);
        }
        for (int v = 0; v < VOCABULARY; v++) {
            error += pow((double)logits[1][v] - (double)logits[0][v], 2);
            square += pow((double)logits[0][v], 2);
        }
        CHECK(error > 0 && sqrt(error / square) < 0.03, "%g", sqrt(error / square));
    }
}

/* Layers that do not fit on the GPU are in the host's memory. Their states must be the same. */
TEST(layers_that_do_not_fit_have_the_same_states)
{
    static struct runner r[2];
    struct esp_streamed streamed;
    if (!has_cuda())
        check_skip();
    for (int m = 0; m < MIXERS; m++) {
        float logits[2][VOCABULARY];
        for (int i = 0; i < 2; i++) {
            unsigned long long state = 60;
            int32_t parents[TREE];
            on_cuda = true;
            limit = i; /* a limit of 1 byte means that most layers are streamed */
            open_runner(&r[i], mixers[m], 1);
            on_cuda = false;
            limit = 0;
            const struct esp_backend_ops *ops = r[i].backend->ops;
            CHECK(ops->weights_streamed(r[i].weights, &streamed) == (i == 1));
            for (int tree = 0; tree < 3; tree++)
                run_tree(&r[i], TREE, parents, &state);
            CHECK(ops->fold(r[i].cache.cache, r[i].cache.length, 0) == 0);
            CHECK(ops->state_save(r[i].cache.cache, 0, r[i].cache.length) == 0);
            run_tree(&r[i], TREE, parents, &state);
            CHECK(ops->state_load(r[i].cache.cache, 0) == 0);
            compute_on(&r[i], r[i].cache.length + 2, logits[i]);
        }
        CHECK(memcmp(logits[0], logits[1], sizeof logits[0]) == 0);
        close_runner(&r[0]);
        close_runner(&r[1]);
    }
}

/* ------------------------------------------------------------------ joined caches */

/* A draft model with other weights can share the target's cache. Its rows come after the
 * text. They must read the states after the text, and the text must continue as if they had
 * never been computed. In this test, both models have equal weights, so the drafted rows can
 * be compared with rows of the text. */
ON_BOTH(a_joined_cache_reads_the_states_and_changes_none)
{
    enum { AHEAD = 11 };
    static struct runner r;
    for (int m = 0; m < MIXERS; m++) {
        unsigned long long state = 70 + (unsigned)m;
        float own[VOCABULARY], want[VOCABULARY];
        struct esp_weights *others;
        struct esp_kv_cache view;
        open_runner(&r, mixers[m], 1);
        const struct esp_backend_ops *ops = r.backend->ops;
        struct esp_model_desc desc = r.model.desc;
        desc.lender = r.weights;
        desc.state_slots = 0;
        CHECK(ops->weights_open(&others, r.backend, &desc, NULL, NULL, NULL, 0) == 0);
        CHECK(esp_kv_cache_join(&view, &r.cache, others, VOCABULARY, NULL, 0) == 0);
        for (int length = 0; length < (is_emulated() ? 20 : 90); length += 1 + length % 4) {
            if (length > 0)
                check_logits(&r, length, "the text");
            CHECK(esp_kv_cache_follow(&view, &r.cache, TREE) == 0 && view.length == length);
            for (int i = 0; i < AHEAD; i++)
                CHECK(esp_kv_cache_append(&view, r.text + length + i, 1, r.logits, NULL) == 0);
            CHECK(ops->read_row(r.logits, 0, own) == 0);
            compute_afresh(&r, length + AHEAD, want);
            CHECK(memcmp(own, want, sizeof own) == 0, "%d tokens", length);
            for (int i = length; i < TOKENS; i++)
                r.text[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
        }
        esp_kv_cache_close(&view);
        ops->weights_close(others);
        close_runner(&r);
    }
}

/* ------------------------------------------------------------------ checkpoints */

ON_BOTH(a_shortened_text_continues_like_a_new_one)
{
    static const int slots[] = {0, 1, ESP_CHECKPOINTS};
    static struct runner r;
    for (int m = 0; m < MIXERS; m++)
        for (int s = is_emulated() ? 1 : 0; s < 3; s++) {
            unsigned long long state = 100 + 10 * (unsigned)m + (unsigned)s;
            int32_t parents[TREE];
            open_runner(&r, mixers[m], slots[s]);
            for (int round = 0; round < (is_emulated()   ? 3
                                         : check_quick() ? 12
                                                         : 60);
                 round++) {
                const int room = TOKENS - TREE - r.cache.length;
                const int most = room < 90 ? room : 90;
                if (most > 1)
                    check_logits(&r,
                                 r.cache.length + 1 + (int)(check_uniform(&state) * (most - 1)),
                                 "grown");
                for (int i = 0; i < 3 && r.cache.length < TOKENS - TREE; i++)
                    run_tree(&r, 1 + (int)(check_uniform(&state) * TREE), parents, &state);
                const int length = (int)(check_uniform(&state) * (r.cache.length + 1));
                esp_kv_cache_cut(&r.cache, length);
                CHECK(r.cache.length <= length);
                /* from this position on, the text gets different tokens */
                for (int i = r.cache.length; i < TOKENS; i++)
                    r.text[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
            }
            check_logits(&r, r.cache.length + 1, "cut");
            close_runner(&r);
        }
}

/* The text becomes so long that inputs of later tokens overwrite the inputs that the
 * convolution needs after the checkpoint. So the checkpoint must have a copy of them. */
ON_BOTH(a_checkpoint_has_what_the_convolution_reads)
{
    static struct runner r;
    for (int m = 0; m < MIXERS; m++) {
        open_runner(&r, mixers[m], ESP_CHECKPOINTS);
        CHECK(esp_kv_cache_append(&r.cache, r.text, 10, NULL, NULL) == 0);
        CHECK(esp_kv_cache_checkpoint(&r.cache) == 0);
        CHECK(esp_kv_cache_append(&r.cache, r.text + 10, TOKENS - 10, NULL, NULL) == 0);
        CHECK(esp_kv_cache_batch(TOKENS, TREE) * 2 < TOKENS - 20);
        esp_kv_cache_cut(&r.cache, 10);
        CHECK(r.cache.length == 10, "%d", r.cache.length);
        check_logits(&r, 20, "from a checkpoint");
        close_runner(&r);
    }
}

/* If the user goes back by t tokens, at most about t tokens should be computed again. */
TEST(checkpoints_are_close_where_users_go_back)
{
    static struct runner r;
    open_runner(&r, ESP_MIXER_CONV, ESP_CHECKPOINTS);
    CHECK(esp_kv_cache_append(&r.cache, r.text, 100, NULL, NULL) == 0);
    CHECK(esp_kv_cache_checkpoint(&r.cache) == 0); /* a checkpoint at the end of the prompt */
    while (r.cache.length < 250)
        CHECK(run_rows(&r, 1, 1) == 0);
    esp_kv_cache_cut(&r.cache, 249);
    CHECK(r.cache.length >= 249 - 64, "%d", r.cache.length);
    esp_kv_cache_cut(&r.cache, 100);
    CHECK(r.cache.length == 100, "%d", r.cache.length);
    esp_kv_cache_cut(&r.cache, 0);
    CHECK(r.cache.length == 0);
    check_logits(&r, 50, "from the beginning");
    close_runner(&r);
}

/* A window drops rows from the attention layers. The states still include the whole text. */
ON_BOTH(a_window_limits_attention_alone)
{
    static struct runner r;
    const struct esp_window window = {.sinks = 3, .recent = 20};
    const int rows = esp_kv_cache_window_rows(&window);
    for (int m = 0; m < MIXERS; m++) {
        struct esp_kv_cache small, large;
        float own[VOCABULARY], want[VOCABULARY];
        unsigned long long state = 3;
        if (is_emulated() && mixers[m] != ESP_MIXER_DELTA)
            continue;
        open_runner(&r, mixers[m], 2);
        CHECK(esp_kv_cache_open(&small, r.backend->ops, r.weights, VOCABULARY, rows, TREE, NULL,
                                0) == 0);
        CHECK(esp_kv_cache_open(&large, r.backend->ops, r.weights, VOCABULARY, 2000, TREE, NULL,
                                0) == 0);
        esp_kv_cache_set_window(&small, &window, 2000);
        esp_kv_cache_set_window(&large, &window, 2000);
        for (int n = 0; large.length < (is_emulated() ? 400 : 1500); n++) {
            int32_t tokens[40];
            const int count = 1 + (int)(check_uniform(&state) * 39);
            for (int i = 0; i < count; i++)
                tokens[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
            CHECK(esp_kv_cache_append(&small, tokens, count, r.logits, NULL) == 0);
            CHECK(r.backend->ops->read_row(r.logits, 0, own) == 0);
            CHECK(esp_kv_cache_append(&large, tokens, count, r.logits, NULL) == 0);
            CHECK(r.backend->ops->read_row(r.logits, 0, want) == 0);
            CHECK(memcmp(own, want, sizeof own) == 0, "after %d tokens", large.length);
            if (n % 7 == 6) { /* both caches drop the same tokens */
                esp_kv_cache_cut(&small, small.length - 30);
                esp_kv_cache_cut(&large, small.length);
                esp_kv_cache_cut(&small, large.length);
                if (small.length != large.length) {
                    esp_kv_cache_cut(&small, 0);
                    esp_kv_cache_cut(&large, 0);
                    break;
                }
            }
        }
        CHECK(small.window.dropped > 0 || small.length == 0);
        esp_kv_cache_close(&small);
        esp_kv_cache_close(&large);
        close_runner(&r);
    }
}

/* ------------------------------------------------------------------ memory */

static size_t padded(int n)
{
    return (size_t)(n + 31) / 32 * 32;
}

/* Returns how many bytes the inputs and updates of one token take in both recurrent layers. */
static size_t input_bytes(const struct esp_model_desc *d, enum esp_mixer mixer)
{
    const size_t width = padded(esp_conv_width(d, mixer));
    const size_t factors = 2 * padded(d->state_heads), keys = padded(d->key_heads * d->key_dim);
    return 2 * sizeof(float) * (width + factors + keys + padded(d->state_heads * d->value_dim));
}

TEST(memory_is_counted_to_the_byte)
{
    static struct runner r;
    for (int m = 0; m < MIXERS; m++) {
        size_t bytes[3];
        for (int slots = 0; slots < 3; slots++) {
            open_runner(&r, mixers[m], slots);
            const struct esp_model_desc *d = &r.model.desc;
            const size_t width = padded(esp_conv_width(d, mixers[m]));
            const size_t heads = (size_t)(d->state_heads * d->value_dim * d->key_dim);
            const size_t copy = esp_backend_cpu.checkpoint_bytes(d);
            CHECK(state_bytes(&r) == 2 * 4 * ((size_t)(d->conv_kernel - 1) * width + heads));
            CHECK(copy == state_bytes(&r) + (ESP_STATE_CHUNK - 1) * input_bytes(d, mixers[m]));
            bytes[slots] = r.cache.cache->bytes;
            CHECK(r.backend->ops->cache_need(d, TOKENS + TREE,
                                             esp_kv_cache_batch(TOKENS, TREE)) >= bytes[slots]);
            CHECK(slots == 0 || bytes[slots] - bytes[slots - 1] == copy + 4);
            close_runner(&r);
        }
    }
}

TEST(without_recurrent_layers_there_is_nothing)
{
    struct random_model model;
    random_model_make(&model, &shape, 1);
    CHECK(esp_backend_cpu.state_bytes(&model.desc) == 0);
    CHECK(esp_backend_cpu.checkpoint_bytes(&model.desc) == 0);
    CHECK(!esp_model_desc_recurrent(&model.desc));
    random_model_free(&model);
}
