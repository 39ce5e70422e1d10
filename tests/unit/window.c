/* window.c - tests attention windows. A token must attend to the same tokens as in
 * StreamingLLM, no matter what was dropped from the cache, drafted or undone. A text can become
 * longer than the context.
 *
 * tests/vectors/window.json has logits and greedy texts of the built-in target. An independent
 * implementation computed them by another method.
 */
#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/lossless.h"
#include "engine/session_parts.h"
#include "tests/check.h"
#include "tests/drafting.h"

enum { NODES = 16, LONG = 780 };

static struct esp_engine *engine;
static char err[512];

static void open_engine(void)
{
    const struct esp_engine_options options = {.backend = "cpu", .max_nodes = NODES};
    if (!engine)
        CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
}

/* ------------------------------------------------------------------ the reference */

static cJSON *read_reference(void)
{
    static char text[1 << 16];
    FILE *file = fopen(check_path("vectors/window.json"), "r");
    CHECK(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    cJSON *json = cJSON_ParseWithLength(text, n);
    CHECK(json);
    return json;
}

static int number(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItem(object, name)->valueint;
}

static int read_tokens(const cJSON *list, int32_t *tokens)
{
    const int count = cJSON_GetArraySize(list);
    for (int i = 0; i < count; i++)
        tokens[i] = cJSON_GetArrayItem(list, i)->valueint;
    return count;
}

/* ------------------------------------------------------------------ one cache */

struct caches {
    struct esp_kv_cache cache;
    struct esp_rows *logits;
    float *row; /* (vocabulary) */
};

static void open_cache(struct caches *c, struct esp_window window, int rows)
{
    const struct esp_backend_ops *ops = engine->backend->ops;
    const int vocabulary = engine->target->desc.vocabulary;
    CHECK(esp_kv_cache_open(&c->cache, ops, engine->target_weights, vocabulary, rows, NODES,
                            err, sizeof err) == 0,
          "%s", err);
    esp_kv_cache_set_window(&c->cache, &window, 1 << 30);
    CHECK(ops->rows_open(&c->logits, engine->backend, c->cache.max_batch, vocabulary, err,
                         sizeof err) == 0,
          "%s", err);
    c->row = calloc((size_t)vocabulary, sizeof *c->row);
}

static void close_cache(struct caches *c)
{
    engine->backend->ops->rows_close(c->logits);
    esp_kv_cache_close(&c->cache);
    free(c->row);
}

/* Runs the next `count` tokens, and stores their logits in rows 0..count-1. */
static void run(struct caches *c, const int32_t *text, int count)
{
    struct esp_batch batch = {.rows = count, .logits = c->logits};
    const int status = esp_kv_cache_run(&c->cache, text + c->cache.length, &batch);
    CHECK(status == 0, "%d", status);
}

static const float *row_of(struct caches *c, int row)
{
    CHECK(engine->backend->ops->read_row(c->logits, row, c->row) == 0);
    return c->row;
}

static void check_row(const cJSON *row, const float *logits)
{
    const cJSON *ids = cJSON_GetObjectItem(row, "ids");
    for (int i = 0; i < cJSON_GetArraySize(ids); i++) {
        const double want =
            cJSON_GetArrayItem(cJSON_GetObjectItem(row, "logits"), i)->valuedouble;
        const double is = (double)logits[cJSON_GetArrayItem(ids, i)->valueint];
        CHECK(fabs(is - want) < 2e-3, "position %d, logit %d: %g, not %g",
              number(row, "position"), i, is, want);
    }
}

TEST(tokens_see_the_tokens_of_streamingllm)
{
    int32_t text[256];
    open_engine();
    cJSON *json = read_reference();
    const int count = read_tokens(cJSON_GetObjectItem(json, "tokens"), text);
    const cJSON *of;
    cJSON_ArrayForEach(of, cJSON_GetObjectItem(json, "cases"))
    {
        const struct esp_window window = {number(of, "sinks"), number(of, "recent"), 0};
        for (int together = check_quick() ? 8 : 1; together <= 64; together *= 8) {
            struct caches c;
            open_cache(&c, window, esp_kv_cache_window_rows(&window));
            const cJSON *row = cJSON_GetObjectItem(of, "rows")->child;
            while (c.cache.length < count) {
                const int left = count - c.cache.length, n = left < together ? left : together;
                run(&c, text, n);
                for (; row && number(row, "position") < c.cache.length; row = row->next)
                    check_row(row, row_of(&c, number(row, "position") - (c.cache.length - n)));
            }
            CHECK(!row);
            close_cache(&c);
        }
    }
    cJSON_Delete(json);
}

/* ------------------------------------------------------------------ dropped rows */

static void make_text(int32_t *text, int count)
{
    unsigned long long random = 5;
    for (int i = 0; i < count; i++)
        text[i] = (int32_t)(3 + check_uniform(&random) * 4000);
}

/* Checks that the logits of the last `count` tokens are bit-identical to those with a cache
 * that has dropped nothing. */
static void check_same(struct caches *dropping, struct caches *whole, int count)
{
    for (int i = 0; i < count; i++) {
        const float *is = row_of(dropping, i), *want = row_of(whole, i);
        CHECK(memcmp(is, want, 4096 * sizeof *is) == 0, "position %d",
              dropping->cache.length - count + i);
    }
}

/* Runs chunks of many sizes. Between them, the text is often shortened by a few tokens, and
 * once by almost all its tokens. */
TEST(rows_dropped_from_the_cache_change_no_bit)
{
    static const struct esp_window windows[] = {{19, 40, 0}, {0, 16, 0}};
    int32_t text[LONG];
    unsigned long long random = 3;
    open_engine();
    make_text(text, LONG);
    const int end = check_quick() ? LONG * 2 / 3 : LONG;
    for (int w = 0; w < (check_quick() ? 1 : 2); w++) {
        struct caches dropping, whole;
        bool dropped = false, again = false;
        open_cache(&dropping, windows[w], esp_kv_cache_window_rows(&windows[w]));
        open_cache(&whole, windows[w], LONG);
        while (dropping.cache.length < end) {
            const int length = dropping.cache.length, left = end - length;
            int n = 1 + (int)(check_uniform(&random) * 60), back = n / 3;
            n = n < left ? n : left;
            run(&dropping, text, n);
            run(&whole, text, n);
            check_same(&dropping, &whole, n);
            dropped |= dropping.cache.window.dropped > 0;
            if (!again && length > 3 * end / 4)
                back = length - 10;
            esp_kv_cache_cut(&dropping.cache, length + n - back);
            /* a cache that has dropped rows must then compute the text from its beginning */
            if (back > n) {
                CHECK(dropping.cache.length == 0);
                again = true;
                for (int to; (to = length + n - back - dropping.cache.length) > 0;)
                    run(&dropping, text, to < 99 ? to : 99);
            }
            esp_kv_cache_cut(&whole.cache, length + n - back);
            CHECK(dropping.cache.length == whole.cache.length);
            if (length + n == end)
                break;
        }
        CHECK(dropped && again && whole.cache.window.dropped == 0);
        close_cache(&dropping);
        close_cache(&whole);
    }
}

TEST(a_window_that_is_not_full_changes_no_bit)
{
    const struct esp_window window = {4, 80, 0}, none = {0, 0, 0};
    int32_t text[84];
    struct caches with, without;
    open_engine();
    make_text(text, 84);
    open_cache(&with, window, esp_kv_cache_window_rows(&window));
    open_cache(&without, none, 84);
    run(&with, text, 84);
    run(&without, text, 84);
    check_same(&with, &without, 84);
    close_cache(&with);
    close_cache(&without);
}

/* ------------------------------------------------------------------ sessions */

static struct esp_session *open_session(const char *drafter, int window, int sinks)
{
    struct esp_session_options options = {
        .drafter = drafter,
        .values = {.window = window, .sinks = sinks, .seed = 1},
        .repeatable = true,
    };
    struct esp_session *session;
    open_engine();
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    return session;
}

static void generate(struct esp_session *session, int tokens)
{
    int status;
    esp_session_allow(session, tokens);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
}

static void check_text(const struct esp_session *session, const int32_t *want, int from,
                       int count, const char *who)
{
    int length;
    const int32_t *text = esp_session_tokens(session, &length);
    for (int i = from; i < from + count && i < length; i++)
        CHECK(text[i] == want[i - from], "%s: token %d is %d, not %d", who, i, text[i],
              want[i - from]);
    CHECK(length >= from + count || esp_session_is_end(session, text[length - 1]), "%s: %d",
          who, length);
}

/* Only the fourth window is tested with every drafter. The first two windows are smaller than
 * the depth of the trees. */
TEST(the_greedy_text_is_that_of_the_reference)
{
    int32_t prompt[256], text[256];
    cJSON *json = read_reference();
    read_tokens(cJSON_GetObjectItem(json, "tokens"), prompt);
    const cJSON *cases = cJSON_GetObjectItem(json, "cases");
    const int used = number(json, "prompt");
    struct esp_item drafter;
    for (int d = 0; esp_item(ESP_DRAFTERS, d, &drafter); d++)
        for (int i = 0; i < cJSON_GetArraySize(cases); i++) {
            const cJSON *of = cJSON_GetArrayItem(cases, i);
            const int sinks = number(of, "sinks");
            if (check_quick() ? d % 9 || i % 3 : i != 3 && d % 6)
                continue;
            struct esp_session *session = open_session(drafter.name, number(of, "recent"),
                                                       sinks ? sinks : ESP_SINKS_NONE);
            const int count = read_tokens(cJSON_GetObjectItem(of, "text"), text);
            CHECK(esp_session_prompt(session, prompt, used, err, sizeof err) == 0, "%s", err);
            int start;
            esp_session_tokens(session, &start);
            generate(session, count);
            check_text(session, text, start, count, drafter.name);
            CHECK(esp_session_is_lossy(session) && !esp_session_rule_is_lossy(session));
            esp_session_close(session);
        }
    cJSON_Delete(json);
}

enum { START = 330, MORE = 60 };

static void check_drafter(const char *name, const int32_t *prompt, const int32_t *plain,
                          int length)
{
    struct esp_session *session = open_session(name, 24, 0);
    CHECK(esp_session_prompt(session, prompt, START, err, sizeof err) == 0, "%s", err);
    generate(session, MORE);
    check_text(session, plain, 0, length, name);
    CHECK(session->target.window.dropped > 0, "%s", name);
    esp_session_close(session);
}

/* The prompt is longer than the cache, so rows are dropped from the cache. */
TEST(every_drafter_writes_what_plain_decoding_writes)
{
    int32_t prompt[START], plain[START + MORE];
    int length;
    make_text(prompt, START);
    struct esp_session *session = open_session("ar", 24, 0);
    CHECK(esp_session_prompt(session, prompt, START, err, sizeof err) == 0, "%s", err);
    generate(session, MORE);
    const int32_t *text = esp_session_tokens(session, &length);
    memcpy(plain, text, (size_t)length * sizeof *plain);
    esp_session_close(session);
    struct esp_item drafter;
    for (int d = 0; esp_item(ESP_DRAFTERS, d, &drafter); d++)
        if (!check_quick() || d % 12 == 0)
            check_drafter(drafter.name, prompt, plain, length);
    check_drafter("dynatree:cache=rebuild", prompt, plain, length);
    check_drafter("fixed:D=12,B=1", prompt, plain, length);
}

TEST(a_window_can_be_switched_on_and_off)
{
    int32_t prompt[START], plain[START + 60];
    char value[64];
    make_text(prompt, START);
    struct esp_session *session = open_session("dynatree", 40, 6);
    CHECK(esp_session_prompt(session, prompt, START, err, sizeof err) == 0, "%s", err);
    generate(session, 60);
    memcpy(plain, session->text, sizeof plain);
    /* the cache still has the rows before this token */
    CHECK(esp_session_rewind(session, START + 30) == 0);
    generate(session, 30);
    check_text(session, plain, 0, START + 60, "rewound");
    /* the cache has dropped rows before this token */
    CHECK(esp_session_rewind(session, 100) == 0);
    CHECK(esp_session_prompt(session, prompt + 100, START - 100, err, sizeof err) == 0, "%s",
          err);
    generate(session, 60);
    check_text(session, plain, 0, START + 60, "rewound far");
    esp_session_close(session);

    session = open_session("dynatree", 0, 0);
    CHECK(esp_session_prompt(session, prompt, START, err, sizeof err) == 0, "%s", err);
    CHECK(!esp_session_is_lossy(session));
    CHECK(esp_session_set(session, "window", "40", err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_set(session, "sinks", "6", err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_is_lossy(session));
    generate(session, 60);
    check_text(session, plain, 0, START + 60, "set later");
    CHECK(esp_session_set(session, "window", "off", err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_get(session, "window", value, sizeof value) == 0);
    CHECK(strcmp(value, "off") == 0 && !esp_session_is_lossy(session), "%s", value);
    esp_session_close(session);
}

static void refused(struct esp_session *session, const char *key, const char *value,
                    const char *why)
{
    char before[64], after[64];
    esp_session_get(session, key, before, sizeof before);
    CHECK(esp_session_set(session, key, value, err, sizeof err) < 0, "%s %s", key, value);
    CHECK(strstr(err, why), "%s", err);
    esp_session_get(session, key, after, sizeof after);
    CHECK(strcmp(before, after) == 0, "%s", after);
}

TEST(invalid_windows_are_refused)
{
    struct esp_session *session = open_session("ar", ESP_WINDOW_ON, 0);
    CHECK(session->target.window.recent == 764, "%d", session->target.window.recent);
    CHECK(session->target.window.sinks == 4);
    refused(session, "window", "0", "off, on or a whole number from 1");
    refused(session, "window", "765", "the window can have at most 764");
    refused(session, "sinks", "768", "no room for a window in a context of 768");
    refused(session, "sinks", "-3", "auto, none or a whole number");
    int32_t prompt[LONG];
    make_text(prompt, LONG);
    CHECK(esp_session_prompt(session, prompt, LONG, err, sizeof err) == 0, "%s", err);
    refused(session, "window", "off", "the text has 780 tokens");
    CHECK(esp_session_set(session, "sinks", "none", err, sizeof err) == 0, "%s", err);
    esp_session_clear(session);
    CHECK(esp_session_set(session, "window", "off", err, sizeof err) == 0, "%s", err);
    esp_session_close(session);

    struct drafting toy;
    drafting_open(&toy, &(struct drafting_setup){.drafter = "ar"});
    toy.ops.windows = false;
    refused(toy.session, "window", "20", "does not support windows yet");
    drafting_close(&toy);
}

/* ------------------------------------------------------------------ sampling */

/* Compares sampled texts with texts of plain passes. The plain passes have the same window, but
 * a cache that drops nothing. */
TEST(sampling_follows_the_target_with_the_same_window)
{
    const struct esp_lossless_plan plan = {.trials = check_quick() ? 20 : 100, .tokens = 6};
    struct esp_lossless result;
    int32_t prompt[START];
    make_text(prompt, START);
    struct esp_session *session = open_session("iid", 20, 0);
    CHECK(esp_session_set(session, "temp", "1", err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt(session, prompt, START, err, sizeof err) == 0, "%s", err);
    CHECK(esp_lossless_measure(session, &plan, &result, err, sizeof err) == 0, "%s", err);
    for (int i = 0; i < ESP_LOSSLESS_TEST_COUNT; i++)
        CHECK(result.test[i].freedom == 0 || result.test[i].p > 1e-4, "%s: p = %g",
              esp_lossless_test_name(i), result.test[i].p);
    CHECK(result.impossible == 0);
    esp_session_close(session);
}

/* ------------------------------------------------------------------ conversations */

enum { TURNS = 14, SAID = 40, ANSWER = 30, CHAT_WINDOW = 50 };

static struct esp_session *open_chat(const char *drafter)
{
    struct esp_session *session = open_session(drafter, CHAT_WINDOW, 0);
    CHECK(esp_session_set(session, "chat", "chatml", err, sizeof err) == 0, "%s", err);
    return session;
}

static void say(struct esp_session *session, int turn)
{
    char text[128];
    snprintf(text, sizeof text, "And what did brother number %d say to the king's daughter?",
             turn);
    CHECK(esp_session_say(session, text, strlen(text), err, sizeof err) == 0, "%s", err);
}

static int length_of(const struct esp_session *session)
{
    int length;
    esp_session_tokens(session, &length);
    return length;
}

/* Gives the conversation's text up to `start` to a new session as one prompt, with the same
 * window. Checks that this session continues as the conversation did. */
static void check_answer(const struct esp_session *session, int start)
{
    const int length = length_of(session);
    struct esp_session *fresh = open_session("ar", CHAT_WINDOW, 0);
    CHECK(esp_session_set(fresh, "chat", "none", err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt(fresh, session->text, start, err, sizeof err) == 0, "%s", err);
    generate(fresh, length - start);
    check_text(fresh, session->text + start, start, length - start, "the whole text");
    esp_session_close(fresh);
}

/* With a window, no turn may be dropped, and no row may be computed twice. */
TEST(a_conversation_continues_beyond_the_context)
{
    static const char *const drafters[] = {"ar", "dynatree", "suffix"};
    static int32_t want[TURNS * (SAID + ANSWER) + 2000];
    const int turns = check_quick() ? 9 : TURNS;
    int want_length = 0;
    for (int d = 0; d < 3; d++) {
        struct esp_session *session = open_chat(drafters[d]);
        struct esp_stats stats;
        int start = 0;
        for (int turn = 0; turn < turns; turn++) {
            say(session, turn);
            start = length_of(session);
            generate(session, ANSWER);
            esp_session_stats(session, &stats);
            CHECK(stats.prefill_rows + stats.generated_tokens == length_of(session) - 1,
                  "%s, turn %d: %lld rows of prompts and %d rows of answers were computed for "
                  "%d tokens",
                  drafters[d], turn, (long long)stats.prefill_rows, stats.generated_tokens,
                  length_of(session));
            CHECK(session->conversation.count == turn + 1, "%s: %d", drafters[d], turn);
        }
        CHECK(check_quick() || length_of(session) > esp_engine_context(engine), "%d",
              length_of(session));
        CHECK(session->target.window.dropped > 0);
        check_answer(session, start);
        if (d == 0) {
            want_length = length_of(session);
            CHECK(want_length < (int)(sizeof want / sizeof *want));
            memcpy(want, session->text, (size_t)want_length * sizeof *want);
        }
        CHECK(length_of(session) == want_length, "%s", drafters[d]);
        check_text(session, want, 0, want_length, drafters[d]);
        esp_session_close(session);
    }
}

enum { BACK = 9 };

/* The last answer is removed and written again, while the caches still have its rows. Then all
 * answers from the second on are removed and written again. The caches have dropped these rows
 * long ago. */
TEST(turns_can_be_taken_back_with_a_window)
{
    static int32_t want[BACK * (SAID + ANSWER) + 1000];
    int starts[BACK], length = 0;
    struct esp_session *session = open_chat("dynatree");
    for (int turn = 0; turn < BACK; turn++) {
        say(session, turn);
        starts[turn] = length_of(session);
        generate(session, ANSWER);
    }
    length = length_of(session);
    CHECK(length < (int)(sizeof want / sizeof *want));
    memcpy(want, session->text, (size_t)length * sizeof *want);
    CHECK(esp_session_rewind(session, starts[BACK - 1]) == 0);
    generate(session, ANSWER);
    check_text(session, want, 0, length, "the last answer, written again");
    CHECK(esp_session_rewind(session, starts[1]) == 0);
    /* the cache lacks rows that the window needs, so it is empty */
    CHECK(session->target.length == 0);
    generate(session, ANSWER);
    for (int turn = 2; turn < BACK; turn++) {
        say(session, turn);
        CHECK(length_of(session) == starts[turn], "%d, not %d", length_of(session),
              starts[turn]);
        generate(session, ANSWER);
    }
    check_text(session, want, 0, length, "all answers from the second on, written again");
    esp_session_close(session);
}

/* ------------------------------------------------------------------ long texts */

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*s %ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

TEST(a_text_many_contexts_long_needs_no_more_memory)
{
    open_engine();
    const int context = esp_engine_context(engine), rounds = check_quick() ? 2 : 4;
    static const char *const drafters[] = {"suffix", "linear"};
    int32_t prompt[4];
    make_text(prompt, 4);
    for (int d = 0; d < (check_quick() ? 1 : 2); d++) {
        struct esp_session *session = open_session(drafters[d], 60, 0);
        long before = 0;
        CHECK(esp_session_context(session) > 1000 * context);
        CHECK(esp_session_prompt(session, prompt, 4, err, sizeof err) == 0, "%s", err);
        for (int i = 0; i < rounds; i++) {
            generate(session, context);
            if (i == 0)
                before = resident();
        }
        int length;
        esp_session_tokens(session, &length);
        CHECK(length >= rounds * context, "%d tokens, %s", length, esp_session_end(session));
        CHECK(esp_session_end(session)[0] == 'l', "%s", esp_session_end(session));
        CHECK(check_quick() || resident() - before < 1 << 20, "%ld bytes more",
              resident() - before);
        esp_session_close(session);
    }
}
