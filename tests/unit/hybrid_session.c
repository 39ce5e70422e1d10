/* hybrid_session.c - tests sessions with models that have recurrent layers, as target and as
 * draft. After a text was shortened or branched, the session must continue like a new session
 * with the same text, and must compute only few rows again.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/espalier.h"
#include "engine/kv_cache.h"
#include "engine/session_parts.h"
#include "engine/train/selector_samples.h"
#include "engine/verifiers/verifier.h"
#include "tests/divided.h"
#include "tests/each_backend.h"
#include "tests/folder.h"

enum { VOCABULARY = 97, CONTEXT = 220 };

static char err[512];
static struct esp_engine *engine;
static const char *backend = "cpu"; /* the next engine's backend; CUDA runs in exact mode */

/* The vocabulary has a token for each printable character, the space, the end of a line, and
 * one more token. */
static void write_tokenizer(void)
{
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (int i = 33; i < 127; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "\"%s%c\":%d,",
                                 i == '"' || i == '\\' ? "\\" : "", i, i - 33);
    snprintf(text + used, sizeof text - used,
             "\"\\u0120\":94,\"\\u010a\":95,\"<e>\":96}},\"added_tokens\":[],"
             "\"normalizer\":null,\"post_processor\":null,"
             "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"trim_offsets\":true,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\","
             "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true}}");
    folder_write_text("tokenizer.json", text);
}

static void open_engine_with(const char *vector, const char *draft, int ranks)
{
    folder_copy(vector);
    write_tokenizer();
    const struct esp_engine_options options = {.target = folder_path(),
                                               .draft = draft ? draft : folder_path(),
                                               .backend = backend,
                                               .exact = strcmp(backend, "cuda") == 0,
                                               .ranks = ranks,
                                               .threads = ranks > 1 ? 1 : 0,
                                               .context = CONTEXT,
                                               .max_nodes = 40};
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
}

static void open_engine(const char *vector)
{
    open_engine_with(vector, NULL, 1);
}

static struct esp_session *open_session(const char *drafter, int window)
{
    struct esp_session *session;
    const struct esp_session_options options = {
        .drafter = drafter,
        .repeatable = true,
        .values = {.ignore_eos = true, .window = window, .sinks = window ? 2 : 0}};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    return session;
}

static void prompt(struct esp_session *session, const int32_t *tokens, int count)
{
    CHECK(esp_session_prompt(session, tokens, count, err, sizeof err) == 0, "%s", err);
}

static void generate(struct esp_session *session, int count)
{
    int status;
    esp_session_allow(session, count);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
}

/* Checks that the last `count` tokens are those that plain decoding appends to the earlier
 * tokens. */
static void check_end(struct esp_session *session, int count, int window)
{
    int length, other;
    const int32_t *text = esp_session_tokens(session, &length);
    struct esp_session *plain = open_session("ar", window);
    prompt(plain, text, length - count);
    generate(plain, count);
    const int32_t *want = esp_session_tokens(plain, &other);
    CHECK(other == length && memcmp(text, want, (size_t)length * sizeof *text) == 0,
          "%d tokens after %d", count, length - count);
    esp_session_close(plain);
}

static void go_back_and_on(const char *drafter, int window, unsigned long long state,
                           int rounds)
{
    struct esp_session *session = open_session(drafter, window);
    for (int round = 0; round < rounds; round++) {
        int32_t tokens[60];
        int length, count = 1 + (int)(check_uniform(&state) * 59);
        esp_session_tokens(session, &length);
        if (length > 0)
            CHECK(esp_session_rewind(session, (int)(check_uniform(&state) * (length + 1))) ==
                  0);
        esp_session_tokens(session, &length);
        if (length == 0 || check_uniform(&state) < 0.6) {
            count = count < CONTEXT - 40 - length ? count : CONTEXT - 40 - length;
            for (int i = 0; i < count; i++)
                tokens[i] = (int32_t)(check_uniform(&state) * VOCABULARY);
            if (count > 0)
                prompt(session, tokens, count);
        }
        esp_session_tokens(session, &length);
        count = 1 + (int)(check_uniform(&state) * 30);
        count = count < CONTEXT - length ? count : CONTEXT - length;
        if (count > 0) {
            generate(session, count);
            check_end(session, count, window);
        }
    }
    esp_session_close(session);
}

