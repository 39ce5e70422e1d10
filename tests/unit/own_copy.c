/* own_copy.c - tests a copy of the target as the draft model. The copy has the target's
 * matrices in a quantised form. It drafts in the target's cache, does not compute the prompt,
 * and computes no row twice. With any drafter, the target must never read the copy's rows, even
 * if an iteration ends early. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/drafters/draft.h"
#include "engine/drafters/drafter.h"
#include "engine/model/own_copy.h"
#include "engine/session_parts.h"
#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"
#include "tests/each_backend.h"
#include "tests/toy.h"

enum { VOCABULARY = 20, CONTEXT = 200, NODES = 24, NEW = 120 };

static char err[512];

/* ------------------------------------------------------------------ counting passes */

/* Replaces the backend of one engine, and counts what its passes do. */
static struct {
    struct esp_backend_ops ops;
    const struct esp_backend_ops *real;
    const struct esp_weights *copy;
    /* `calls` counts passes and compactions. Call number `fails_at` fails, counted from 1. If
     * `fails_at` is 0, no call fails. */
    int calls, fails_at;
    /* true if NaN is written to all rows that the target's pass may overwrite */
    bool poisons;
    int rows[2];    /* rows computed by the target [0] and by the copy [1] */
    int again;      /* number of rows that the copy computed twice in one iteration */
    int first_rows; /* maximum number of rows in the copy's first pass of an iteration */
    bool written[4096], drafting;
} spy;

static void poison(struct esp_cache *cache, int first)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    const struct esp_model_desc *d = cache->weights->desc;
    const size_t rows = (size_t)c->blocks * ESP_LANES, head_dim = (size_t)d->head_dim;
    for (int head = 0; head < d->layers * d->kv_heads; head++)
        for (int row = first; row < c->rows; row++) {
            float *k = c->k +
                       ((size_t)head * rows + (size_t)row / ESP_LANES * ESP_LANES) * head_dim +
                       row % ESP_LANES;
            float *v = c->v + ((size_t)head * rows + (size_t)row) * c->v_stride;
            for (size_t i = 0; i < head_dim; i++)
                k[i * ESP_LANES] = v[i] = NAN;
        }
}

static int spied_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    const bool copy = cache->weights == spy.copy;
    if (++spy.calls == spy.fails_at)
        return ESP_E_DEVICE;
    if (copy && !spy.drafting) {
        memset(spy.written, 0, sizeof spy.written);
        spy.first_rows = batch->rows > spy.first_rows ? batch->rows : spy.first_rows;
    }
    spy.drafting = copy;
    for (int i = 0; copy && i < batch->rows; i++) {
        spy.again += spy.written[batch->first + i];
        spy.written[batch->first + i] = true;
    }
    spy.rows[copy] += batch->rows;
    if (spy.poisons && !copy)
        poison(cache, batch->first);
    return spy.real->forward(cache, batch);
}

static int spied_keep(struct esp_cache *cache, int first, const int32_t *which, int count)
{
    return ++spy.calls == spy.fails_at ? (int)ESP_E_DEVICE
                                       : spy.real->keep(cache, first, which, count);
}

static void watch(struct esp_engine *engine)
{
    memset(&spy, 0, sizeof spy);
    spy.real = engine->backend->ops;
    spy.ops = *spy.real;
    spy.ops.forward = spied_forward;
    spy.ops.keep = spied_keep;
    spy.copy = engine->draft_weights;
    engine->backend->ops = &spy.ops;
}

static void unwatch(struct esp_engine *engine)
{
    engine->backend->ops = spy.real;
}

/* ------------------------------------------------------------------ sessions */

static struct esp_session *open_session(struct esp_engine *engine,
                                        const struct esp_session_options *options)
{
    struct esp_session *session;
    CHECK(esp_session_open(&session, engine, options, err, sizeof err) == ESP_OK, "%s: %s",
          options->drafter, err);
    return session;
}

static void prompt(struct esp_session *session, const int32_t *tokens, int count)
{
    CHECK(esp_session_prompt(session, tokens, count, err, sizeof err) == ESP_OK, "%s", err);
}

/* Writes `count` tokens, and continues after iterations that fail. Returns how many failed. */
static int generate(struct esp_session *session, int count, int32_t *text)
{
    int status, length, failed = 0;
    esp_session_allow(session, count);
    while ((status = esp_session_step(session, err, sizeof err)) != 0)
        CHECK(status > 0 || ++failed < 3, "%s", err);
    const int32_t *tokens = esp_session_tokens(session, &length);
    memcpy(text, tokens, (size_t)length * sizeof *text);
    return failed;
}

