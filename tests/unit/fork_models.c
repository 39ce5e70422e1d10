/* Tests with real models that a branch continues like a new session with the same text. The
 * cases have drafters of every kind, windows, conversations, quantised targets, draft heads and
 * the target's own copy, on both backends. Greedy texts must be equal, and so must sampled
 * texts with the same seed. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/espalier.h"
#include "engine/model/quantize.h"
#include "tests/each_backend.h"

enum { LONGEST = 256, NODES = 24 };

static char err[512];

struct variant {
    const char *drafter;
    double temperature;
    int window;
    const char *chat;
    int tokens;
};

static struct esp_session *open_session(struct esp_engine *engine, const struct variant *v,
                                        uint64_t seed)
{
    struct esp_session *session;
    struct esp_session_options options = {.drafter = v->drafter,
                                          .repeatable = true,
                                          .values = {.temperature = v->temperature,
                                                     .seed = seed,
                                                     .window = v->window,
                                                     .draft_temp = ESP_DRAFT_OFF,
                                                     .ignore_eos = true}};
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == ESP_OK, "%s: %s",
          v->drafter, err);
    if (v->chat)
        CHECK(esp_session_set(session, "chat", v->chat, err, sizeof err) == ESP_OK, "%s", err);
    return session;
}

static int generate(struct esp_session *session, int count, int32_t *text)
{
    int status, length;
    esp_session_allow(session, count);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
    const int32_t *tokens = esp_session_tokens(session, &length);
    CHECK(length <= LONGEST);
    memcpy(text, tokens, (size_t)length * sizeof *text);
    return length;
}

/* Writes the tokens of a branch to `to`: the first `keep` tokens of a session's text with their
 * kinds, then another token. */
static int make_branch(const struct esp_session *session, const int32_t *text, int keep,
                       struct esp_text_token *branch)
{
    struct esp_turn_places turn = {.said_end = 4, .answer = 4};
    esp_session_turn(session, 0, &turn);
    for (int i = 0; i <= keep; i++) {
        const bool user = i >= turn.said && i < turn.said_end, mark = i < turn.answer && !user;
        branch[i] = (struct esp_text_token){text[i], user   ? ESP_TEXT_PROMPT
                                                     : mark ? ESP_TEXT_MARK
                                                            : ESP_TEXT_BONUS};
    }
    branch[keep] = (struct esp_text_token){(text[keep] + 7) % 60 + 1, ESP_TEXT_CHOSEN};
    return keep + 1;
}

static void begin(struct esp_session *session, const struct variant *v)
{
    static const int32_t tokens[] = {17, 23, 5, 31};
    if (v->chat)
        CHECK(esp_session_say(session, "A king", 6, err, sizeof err) == ESP_OK, "%s", err);
    else
        CHECK(esp_session_prompt(session, tokens, 4, err, sizeof err) == ESP_OK, "%s", err);
}

static void check_variant(struct esp_engine *engine, const struct variant *v)
{
    int32_t first[LONGEST], again[LONGEST], fresh[LONGEST];
    struct esp_text_token branch[LONGEST];
    struct esp_session *session = open_session(engine, v, 5);
    begin(session, v);
    const int length = generate(session, v->tokens, first);
    for (int back = 2; back < v->tokens; back += v->tokens / 3 + 1) {
        const int count = make_branch(session, first, length - back, branch);
        CHECK(esp_session_fork(session, branch, count, err, sizeof err) == count - 1, "%s: %s",
              v->drafter, err);
        CHECK(esp_session_set(session, "seed", "6", err, sizeof err) == ESP_OK);
        const int written = generate(session, v->tokens, again);
        struct esp_session *other = open_session(engine, v, 6);
        CHECK(esp_session_fork(other, branch, count, err, sizeof err) == 0, "%s", err);
        CHECK(generate(other, v->tokens, fresh) == written &&
                  memcmp(again, fresh, (size_t)written * sizeof *fresh) == 0,
              "%s, temperature %g, window %d: a branch from token %d differs", v->drafter,
              v->temperature, v->window, count);
        esp_session_close(other);
        /* The session returns to the first text. */
        struct esp_text_token whole[LONGEST];
        for (int i = 0; i < length; i++)
            whole[i] = (struct esp_text_token){first[i], ESP_TEXT_BONUS};
        CHECK(esp_session_fork(session, whole, length, err, sizeof err) >= 0, "%s", err);
    }
    esp_session_close(session);
}