static int many_rounds(void)
{
    return check_quick() ? 10 : 40;
}

static const char *const vectors[] = {"lfm2", "qwen3-5-moe", "granite-hybrid", "nemotron-h"};

enum { VECTORS = sizeof vectors / sizeof *vectors };

TEST(shortened_texts_match_those_of_a_new_session)
{
    static const char *const drafters[] = {"dynatree", "linear:cache=rebuild", "delayed",
                                           "suffix"};
    for (int v = 0; v < VECTORS; v++) {
        open_engine(vectors[v]);
        for (int d = 0; d < 4; d++)
            go_back_and_on(drafters[d], 0, 7 + (unsigned)d, many_rounds());
        go_back_and_on("dynatree", 30, 90, many_rounds());
        esp_engine_close(engine);
    }
}

TEST(shortened_texts_match_on_a_gpu)
{
    if (!has_cuda())
        check_skip();
    cuda_is_real(); /* chooses the emulator if the environment names no plugin */
    for (int v = 0; v < VECTORS; v++) {
        backend = "cuda";
        open_engine(vectors[v]);
        backend = "cpu";
        go_back_and_on("dynatree", 0, 7, 3);
        go_back_and_on("suffix", 30, 90, 2);
        esp_engine_close(engine);
    }
}

/* After the text was shortened, the rows of the draft head must again be computed from the
 * target's states. */
TEST(shortened_texts_match_with_drafts_of_an_mtp_layer)
{
    static const char *const drafters[] = {"dynatree", "goodput", "linear:cache=rebuild"};
    open_engine_with("../heads/mtp-qwen3-5", "mtp", 1);
    for (int d = 0; d < 3; d++)
        go_back_and_on(drafters[d], 0, 31 + (unsigned)d, many_rounds());
    go_back_and_on("dynatree", 30, 95, many_rounds());
    esp_engine_close(engine);
}

/* The draft model is a quantised copy of the target. It drafts in the target's cache, and reads
 * the target's states. */
TEST(shortened_texts_match_with_drafts_of_a_copy)
{
    static const char *const drafters[] = {"dynatree", "goodput", "linear:cache=rebuild"};
    for (int v = 0; v < VECTORS; v++) {
        open_engine_with(vectors[v], "self:q4_0", 1);
        for (int d = 0; d < 3; d++)
            go_back_and_on(drafters[d], 0, 51 + (unsigned)d, many_rounds());
        go_back_and_on("dynatree", 30, 97, many_rounds());
        esp_engine_close(engine);
    }
}

TEST(another_answer_does_not_compute_the_prompt_again)
{
    for (int v = 0; v < VECTORS; v++) {
        int32_t tokens[90];
        struct esp_stats stats;
        open_engine(vectors[v]);
        struct esp_session *session = open_session("dynatree", 0);
        for (int i = 0; i < 90; i++)
            tokens[i] = i;
        prompt(session, tokens, 90);
        for (int again = 0; again < 3; again++) {
            generate(session, 25);
            CHECK(esp_session_rewind(session, 90) == 0);
        }
        esp_session_stats(session, &stats);
        CHECK(stats.prefill_rows == 89, "%lld", (long long)stats.prefill_rows);
        generate(session, 25);
        prompt(session, tokens, 10); /* the user's next message */
        esp_session_stats(session, &stats);
        CHECK(stats.prefill_rows == 99, "%lld", (long long)stats.prefill_rows);
        generate(session, 5);
        CHECK(esp_session_rewind(session, 115) == 0); /* a different message */
        prompt(session, tokens + 30, 10);
        esp_session_stats(session, &stats);
        CHECK(stats.prefill_rows == 109, "%lld", (long long)stats.prefill_rows);
        esp_session_close(session);
        esp_engine_close(engine);
    }
}

/* A warm-up pass must have different tokens. If all rows had the same token, they would all use
 * the same experts. */