static const int32_t start[4] = {3, 5, 7, 1};

static void write_plainly(struct esp_engine *engine, const struct esp_session_options *options,
                          const int32_t *tokens, int length, int count, int32_t *text)
{
    struct esp_session_options plain = *options;
    plain.drafter = "ar";
    struct esp_session *session = open_session(engine, &plain);
    prompt(session, tokens, length);
    CHECK(generate(session, count, text) == 0);
    esp_session_close(session);
}

static void check_drafter(struct esp_engine *engine, const struct esp_session_options *options,
                          const int32_t *tokens, int length, int count, const int32_t *want)
{
    static int32_t text[1 << 14];
    struct esp_session *session = open_session(engine, options);
    prompt(session, tokens, length);
    CHECK(generate(session, count, text) == 0);
    CHECK(memcmp(text, want, (size_t)(length + count) * sizeof *text) == 0, "%s: another text",
          options->drafter);
    esp_session_close(session);
}

static void check_each_drafter(struct esp_engine *engine, struct esp_session_options options,
                               const int32_t *tokens, int length, int count)
{
    static const char *const more[] = {"linear:cache=rebuild", "fixed:D=3,B=4,tau=0",
                                       "fixed:root=draft,cache=rebuild",
                                       "dynatree:tau=0.0001,N=20", NULL};
    static int32_t want[1 << 14];
    write_plainly(engine, &options, tokens, length, count, want);
    for (int i = 0; esp_drafters[i]; i++) {
        options.drafter = esp_drafters[i]->name;
        if (!esp_drafters[i]->chooser) /* drafter nde needs a selector, and the copy has none */
            check_drafter(engine, &options, tokens, length, count, want);
    }
    for (int i = 0; more[i]; i++) {
        options.drafter = more[i];
        check_drafter(engine, &options, tokens, length, count, want);
    }
}

/* ------------------------------------------------------------------ on the toy backend */

static struct toy toy;

static void open_toy(unsigned long long seed)
{
    toy_open(&toy, VOCABULARY, CONTEXT, NODES, seed);
    toy_join(&toy);
    toy.closeness = 0.8;
}

/* In the toy backend, a pass of the target fails if it reads a cache row that the copy has
 * written. */
TEST(every_drafter_writes_what_plain_decoding_writes)
{
    for (unsigned long long seed = 1; seed <= 3; seed++) {
        open_toy(seed);
        check_each_drafter(&toy.engine, (struct esp_session_options){.drafter = "ar"}, start, 4,
                           NEW);
        toy_close(&toy);
    }
}

TEST(a_window_also_moves_the_copys_rows)
{
    enum { LONG = 900 };
    struct esp_session_options options = {.values.window = 40, .values.sinks = 4};
    open_toy(4);
    check_each_drafter(&toy.engine, options, start, 4, LONG);
    toy_close(&toy);
}

TEST(the_context_can_be_filled)
{
    open_toy(5);
    check_each_drafter(&toy.engine, (struct esp_session_options){.drafter = "ar"}, start, 4,
                       CONTEXT - 4);
    toy_close(&toy);
}

/* Makes every pass and every compaction fail, one after another. A failure ends the iteration
 * early. */
TEST(an_iteration_may_end_anywhere)
{
    static const char *const drafters[] = {"linear:K=4", "dynatree", "goodput", "fixed:D=3",
                                           "hybrid"};
    enum { LAST = 60 };
    int32_t want[CONTEXT], text[CONTEXT];
    open_toy(6);
    struct esp_session_options options = {.drafter = "ar"};
    write_plainly(&toy.engine, &options, start, 4, NEW, want);
    watch(&toy.engine);
    int failed = 0;
    for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++)
        for (int at = 1; at <= LAST; at++) {
            options.drafter = drafters[i];
            struct esp_session *session = open_session(&toy.engine, &options);
            prompt(session, start, 4);
            spy.calls = 0;
            spy.fails_at = at;
            failed += generate(session, NEW, text);
            spy.fails_at = 0;
            CHECK(memcmp(text, want, (4 + NEW) * sizeof *text) == 0,
                  "%s: the text differs after a failure at call %d", drafters[i], at);
            esp_session_close(session);
        }
    CHECK(failed > 3 * LAST, "only %d iterations failed", failed);
    unwatch(&toy.engine);
    toy_close(&toy);
}