static void check_engine(const struct esp_engine_options *options,
                         const struct variant *variants, int count)
{
    struct esp_engine *engine;
    CHECK(esp_engine_open(&engine, options, err, sizeof err) == ESP_OK, "%s", err);
    for (int i = 0; i < count; i++)
        check_variant(engine, &variants[i]);
    esp_engine_close(engine);
}

#define CHECK_ENGINE(options, variants)                                                        \
    check_engine(options, variants, (int)(sizeof(variants) / sizeof *(variants)))

TEST(branches_of_the_built_in_pair_match_fresh_sessions)
{
    static const struct variant variants[] = {
        {"fixed:D=3,B=2", 0, 0, NULL, 30},
        {"fixed:D=3,B=2", 0.8, 0, NULL, 30},
        {"ar", 0.8, 0, NULL, 20},
        {"linear:K=4", 0.8, 0, NULL, 20},
        {"dynatree", 0, 0, NULL, 30},
        {"ngram", 0, 0, NULL, 30},
        {"suffix", 0, 0, NULL, 30},
        {"recycle", 0, 0, NULL, 30},
        {"hybrid", 0, 0, NULL, 20},
        {"fixed:D=2,B=2", 0, 64, NULL, 30},
        {"fixed:D=2,B=2", 0.8, 64, NULL, 30},
        {"fixed:D=2,B=2", 0, 0, "chatml", 30},
        {"fixed:D=2,B=2", 0.8, 0, "chatml", 20},
    };
    const struct esp_engine_options options = {.backend = "cpu", .max_nodes = NODES};
    CHECK_ENGINE(&options, variants);
}

TEST(branches_with_the_targets_own_copy_match_fresh_sessions)
{
    static const struct variant variants[] = {{"linear:K=3", 0, 0, NULL, 20},
                                              {"fixed:D=2,B=2", 0.8, 0, NULL, 20}};
    const struct esp_engine_options options = {
        .backend = "cpu", .max_nodes = NODES, .draft = "self"};
    CHECK_ENGINE(&options, variants);
}

TEST(branches_of_quantised_targets_match_fresh_sessions)
{
    static const char *const types[] = {"q8_0", "q4_k"};
    static const struct variant variants[] = {{"fixed:D=2,B=2", 0, 0, NULL, 20},
                                              {"fixed:D=2,B=2", 0.8, 0, NULL, 20}};
    for (int i = 0; i < (check_quick() ? 1 : 2); i++) {
        char path[64];
        struct esp_quantize_report report;
        snprintf(path, sizeof path, "/tmp/espalier-fork-%d-%d.gguf", (int)getpid(), i);
        CHECK(esp_model_quantize("engine/models/fairytale-target", path, types[i], true,
                                 &report, NULL, NULL, err, sizeof err) == ESP_OK,
              "%s", err);
        const struct esp_engine_options options = {.backend = "cpu",
                                                   .max_nodes = NODES,
                                                   .target = path,
                                                   .draft = "engine/models/fairytale-draft"};
        CHECK_ENGINE(&options, variants);
        unlink(path);
    }
}

/* The emulator is slow, so only a few tokens are written. */
TEST(branches_on_cuda_match_fresh_sessions)
{
    static const struct variant variants[] = {{"fixed:D=2,B=2", 0, 0, NULL, 6},
                                              {"fixed:D=2,B=2", 0.8, 0, NULL, 6}};
    const bool real = cuda_is_real();
    const struct esp_engine_options options = {
        .backend = "cuda", .exact = true, .max_nodes = real ? 0 : NODES};
    check_engine(&options, variants, check_quick() && !real ? 1 : 2);
}