TEST(a_warm_up_pass_has_the_last_tokens)
{
    int32_t tokens[30];
    int length;
    open_engine("qwen3-5-moe");
    struct esp_session *session = open_session("linear:K=8", 0);
    for (int i = 0; i < 30; i++)
        tokens[i] = i;
    prompt(session, tokens, 30);
    generate(session, 9);
    const int32_t *text = esp_session_tokens(session, &length);
    const int rows = session->iteration.tree.verified;
    CHECK(rows > 4, "%d rows", rows);
    esp_session_warm(session);
    for (int i = 0; i < rows; i++)
        CHECK(session->tokens[i] == text[length - 1 - i], "row %d", i);
    generate(session, 9);
    check_end(session, 9, 0);
    esp_session_close(session);
    esp_engine_close(engine);
}

/* The engine's memory plan must include the checkpoints that the caches really have. */
TEST(checkpoints_are_counted)
{
    open_engine("qwen3-5");
    struct esp_session *session = open_session("dynatree", 0);
    CHECK(session->target.slots == ESP_CHECKPOINTS && session->draft_cache.slots > 0);
    esp_session_close(session);
    esp_engine_close(engine);
}

/* A branch goes back to a checkpoint, and must write the text of plain decoding. The target's
 * scores of earlier tokens cannot be computed again. The scores of the next token can be
 * computed, and this computation must change nothing. */
TEST(branches_of_hybrid_models_match_fresh_sessions)
{
    for (int v = 0; v < VECTORS; v++) {
        int32_t tokens[40];
        struct esp_text_token text[CONTEXT];
        struct esp_token_score score;
        int length;
        open_engine(vectors[v]);
        struct esp_session *session = open_session("dynatree", 0);
        CHECK(esp_session_score(session, true, err, sizeof err) == 0, "%s", err);
        for (int i = 0; i < 40; i++)
            tokens[i] = i * 7 % VOCABULARY;
        prompt(session, tokens, 40);
        generate(session, 60);
        for (int keep = 98; keep > 2; keep -= 19) {
            const int32_t *now = esp_session_tokens(session, &length);
            for (int i = 0; i < keep; i++)
                text[i] = (struct esp_text_token){now[i], ESP_TEXT_BONUS};
            text[keep] = (struct esp_text_token){(now[keep] + 5) % VOCABULARY, ESP_TEXT_CHOSEN};
            CHECK(esp_session_fork(session, text, keep + 1, err, sizeof err) == keep, "%s",
                  err);
            CHECK(esp_session_score_text(session, keep + 1, 1, &score, err, sizeof err) == 0 &&
                      score.count == ESP_LIKELY,
                  "%s", err);
            CHECK(esp_session_score_text(session, 1, 1, &score, err, sizeof err) ==
                  ESP_E_UNSUPPORTED);
            generate(session, 30);
            check_end(session, 30, 0);
            generate(session, 110 - keep);
        }
        esp_session_close(session);
        esp_engine_close(engine);
    }
}

/* Writes a text. If there are several ranks, kills one of them, and continues the text. Then
 * shortens the text and continues it again. Returns the length of the text. */
static int write_text(const char *vector, int ranks, int window, int32_t *to)
{
    int32_t tokens[40];
    int length;
    for (int i = 0; i < 40; i++)
        tokens[i] = i * 7 % VOCABULARY;
    open_engine_with(vector, NULL, ranks);
    struct esp_session *session = open_session("dynatree", window);
    prompt(session, tokens, 40);
    generate(session, 20);
    if (ranks > 1)
        CHECK(kill(divided_child(0), SIGKILL) == 0);
    generate(session, 25);
    CHECK(ranks == 1 || session->rank_starts == 2, "%d starts", session->rank_starts);
    CHECK(esp_session_rewind(session, 70) == 0);
    prompt(session, tokens + 20, 3);
    generate(session, 20);
    const int32_t *text = esp_session_tokens(session, &length);
    memcpy(to, text, (size_t)length * sizeof *to);
    esp_session_close(session);
    esp_engine_close(engine);
    return length;
}

/* After a rank was killed, the states of recurrent layers are computed again from the whole
 * text. */