TEST(nothing_is_computed_twice)
{
    int32_t text[CONTEXT];
    open_toy(7);
    watch(&toy.engine);
    struct esp_session *session =
        open_session(&toy.engine, &(struct esp_session_options){.drafter = "dynatree"});
    struct esp_stats stats;
    prompt(session, start, 4);
    CHECK(spy.rows[false] == 3 && spy.rows[true] == 0,
          "for the prompt, the target computed %d rows and the copy %d", spy.rows[false],
          spy.rows[true]);
    generate(session, NEW, text);
    esp_session_stats(session, &stats);
    CHECK(spy.first_rows == 1, "the copy computed %d rows of tokens before the root",
          spy.first_rows - 1);
    CHECK(spy.again == 0, "the copy computed %d rows twice", spy.again);
    CHECK(spy.rows[true] == stats.draft_rows && stats.draft_passes > 0);
    CHECK(spy.rows[false] == 3 + stats.iterations + stats.drafted_nodes,
          "the target computed %d rows", spy.rows[false]);
    esp_session_close(session);
    unwatch(&toy.engine);
    toy_close(&toy);
}

/* Shortens the text to several lengths, and continues it each time. */
TEST(texts_can_be_shortened)
{
    int32_t want[CONTEXT], text[CONTEXT];
    open_toy(8);
    struct esp_session_options options = {.drafter = "dynatree"};
    write_plainly(&toy.engine, &options, start, 4, NEW, want);
    struct esp_session *session = open_session(&toy.engine, &options);
    prompt(session, start, 4);
    for (int to = NEW; to > 4; to -= 17) {
        generate(session, NEW - to / 2, text);
        esp_session_warm(session);
        CHECK(esp_session_rewind(session, to < session->length ? to : 5) == ESP_OK);
    }
    generate(session, 4 + NEW - session->length, text);
    CHECK(memcmp(text, want, (4 + NEW) * sizeof *text) == 0);
    esp_session_close(session);
    toy_close(&toy);
}

static void check_q(struct esp_session *session, int row, int length)
{
    double want[VOCABULARY];
    toy_distribution(&toy, true, session->text, length, want);
    for (int x = 0; x < VOCABULARY; x++)
        CHECK(fabs(toy_row(session->q, row)[x] - want[x]) < 1e-6, "row %d, token %d", row, x);
}

/* Drafter nde also needs the row of the token before the root. The target has computed this
 * row. */
TEST(the_token_before_the_root_keeps_its_row)
{
    int32_t want[CONTEXT], text[CONTEXT];
    open_toy(9);
    struct esp_session_options options = {.drafter = "linear"};
    write_plainly(&toy.engine, &options, start, 4, NEW, want);
    struct esp_session *session = open_session(&toy.engine, &options);
    struct esp_draft *d = &session->draft;
    struct esp_look_back *back = &session->draft_context.back;
    prompt(session, start, 4);
    generate(session, NEW / 2, text);
    CHECK(toy_backend.rows_open(&back->draft_states, toy.engine.backend, d->capacity + 1, 1,
                                err, sizeof err) == 0);
    for (int before = 0; before < 2; before++) {
        esp_tree_reset(&session->tree, session->text[session->length - 1]);
        d->text = session->text;
        d->text_length = session->length;
        d->context = &session->draft_context;
        d->sampling = (struct esp_sampling){.temperature = 1, .top_p = 1};
        esp_draft_begin(d);
        CHECK(esp_kv_cache_follow(&session->draft_cache, &session->target, d->capacity) == 0);
        CHECK(esp_draft_expand_root(d, before) == 0);
        check_q(session, 0, session->length);
        if (before)
            check_q(session, d->capacity, session->length - 1);
        d->context = NULL;
    }
    generate(session, NEW - NEW / 2, text);
    CHECK(memcmp(text, want, (4 + NEW) * sizeof *text) == 0);
    esp_session_close(session);
    toy_close(&toy);
}

/* ------------------------------------------------------------------ on the built-in target */

static struct esp_engine *open_engine(const char *draft)
{
    const struct esp_engine_options options = {
        .backend = "cpu", .draft = draft, .max_nodes = NODES, .context = 512};
    struct esp_engine *engine;
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == ESP_OK, "%s", err);
    return engine;
}

static void check_rows(const struct esp_tensor *t, const struct esp_tensor *of)
{
    const size_t bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    float *row = malloc((size_t)t->columns * sizeof *row);
    char *want = malloc(bytes), *is = malloc(bytes);
    CHECK(t->original == of && t->rows == of->rows && t->columns == of->columns);
    for (int i = 0; i < t->rows; i += 7) {
        esp_tensor_read_row(of, i, row);
        esp_quantise_quickly(t->dtype, row, t->columns, want);
        esp_tensor_copy_rows(t, i, 1, is);
        CHECK(memcmp(want, is, bytes) == 0, "row %d", i);
    }
    free(row);
    free(want);
    free(is);
}

