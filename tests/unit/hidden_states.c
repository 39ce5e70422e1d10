/* hidden_states.c - tests the hidden states that a pass returns, and draft heads that read
 * them.
 *
 * Hidden states are compared with the reference transformer. They are also compared bit by bit
 * between instruction sets, numbers of threads and sizes of batches, because kernels.h promises
 * the same for hidden states as for logits. AMX and CUDA (in exact mode) add in different
 * orders. So AMX is compared only with AMX, and CUDA only with CUDA. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "tests/check.h"
#include "tests/each_backend.h"
#include "tests/random_model.h"

enum {
    NODES = 21,
    LAYERS = 3,
    HIDDEN = 72,
    VOCABULARY = 75,
    STATES = 4,
    WIDTH = STATES * HIDDEN
};

static const struct random_shape shape = {"llama", LAYERS, HIDDEN,     6,     3,
                                          24,      80,     VOCABULARY, 24,    ESP_BF16,
                                          false,   false,  false,      false, false};

static const int asked[STATES] = {ESP_STATE_NORMED, 0, 2, LAYERS};

struct runner {
    struct esp_backend *backend;
    struct esp_weights *weights;
    struct esp_cache *cache;
    struct esp_rows *logits, *states, *input;
};

/* Holds a model, the tokens of a tree, and the input of a draft head. */
struct scene {
    struct random_model model;
    int32_t tokens[NODES], parents[NODES], positions[NODES];
    uint64_t mask[NODES];
    double input[NODES * HIDDEN];
};