TEST(a_rank_that_is_killed_does_not_change_the_text)
{
    int32_t one[CONTEXT], two[CONTEXT];
    for (int v = 0; v < VECTORS; v++)
        for (int window = 0; window <= 30; window += 30) {
            const int length = write_text(vectors[v], 1, window, one);
            CHECK(write_text(vectors[v], 2, window, two) == length && length == 93,
                  "%s: %d tokens", vectors[v], length);
            CHECK(memcmp(one, two, (size_t)length * sizeof *one) == 0, "%s, window %d",
                  vectors[v], window);
        }
}

/* ------------------------------------------------------------------ samples for a selector */

/* Checks that row `row` of `rows` is the distribution after the last of `count` tokens. */
static void check_distribution(const struct esp_sampler *s, struct esp_weights *weights,
                               struct esp_rows *rows, int row, const int32_t *tokens, int count)
{
    static const int32_t first = 0;
    float want[VOCABULARY], found[VOCABULARY];
    struct esp_kv_cache fresh;
    struct esp_rows *alone;
    CHECK(esp_kv_cache_open(&fresh, s->ops, weights, VOCABULARY, CONTEXT, 8, err, sizeof err) ==
              0,
          "%s", err);
    CHECK(s->ops->rows_open(&alone, engine->backend, 1, VOCABULARY, err, sizeof err) == 0, "%s",
          err);
    CHECK(esp_kv_cache_append(&fresh, tokens, count, alone, NULL) == 0 &&
          s->ops->softmax(alone, &first, 1, s->sampling) == 0 &&
          s->ops->read_row(alone, 0, want) == 0 && s->ops->read_row(rows, row, found) == 0);
    CHECK(memcmp(want, found, sizeof want) == 0, "row %d after %d tokens", row, count);
    s->ops->rows_close(alone);
    esp_kv_cache_close(&fresh);
}

/* Checks the rows of both models for some nodes of the last rollouts. The rollouts continue the
 * first `prompt` tokens of the training text. */
static void check_rollouts(const struct esp_sampler *s, int prompt)
{
    int32_t tokens[CONTEXT];
    for (int stem = 0; stem < ESP_ROLLOUT_STEM; stem += 3)
        for (int at = 0; at < ESP_ACTION_LENGTH - 1; at += 3) {
            const int path = (stem + at) % ESP_ACTION_PATHS;
            const int row = esp_rollout_row(stem, path, at), count = prompt + stem + at + 1;
            memcpy(tokens, s->piece, (size_t)prompt * sizeof *tokens);
            memcpy(tokens + prompt, s->rollouts.stem, (size_t)stem * sizeof *tokens);
            memcpy(tokens + prompt + stem, s->rollouts.path[stem][path],
                   (size_t)(at + 1) * sizeof *tokens);
            check_distribution(s, engine->target_weights, s->p, row, tokens, count);
            check_distribution(s, engine->draft_weights, s->q, row, tokens, count);
        }
}

TEST(the_trees_that_a_selector_learns_from_have_the_models_distributions)
{
    int32_t text[60];
    for (int i = 0; i < 60; i++)
        text[i] = i * 11 % VOCABULARY;
    for (int v = 0; v < VECTORS; v++) {
        open_engine(vectors[v]);
        struct esp_sampler s = {.engine = engine,
                                .rules = {esp_verifier_find("nss")},
                                .layout.rules = 1,
                                .text = text,
                                .length = 60,
                                .seed = 5};
        CHECK(esp_sampler_open(&s, err, sizeof err) == 0, "%s", err);
        float *samples = calloc(ESP_SAMPLE_ROOTS * esp_sample_size(&s.layout), sizeof *samples);
        int checked = 0;
        for (int piece = 0; piece < 20 && checked < 2; piece++) {
            const int count = samples ? esp_sampler_piece(&s, piece, samples) : -1;
            CHECK(count >= 0, "%s: %d", vectors[v], count);
            if (count == 0)
                continue; /* the target has ended the text */
            const float *last = samples + (size_t)(count - 1) * esp_sample_size(&s.layout);
            check_rollouts(&s, (int)last[ESP_SAMPLE_LENGTH]);
            checked++;
        }
        CHECK(checked == 2, "%s", vectors[v]);
        free(samples);
        esp_sampler_close(&s);
        esp_engine_close(engine);
    }
}