TEST(a_copy_is_the_target_quantised)
{
    struct esp_model *target, *copy;
    struct esp_model_info info;
    for (int i = 0; esp_own_copy_type(i); i++) {
        char name[32];
        snprintf(name, sizeof name, "self:%s", esp_own_copy_type(i));
        struct esp_engine *engine = open_engine(name);
        CHECK(esp_engine_draft(engine, &info) && info.copy && strcmp(info.name, name) == 0);
        CHECK(!esp_engine_preset(engine, false), "a copy must not get the draft's preset");
        esp_engine_close(engine);
    }
    struct esp_engine *engine = open_engine("self");
    esp_engine_target(engine, &info);
    CHECK(esp_model_open(&target, info.path, err, sizeof err) == 0, "%s", err);
    CHECK(esp_own_copy_open(&copy, target, "self", err, sizeof err) == 0, "%s", err);
    CHECK(esp_tensor_same(&copy->desc.embedding, &target->desc.embedding));
    CHECK(esp_tensor_same(&copy->desc.layer[1].norm1, &target->desc.layer[1].norm1));
    check_rows(&copy->desc.layer[0].query, &target->desc.layer[0].query);
    check_rows(&copy->desc.layer[1].down, &target->desc.layer[1].down);
    check_rows(&copy->desc.head, &target->desc.head);
    CHECK(copy->bytes < target->bytes / 2);
    esp_model_close(copy);
    esp_model_close(target);
    esp_engine_close(engine);
}

TEST(a_name_that_does_not_mean_a_copy_is_refused)
{
    struct esp_engine *engine;
    const struct esp_engine_options options = {.draft = "self:q5"};
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(strstr(err, "self:q4_k"), "%s", err);
    CHECK(!esp_is_own_copy("selfish") && !esp_is_own_copy(NULL) && esp_is_own_copy("self"));
}

/* Here the target itself is quantised like a copy. A copy of it is refused, because it would
 * not be smaller. */
TEST(a_small_target_is_refused)
{
    struct esp_engine *engine = open_engine("self");
    struct esp_model *copy;
    CHECK(esp_own_copy_open(&copy, engine->draft, "self", err, sizeof err) == ESP_E_ARGUMENT);
    CHECK(strstr(err, "100 %"), "%s", err);
    esp_engine_close(engine);
}

static int tokens_of(struct esp_engine *engine, int32_t tokens[64])
{
    static const char text[] = "Once upon a time there was a miller who had";
    int count = esp_tokenize(engine, text, strlen(text), tokens, 64);
    CHECK(count > 1 && count <= 64);
    return count;
}