static void make_scene(struct scene *s, bool head)
{
    unsigned long long state = 5;
    (head ? random_head_make : random_model_make)(&s->model, &shape, 77);
    for (int i = 0; i < NODES; i++) {
        s->tokens[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
        s->parents[i] = i < 8 ? i - 1 : (int32_t)(check_uniform(&state) * i);
        s->positions[i] = i ? s->positions[s->parents[i]] + 1 : 0;
        s->mask[i] = (i ? s->mask[s->parents[i]] : 0) | (uint64_t)1 << i;
    }
    for (int i = 0; i < NODES * HIDDEN; i++)
        s->input[i] = (float)(2 * check_uniform(&state) - 1);
}

static bool open_runner(struct runner *r, const struct scene *s, const char *isa, int threads)
{
    char err[200] = "";
    *r = (struct runner){0};
    if (isa && strcmp(isa, "cuda") == 0) {
        if (!has_cuda())
            return false;
        r->backend = open_cuda();
        r->backend->ops->set_exact(r->backend, true);
    } else {
        if (esp_cpu_open(&r->backend, isa, threads, err, sizeof err) == ESP_E_DEVICE)
            return false;
        ((struct esp_cpu_backend *)r->backend)->worth_a_thread = 0;
    }
    const struct esp_backend_ops *ops = r->backend->ops;
    CHECK(ops->weights_open(&r->weights, r->backend, &s->model.desc, NULL, NULL, err,
                            sizeof err) == 0 &&
              ops->cache_open(&r->cache, r->weights, NODES, NODES, err, sizeof err) == 0 &&
              ops->rows_open(&r->logits, r->backend, NODES, VOCABULARY, err, sizeof err) == 0 &&
              ops->rows_open(&r->states, r->backend, NODES, WIDTH, err, sizeof err) == 0 &&
              ops->rows_open(&r->input, r->backend, NODES, HIDDEN, err, sizeof err) == 0,
          "%s", err);
    for (int i = 0; i < NODES; i++) {
        float row[HIDDEN];
        for (int j = 0; j < HIDDEN; j++)
            row[j] = (float)s->input[i * HIDDEN + j];
        /* the rows are stored in reverse order, which input_row must undo */
        CHECK(ops->write_row(r->input, NODES - 1 - i, row) == 0);
    }
    return true;
}

static void close_runner(struct runner *r)
{
    const struct esp_backend_ops *ops = r->backend->ops;
    ops->rows_close(r->logits);
    ops->rows_close(r->states);
    ops->rows_close(r->input);
    ops->cache_close(r->cache);
    ops->weights_close(r->weights);
    ops->close(r->backend);
}

/* Runs the nodes in batches of `chunk`. Requests the hidden states of all nodes, and the logits
 * of every `step`-th node. If `step` is 0, no logits are requested. */
static void run(struct runner *r, const struct scene *s, int chunk, int step)
{
    for (int first = 0, rows; first < NODES; first += rows) {
        int32_t at[NODES], input_row[NODES], logits_row[NODES];
        rows = NODES - first < chunk ? NODES - first : chunk;
        for (int i = 0; i < rows; i++) {
            at[i] = first + i;
            input_row[i] = NODES - 1 - at[i];
            logits_row[i] = step && at[i] % step == 0 ? at[i] : -1;
        }
        struct esp_states states = {.count = STATES, .to = r->states, .row = at};
        memcpy(states.state, asked, sizeof asked);
        struct esp_batch batch = {
            .rows = rows,
            .tokens = s->tokens + first,
            .positions = s->positions + first,
            .first = first,
            .mask = s->mask + first,
            .mask_words = 1,
            .logits = step ? r->logits : NULL,
            .logits_row = logits_row,
            .states = &states,
            .input = s->model.desc.input ? r->input : NULL,
            .input_row = input_row,
        };
        CHECK(r->backend->ops->forward(r->cache, &batch) == 0);
    }
}

struct outcome {
    float states[NODES][WIDTH], logits[NODES][VOCABULARY];
};

static void read_outcome(struct runner *r, struct outcome *o)
{
    for (int i = 0; i < NODES; i++) {
        r->backend->ops->read_row(r->states, i, o->states[i]);
        r->backend->ops->read_row(r->logits, i, o->logits[i]);
    }
}

/* Compares the results with the reference. CUDA rounds the inputs of products to 16 bits. */
static void check_against_reference(const struct scene *s, const struct outcome *got, bool cuda)
{
    const double slack = cuda ? 6e-2 : 2e-3;
    static double states[(LAYERS + 2) * NODES * HIDDEN], logits[NODES * VOCABULARY];
    random_model_states(&s->model, s->tokens, s->parents, NODES, s->input, states, logits);
    for (int node = 0; node < NODES; node++) {
        for (int i = 0; i < WIDTH; i++) {
            int state = asked[i / HIDDEN] < 0 ? LAYERS + 1 : asked[i / HIDDEN];
            double want = states[(state * NODES + node) * HIDDEN + i % HIDDEN];
            CHECK(fabs(got->states[node][i] - want) < slack * (1 + fabs(want)),
                  "node %d, state %d, value %d: %g, not %g", node, state, i % HIDDEN,
                  got->states[node][i], want);
        }
        for (int i = 0; i < VOCABULARY; i++)
            CHECK(fabs(got->logits[node][i] - logits[node * VOCABULARY + i]) < 2.5 * slack,
                  "node %d, logit %d: %g, not %g", node, i, got->logits[node][i],
                  logits[node * VOCABULARY + i]);
    }
}

static void check_everywhere(const struct scene *s)
{
    static const char *const isas[] = {"generic", "avx2",    "avxvnni", "dpbusd",
                                       "avx512",  "vnni",    "amx",     "tiles",
                                       "neon",    "dotprod", "i8mm",    "cuda"};
    static const int chunks[] = {NODES, 5, 1};
    static struct outcome want, got;
    for (int i = 0; i < (int)(sizeof isas / sizeof *isas) * 3; i++) {
        const char *isa = isas[i / 3];
        const int threads = 1 + i % 3;
        const bool cuda = strcmp(isa, "cuda") == 0;
        struct runner r;
        if ((cuda && threads > 1) || !open_runner(&r, s, isa, threads))
            continue;
        for (int c = 0; c < 3; c++) {
            run(&r, s, chunks[c], 1);
            read_outcome(&r, &got);
            if (c == 0 && threads == 1)
                check_against_reference(s, &got, cuda);
            const bool own_order = strcmp(isa, "amx") == 0 || strcmp(isa, "tiles") == 0 || cuda;
            if (c == 0 && threads == 1 && (i == 0 || own_order))
                want = got;
            CHECK(memcmp(&want, &got, sizeof want) == 0, "%s, %d threads, batches of %d", isa,
                  threads, chunks[c]);
        }
        close_runner(&r);
    }
}

TEST(states_match_the_reference_and_are_bit_identical_everywhere)
{
    static struct scene s;
    make_scene(&s, false);
    check_everywhere(&s);
    random_model_free(&s.model);
}

TEST(a_draft_head_computes_from_hidden_states)
{
    static struct scene s;
    make_scene(&s, true);
    check_everywhere(&s);
    random_model_free(&s.model);
}

/* The last layer drops rows whose logits are not requested. The outputs of the other rows must
 * stay where they are. */
static void check_wanted(const char *isa)
{
    static struct scene s;
    static struct outcome all, some;
    struct runner r;
    make_scene(&s, false);
    CHECK(open_runner(&r, &s, isa, 2));
    run(&r, &s, NODES, 1);
    read_outcome(&r, &all);
    static const int steps[] = {0, 2, 3, NODES};
    for (int i = 0; i < 4; i++) {
        float none[VOCABULARY] = {0}, row[WIDTH] = {0};
        for (int node = 0; node < NODES; node++) {
            CHECK(r.backend->ops->write_row(r.logits, node, none) == 0);
            CHECK(r.backend->ops->write_row(r.states, node, row) == 0);
        }
        run(&r, &s, NODES, steps[i]);
        read_outcome(&r, &some);
        CHECK(memcmp(all.states, some.states, sizeof all.states) == 0, "step %d", steps[i]);
        for (int node = 0; node < NODES; node++) {
            bool wanted = steps[i] && node % steps[i] == 0;
            CHECK(memcmp(wanted ? all.logits[node] : none, some.logits[node], sizeof none) == 0,
                  "the logits of node %d differ, step %d", node, steps[i]);
        }
    }
    close_runner(&r);
    random_model_free(&s.model);
}

TEST(states_do_not_depend_on_which_rows_want_logits)
{
    check_wanted(NULL);
    if (has_cuda())
        check_wanted("cuda");
}

static void check_refusals(const char *isa)
{
    static struct scene s;
    struct runner r;
    make_scene(&s, true);
    CHECK(open_runner(&r, &s, isa, 1));
    const int32_t token = 1, position = 0, beyond = NODES, none = -1;
    struct esp_states states = {.count = 1, .state = {0}, .to = r.input};
    struct esp_batch good = {.rows = 1,
                             .tokens = &token,
                             .positions = &position,
                             .states = &states,
                             .input = r.input};
    const struct esp_backend_ops *ops = r.backend->ops;
    CHECK(ops->forward(r.cache, &good) == 0);
    struct esp_batch bad = good;
    bad.input = NULL; /* a head needs an input */
    CHECK(ops->forward(r.cache, &bad) == ESP_E_ARGUMENT);
    bad.input = r.states; /* a row of `states` is not as wide as an input */
    CHECK(ops->forward(r.cache, &bad) == ESP_E_ARGUMENT);
    bad = good;
    bad.input_row = &beyond;
    CHECK(ops->forward(r.cache, &bad) == ESP_E_ARGUMENT);
    bad.input_row = &none;
    CHECK(ops->forward(r.cache, &bad) == ESP_E_ARGUMENT);
    states.row = &beyond;
    CHECK(ops->forward(r.cache, &good) == ESP_E_ARGUMENT);
    states.row = NULL;
    states.state[0] = LAYERS + 1;
    CHECK(ops->forward(r.cache, &good) == ESP_E_ARGUMENT);
    states.state[0] = 0;
    states.to = r.states;
    CHECK(ops->forward(r.cache, &good) == ESP_E_ARGUMENT);
    close_runner(&r);
    random_model_free(&s.model);
}

TEST(requests_that_do_not_fit_are_refused)
{
    check_refusals(NULL);
    if (has_cuda())
        check_refusals("cuda");
}