/* If the target's own weights run on a joined cache, the results must be bit-identical. */
TEST(a_joined_cache_has_the_owners_rows)
{
    struct esp_engine *engine = open_engine("self");
    const struct esp_backend_ops *ops = engine->backend->ops;
    const int vocabulary = engine->target->desc.vocabulary;
    struct esp_model *target; /* opened again, because the engine has closed its files */
    struct esp_weights *weights;
    struct esp_kv_cache owner, view;
    struct esp_rows *logits;
    int32_t tokens[64];
    float *row[2];
    const int count = tokens_of(engine, tokens);
    CHECK(esp_model_open(&target, engine->target->path, err, sizeof err) == 0, "%s", err);
    target->desc.lender = engine->target_weights;
    CHECK(ops->weights_open(&weights, engine->backend, &target->desc, NULL, NULL, err,
                            sizeof err) == 0,
          "%s", err);
    CHECK(esp_kv_cache_open(&owner, ops, engine->target_weights, vocabulary, 128, 8, err,
                            sizeof err) == 0);
    CHECK(esp_kv_cache_join(&view, &owner, weights, vocabulary, err, sizeof err) == 0, "%s",
          err);
    CHECK(ops->rows_open(&logits, engine->backend, 2, vocabulary, err, sizeof err) == 0);
    CHECK(esp_kv_cache_append(&owner, tokens, count - 1, NULL, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(esp_kv_cache_follow(&view, &owner, 4) == 0);
        CHECK(esp_kv_cache_append(i ? &owner : &view, tokens + count - 1, 1, logits, NULL) ==
              0);
        row[i] = malloc((size_t)vocabulary * sizeof **row);
        CHECK(ops->read_row(logits, 0, row[i]) == 0);
    }
    CHECK(owner.length == count && memcmp(row[0], row[1], (size_t)vocabulary * 4) == 0);
    free(row[0]);
    free(row[1]);
    ops->rows_close(logits);
    esp_kv_cache_close(&view);
    esp_kv_cache_close(&owner);
    ops->weights_close(weights);
    esp_model_close(target);
    esp_engine_close(engine);
}

/* If a cache of another shape could join, its rows would be read as rows of the target. */
TEST(a_cache_of_another_shape_cannot_join)
{
    struct esp_engine *engine = open_engine(NULL); /* the built-in draft */
    struct esp_kv_cache owner, view;
    const int vocabulary = engine->target->desc.vocabulary;
    CHECK(esp_kv_cache_open(&owner, engine->backend->ops, engine->target_weights, vocabulary,
                            64, 8, err, sizeof err) == 0);
    CHECK(esp_kv_cache_join(&view, &owner, engine->draft_weights, vocabulary, err,
                            sizeof err) == ESP_E_ARGUMENT);
    esp_kv_cache_close(&owner);
    esp_engine_close(engine);
}

/* Before each pass of the target, the test fills every row after the text with NaN. */
TEST(the_target_sees_no_row_of_the_copy)
{
    int32_t tokens[64];
    struct esp_engine *engine = open_engine("self");
    const int count = tokens_of(engine, tokens), new = check_quick() ? 24 : 100;
    struct esp_session_options options = {.values.ignore_eos = true};
    watch(engine);
    spy.poisons = true;
    check_each_drafter(engine, options, tokens, count, new);
    options.values.window = 32;
    check_each_drafter(engine, options, tokens, count, new);
    CHECK(spy.rows[true] > 0 && spy.again == 0);
    unwatch(engine);
    esp_engine_close(engine);
}

/* ------------------------------------------------------------------ every architecture */

static int32_t first_tokens[3] = {3, 1, 4};

/* Writes a text with a drafter. These models have no tokenizer, so the test makes the engine
 * itself. */
static void write_with(struct esp_engine *engine, const char *drafter, int count, int32_t *text)
{
    const struct esp_session_options options = {.drafter = drafter, .values.ignore_eos = true};
    struct esp_session *session = open_session(engine, &options);
    prompt(session, first_tokens, 3);
    CHECK(generate(session, count, text) == 0);
    esp_session_close(session);
}

/* Checks the text that a copy of this model drafts. Returns false if the model has no copy on
 * this backend. */
static bool check_architecture(struct esp_backend *backend, const char *folder, int count)
{
    const struct esp_backend_ops *ops = backend->ops;
    struct esp_engine e = {.backend = backend, .max_nodes = 8, .context = 32};
    int32_t plain[64], text[64];
    CHECK(esp_model_open(&e.target, folder, err, sizeof err) == 0, "%s", err);
    esp_model_set_context(e.target, e.context);
    const bool there = esp_own_copy_open(&e.draft, e.target, "self", err, sizeof err) == 0 &&
                       ops->weights_open(&e.target_weights, backend, &e.target->desc, NULL,
                                         NULL, err, sizeof err) == 0;
    if (there) {
        esp_model_set_context(e.draft, e.context);
        e.draft->desc.lender = e.target_weights;
        CHECK(ops->weights_open(&e.draft_weights, backend, &e.draft->desc, NULL, NULL, err,
                                sizeof err) == 0,
              "%s: %s", folder, err);
        write_with(&e, "ar", count, plain);
        write_with(&e, "fixed:D=2,B=2,tau=0", count, text);
        CHECK(memcmp(text, plain, (size_t)(3 + count) * sizeof *text) == 0, "%s: another text",
              folder);
        ops->weights_close(e.draft_weights);
    }
    if (e.target_weights)
        ops->weights_close(e.target_weights);
    esp_model_close(e.draft);
    esp_model_close(e.target);
    return there;
}

/* Some of the models have layers with windows, mixtures of experts, learned positions, local
 * RoPE, or tied or capped heads. */
EACH_BACKEND(copies_of_every_architecture_write_the_text_of_their_target)
{
    const bool cuda = strcmp(backend->ops->name, "cuda") == 0;
    char path[1024];
    struct dirent *entry;
    int copies = 0;
    if (backend->ops->set_exact)
        backend->ops->set_exact(backend, true);
    DIR *models = opendir(check_path("vectors/logits"));
    CHECK(models);
    while ((entry = readdir(models))) {
        snprintf(path, sizeof path, "%s/%.200s", check_path("vectors/logits"), entry->d_name);
        if (entry->d_name[0] != '.')
            copies += check_architecture(backend, path, cuda ? 5 : 20);
    }
    closedir(models);
    printf("    %d models\n", copies);
    CHECK(copies > (cuda ? 15 : 30), "only %d", copies);
}
