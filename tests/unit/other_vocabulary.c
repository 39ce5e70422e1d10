/* Tests draft models with another vocabulary (engine/model/translation.h). The tests check
 * which tokens the vocabularies share, how the draft reads the target's text, and whether it
 * drafts as well as with the target's vocabulary. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kv_cache.h"
#include "engine/model/quantize.h"
#include "engine/session_parts.h"
#include "tests/each_backend.h"
#include "tests/folder.h"
#include "tests/foreign.h"

static char err[512];

/* ------------------------------------------------------------------ two tokenizers */

static const char *const tokenizers[] = {"llama2", "llama3", "neox", "qwen2"};
enum { TOKENIZERS = sizeof tokenizers / sizeof *tokenizers };

struct two {
    struct esp_tokenizer *tokenizer[2]; /* the target's tokenizer, and the draft's */
    int32_t end[2];
    struct esp_language language[2];
    struct esp_translation t;
};

static void open_language(struct two *two, int i, const char *path)
{
    static const char *const ends[] = {"</s>", "<|eot_id|>", "<|im_end|>", "<|endoftext|>"};
    CHECK(esp_tokenizer_open(&two->tokenizer[i], path, err, sizeof err) == 0, "%s", err);
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        two->end[i] = esp_tokenizer_find(two->tokenizer[i], ends[e], strlen(ends[e]));
        if (two->end[i] >= 0)
            break;
    }
    two->language[i] =
        (struct esp_language){two->tokenizer[i], esp_tokenizer_size(two->tokenizer[i]) + 3,
                              &two->end[i], two->end[i] >= 0};
}

static void open_two(struct two *two, const char *target, const char *draft)
{
    open_language(two, 0, target);
    open_language(two, 1, draft);
    CHECK(esp_translation_open(&two->t, &two->language[0], &two->language[1]) == 0);
}

static void open_vectors(struct two *two, int target, int draft)
{
    char path[2][512];
    snprintf(path[0], 512, "%s/%s", check_path("vectors/tokenizers"), tokenizers[target]);
    snprintf(path[1], 512, "%s/%s", check_path("vectors/tokenizers"), tokenizers[draft]);
    open_two(two, path[0], path[1]);
}

static void close_two(struct two *two)
{
    esp_translation_free(&two->t);
    esp_tokenizer_close(two->tokenizer[0]);
    esp_tokenizer_close(two->tokenizer[1]);
}

/* Finds the bytes of a token. Returns the number of bytes, or 0 for special tokens. */
static size_t bytes_of(const struct two *two, int i, int32_t token, const char **bytes)
{
    size_t length = 0;
    *bytes = esp_tokenizer_bytes(two->tokenizer[i], token, &length);
    return *bytes && !esp_tokenizer_is_special(two->tokenizer[i], token) ? length : 0;
}

/* Returns whether the draft has a token for each of these bytes. */
static bool can_spell(const struct two *two, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (esp_tokenizer_find_plain(two->tokenizer[1], bytes + i, 1) < 0)
            return false;
    return true;
}

static void check_spelling(const struct two *two, int32_t token)
{
    const char *bytes, *part;
    const int32_t *spelled;
    const size_t length = bytes_of(two, 0, token, &bytes);
    const int count = esp_translation_spell(&two->t, token, &spelled);
    size_t at = 0;
    CHECK(count >= 1 && count <= ESP_SPELLED_MOST, "token %d is %d", token, count);
    for (int i = 0; i < count; i++)
        CHECK(spelled[i] >= 0 && spelled[i] < two->language[1].vocabulary);
    if (length == 0 || count == ESP_SPELLED_MOST || !can_spell(two, bytes, length))
        return;
    for (int i = 0; i < count; i++) {
        const size_t n = bytes_of(two, 1, spelled[i], &part);
        CHECK(n > 0 && at + n <= length && memcmp(bytes + at, part, n) == 0,
              "token %d reads otherwise", token);
        at += n;
    }
    CHECK(at == length, "token %d loses bytes", token);
}

static void check_shared(const struct two *two)
{
    bool used[4096] = {false};
    const struct esp_translation *t = &two->t;
    for (int i = 0; i < t->shared; i++) {
        const char *a, *b;
        const int32_t token = t->output_token[i], row = t->output_row[i];
        const size_t n = bytes_of(two, 0, token, &a), m = bytes_of(two, 1, row, &b);
        CHECK(i == 0 || t->output_token[i - 1] < token,
              "the tokens must be in ascending order");
        CHECK(row < 4096 && !used[row], "row %d of the draft is used for two tokens", row);
        used[row] = true;
        CHECK(n == m && (n == 0 || memcmp(a, b, n) == 0),
              "target token %d and draft token %d have different bytes", token, row);
        CHECK((token == two->end[0]) == (row == two->end[1]),
              "an end token must be shared only with an end token");
        CHECK(token != esp_tokenizer_prefix(two->tokenizer[0]), "BOS must never be drafted");
    }
}

TEST(shared_tokens_have_the_same_bytes_and_all_others_are_spelled)
{
    for (int pair = 0; pair < TOKENIZERS * TOKENIZERS; pair++) {
        struct two two;
        open_vectors(&two, pair / TOKENIZERS, pair % TOKENIZERS);
        check_shared(&two);
        for (int32_t token = 0; token < two.t.tokens; token++)
            check_spelling(&two, token);
        CHECK(two.t.shared >= 300, "%d tokens are shared", two.t.shared);
        CHECK(two.t.text_share > 0 && two.t.text_share <= 1);
        if (pair / TOKENIZERS == pair % TOKENIZERS)
            CHECK(two.t.text_share == 1, "%s has itself", tokenizers[pair % TOKENIZERS]);
        close_two(&two);
    }
}

/* Texts of all kinds are translated, and no byte is lost. */
TEST(ten_thousand_texts_are_translated_without_change)
{
    static const char *const parts[] = {
        "the ", "\xF0\x9F\x98\x80", "\r\n", "\xE2\x82", "\xAC", "\xE6\x97\xA5", " ", "  \n\n",
        "1987", "Zo\xC3\xAB",       "\t",   "don't",    ".",    "\xE2\x96\x81"};
    unsigned long long state = 1;
    for (int pair = 0; pair < TOKENIZERS * TOKENIZERS; pair++) {
        struct two two;
        open_vectors(&two, pair / TOKENIZERS, pair % TOKENIZERS);
        for (int text = 0; text < 10000 / (TOKENIZERS * TOKENIZERS); text++) {
            char bytes[256] = "";
            int32_t tokens[512];
            for (int i = 0; i < 12; i++)
                strcat(bytes, parts[(size_t)(check_uniform(&state) *
                                             (double)(sizeof parts / sizeof *parts))]);
            const int count =
                esp_tokenizer_encode(two.tokenizer[0], bytes, strlen(bytes), tokens, 512);
            CHECK(count > 0 && count <= 512);
            for (int i = 0; i < count; i++)
                check_spelling(&two, tokens[i]);
        }
        close_two(&two);
    }
}

/* ------------------------------------------------------------------ memory */

/* Allocations are counted on platforms where a program can replace malloc() and free(). */
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define COUNTS_ALLOCATIONS true

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static atomic_int allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}
#else
#define COUNTS_ALLOCATIONS false
static int allocations;
#endif

/* Encodes a text, and compares the tokens with those of a new encoder. `warm` tells whether the
 * encoder has encoded this text before. */
static void check_encoder(struct esp_encoder *encoder, const struct esp_tokenizer *t,
                          const char *text, bool warm)
{
    const size_t length = strlen(text);
    int32_t tokens[64], want[64];
    for (int spells = 0; spells < 2; spells++) {
        const int before = allocations;
        const int count = spells ? esp_encoder_spell(encoder, t, text, length, tokens, 64)
                                 : esp_encoder_encode(encoder, t, text, length, tokens, 64);
        CHECK(!warm || allocations == before, "%s: %d allocations", text, allocations - before);
        CHECK(count == (spells ? esp_tokenizer_spell(t, text, length, want, 64)
                               : esp_tokenizer_encode(t, text, length, want, 64)) &&
                  memcmp(tokens, want, (size_t)count * sizeof *want) == 0,
              "%s: other tokens", text);
    }
}

/* An encoder that is reused for all texts and vocabularies must write the same tokens as a
 * new one. When it encodes a text for the second time, it must allocate nothing. */
TEST(an_encoder_keeps_its_memory)
{
    static const char *const texts[] = {"Once upon a time",
                                        "  two \n\n lines\t",
                                        "Zoe\xCC\x88 \xF0\x9F\x98\x80 e\xCC\x81",
                                        "\xE2\x82 half",
                                        "",
                                        "don't 1987"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    struct esp_encoder *encoder = esp_encoder_open();
    for (int i = 0; i < 2 * TOKENIZERS; i++) {
        struct two two;
        open_vectors(&two, i % TOKENIZERS, 0);
        for (int text = 0; text < TEXTS; text++)
            check_encoder(encoder, two.tokenizer[0], texts[text], i >= TOKENIZERS);
        close_two(&two);
    }
    esp_encoder_close(encoder);
}

/* ------------------------------------------------------------------ hostile vocabularies */

/* Writes a byte-level tokenizer.json to `folder`, with the given tokens in addition to the
 * bytes. */
static void write_tokenizer(const char *more, const char *added)
{
    char *text = malloc(1 << 21);
    size_t used = (size_t)sprintf(text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int c = '!'; c <= '~'; c++)
        used += (size_t)sprintf(text + used,
                                c == '"' || c == '\\' ? "\"\\%c\":%d," : "\"%c\":%d,", c, c);
    sprintf(
        text + used,
        "\"\xC4\xA0\":32%s},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"},"
        "\"added_tokens\":[%s]}",
        more, added);
    folder_write_text("tokenizer.json", text);
    free(text);
}

#define SPECIAL(id, name)                                                                      \
    "{\"id\":" #id ",\"content\":\"" name "\",\"special\":true,\"normalized\":false,"          \
    "\"single_word\":false,\"lstrip\":false,\"rstrip\":false}"

/* The vocabularies have a token of 100000 bytes, a token that is special in only one of them,
 * and gaps in the ids. */
TEST(hostile_vocabularies_are_translated)
{
    enum { LONG = 100000 };
    char *more = malloc(LONG + 64), path[512];
    struct two two;
    snprintf(path, sizeof path, "%s/neox", check_path("vectors/tokenizers"));
    folder_copy("qwen2");
    strcpy(more, ",\"");
    memset(more + 2, 'q', LONG);
    strcpy(more + 2 + LONG, "\":100000,\"ab\":3000,\"the\":200");
    write_tokenizer(more, SPECIAL(200, "the") "," SPECIAL(201, "<|endoftext|>"));
    for (int turn = 0; turn < 2; turn++) {
        open_two(&two, turn ? path : folder_path(), turn ? folder_path() : path);
        for (int i = 0; i < two.t.shared; i++) {
            const int32_t own = turn ? two.t.output_row[i] : two.t.output_token[i];
            CHECK(own != 200 && own != 100000, "token %d is shared", own);
        }
        for (int32_t token = 0; token < two.t.tokens; token++)
            check_spelling(&two, token);
        close_two(&two);
    }
    free(more);
}

/* ------------------------------------------------------------------ drafting */

struct run {
    int32_t tokens[512];
    int count;
    double per_iteration;
};

static struct esp_engine *open_pair(const char *draft, int match)
{
    const struct esp_engine_options options = {
        .draft = draft, .backend = "cpu", .exact = true, .draft_match = match};
    struct esp_engine *engine;
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    return engine;
}

static void generate(struct run *run, struct esp_engine *engine, const char *prompt,
                     const struct esp_session_options *options, int tokens)
{
    struct esp_session *session;
    struct esp_stats stats;
    int32_t start[128];
    int length, status = 0;
    CHECK(esp_session_open(&session, engine, options, err, sizeof err) == 0, "%s", err);
    const int count = esp_tokenize(engine, prompt, strlen(prompt), start, 128);
    CHECK(count > 0 && count <= 128);
    CHECK(esp_session_prompt(session, start, count, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, tokens);
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    CHECK(status == 0, "%s", err);
    const int32_t *text = esp_session_tokens(session, &length);
    run->count = length - count;
    memcpy(run->tokens, text + count, (size_t)run->count * sizeof *text);
    esp_session_stats(session, &stats);
    run->per_iteration = (double)stats.generated_tokens / stats.iterations;
    esp_session_close(session);
}

static bool same(const struct run *a, const struct run *b)
{
    return a->count == b->count &&
           memcmp(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens) == 0;
}

static const char prompt[] = "Once upon a time there was a king who had three daughters, and";

/* If all tokens are shared, the draft must give the same trees and the same text as without
 * translation. Both runs use the same random numbers. */
TEST(a_draft_with_other_ids_drafts_the_same)
{
    static const char *const drafters[] = {"linear:K=5", "dynatree", "iid:K=3,L=4", "dyspec"};
    struct esp_engine *own = open_pair(NULL, ESP_MATCH_AUTO);
    foreign_draft(FOREIGN_PERMUTED);
    struct esp_engine *other = open_pair(folder_path(), ESP_MATCH_TOKENS);
    struct esp_model_info info;
    CHECK(esp_engine_draft(other, &info) && info.translated && info.text_share == 1);
    CHECK(info.outputs == 4096, "%d tokens are shared", info.outputs);
    for (int i = 0; i < 8; i++) {
        struct run a, b;
        const struct esp_session_options options = {
            .drafter = drafters[i / 2],
            .repeatable = true,
            .values = {.temperature = i % 2, .seed = 5}};
        generate(&a, own, prompt, &options, 100);
        generate(&b, other, prompt, &options, 100);
        CHECK(same(&a, &b) && a.per_iteration == b.per_iteration, "%s at %d: %g and %g",
              drafters[i / 2], i % 2, a.per_iteration, b.per_iteration);
    }
    esp_engine_close(own);
    esp_engine_close(other);
}

/* The gain of a drafter is its number of tokens per iteration minus 1. Replaces a part of the
 * draft's vocabulary, and returns the fraction of the gain that remains. */
static double gain_kept(enum foreign_kind kind, const char *drafter, double temperature)
{
    const bool text = strcmp(drafter, "respell") == 0;
    enum { PROMPTS = 16, TOKENS = 96 };
    struct esp_engine *own = open_pair(NULL, ESP_MATCH_AUTO);
    foreign_draft(kind);
    struct esp_engine *other =
        open_pair(folder_path(), text ? ESP_MATCH_TEXT : ESP_MATCH_TOKENS);
    FILE *file = fopen(check_path("prompts.txt"), "r");
    double gained[2] = {0, 0};
    char line[1024];
    CHECK(file);
    const int count = check_quick() ? PROMPTS / 2 : PROMPTS;
    for (int i = 0; i < count && fgets(line, sizeof line, file); i++) {
        struct run run[2];
        const struct esp_session_options options = {
            .drafter = drafter,
            .repeatable = true,
            .values = {.temperature = temperature, .seed = (uint64_t)i + 1}};
        line[strcspn(line, "\n")] = '\0';
        /* If both models have the same vocabulary, drafter respell drafts a chain of 6
         * tokens. */
        generate(&run[0], own, line, &options, TOKENS);
        generate(&run[1], other, line, &options, TOKENS);
        CHECK(temperature > 0 || same(&run[0], &run[1]), "prompt %d", i);
        for (int k = 0; k < 2; k++)
            gained[k] += run[k].per_iteration - 1;
    }
    fclose(file);
    esp_engine_close(own);
    esp_engine_close(other);
    printf("    %s at %g: %.3f of the gain (%.3f tokens per iteration more than 1)\n", drafter,
           temperature, gained[1] / gained[0], gained[0] / count);
    return gained[1] / gained[0];
}

#ifndef __SANITIZE_ADDRESS__ /* too slow with this sanitizer; other tests also run this code */
TEST(with_four_fifths_of_the_vocabulary_most_of_the_speedup_stays)
{
    CHECK(gain_kept(FOREIGN_RARE_REPLACED, "linear:K=4", 0) >= 0.85);
    CHECK(gain_kept(FOREIGN_RARE_REPLACED, "dynatree", 0) >= 0.85);
    CHECK(gain_kept(FOREIGN_RARE_REPLACED, "iid:K=2,L=4", 1) >= 0.85);
    /* Frequent tokens such as "the" and "and" are replaced, too. In its training, the draft has
     * read these words only as whole tokens, never as letters. */
    printf("    every fifth token, including frequent ones:\n");
    CHECK(gain_kept(FOREIGN_EACH_FIFTH_REPLACED, "dynatree", 0) > 0.05);
    printf("    byte fallback:\n");
    CHECK(gain_kept(FOREIGN_SENTENCEPIECE, "dynatree", 0) >= 0.95);
}
#endif

/* ------------------------------------------------------------------ rows */

/* Writes the text in the draft's tokens, one for each row. Returns the number of rows. */
static int flatten(const struct esp_translation *t, const int32_t *text, int length,
                   int32_t *flat)
{
    int rows = 0;
    if (t->lead >= 0)
        flat[rows++] = t->lead;
    for (int i = 0; i < length; i++) {
        const int32_t *spelled;
        const int count = esp_translation_spell(t, text[i], &spelled);
        memcpy(flat + rows, spelled, (size_t)count * sizeof *flat);
        rows += count;
    }
    return rows;
}

struct caches {
    struct esp_engine *engine;
    struct esp_rows *logits;
    struct esp_kv_cache translated, plain;
};

static void open_caches(struct caches *c, const struct esp_window *window, int rows)
{
    struct esp_engine *e = c->engine;
    const struct esp_backend_ops *ops = e->backend->ops;
    struct esp_kv_cache *const both[] = {&c->translated, &c->plain};
    for (int i = 0; i < 2; i++) {
        CHECK(esp_kv_cache_open(both[i], ops, e->draft_weights, e->draft->desc.vocabulary, rows,
                                8, err, sizeof err) == 0,
              "%s", err);
        if (window)
            esp_kv_cache_set_window(both[i], window, 1 << 20);
    }
    CHECK(esp_kv_cache_translate(&c->translated, &e->translation, err, sizeof err) == 0);
    CHECK(ops->rows_open(&c->logits, e->backend, 2, e->target->desc.vocabulary, err,
                         sizeof err) == 0,
          "%s", err);
}

static void close_caches(struct caches *c)
{
    c->engine->backend->ops->rows_close(c->logits);
    esp_kv_cache_close(&c->translated);
    esp_kv_cache_close(&c->plain);
}

/* Checks that both caches give the same logits after the first `length` tokens. The translated
 * cache continues from its current length. The plain cache starts from the beginning. */
static void compare_after(struct caches *c, const int32_t *text, int length)
{
    const struct esp_backend_ops *ops = c->engine->backend->ops;
    const int n = c->engine->target->desc.vocabulary;
    float *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    int32_t *flat = malloc((size_t)(length * ESP_SPELLED_MOST + 1) * sizeof *flat);
    const int rows = flatten(&c->engine->translation, text, length, flat);
    CHECK(esp_kv_cache_append(&c->translated, text + c->translated.length,
                              length - c->translated.length, c->logits, NULL) == 0);
    CHECK(esp_kv_cache_text_rows(&c->translated) == rows);
    CHECK(ops->read_row(c->logits, 0, a) == 0);
    esp_kv_cache_cut(&c->plain, 0);
    CHECK(esp_kv_cache_append(&c->plain, flat, rows, c->logits, NULL) == 0);
    CHECK(ops->read_row(c->logits, 0, b) == 0);
    CHECK(memcmp(a, b, (size_t)n * sizeof *a) == 0, "after %d tokens", length);
    free(a);
    free(b);
    free(flat);
}

static int text_of(const struct esp_engine *engine, int32_t *text, int most)
{
    static const char words[] =
        "The camp of the eagle was fled with curiosity, and the hedge kept shaking; they kick "
        "the "
        "public path while keeping the king's daughters in \xE6\x97\xA5\xE6\x9C\xAC. ";
    int count = 0;
    while (count < most) {
        const int n = esp_tokenize(engine, words, sizeof words - 1, text + count, most - count);
        count += n < most - count ? n : most - count;
    }
    return count;
}

/* Checks the rows of a long text in the draft's cache. `split` tells whether many tokens take
 * several rows. */
static void check_rows(const struct esp_window *window, int length, bool split)
{
    struct caches c = {.engine = open_pair(folder_path(), ESP_MATCH_TOKENS)};
    int32_t *text = malloc((size_t)length * sizeof *text);
    const int count = text_of(c.engine, text, length);
    open_caches(&c, window, window ? esp_kv_cache_window_rows(window) : 600);
    const int rows = esp_kv_cache_count(&c.translated, text, 0, count);
    CHECK(!split || rows > count * 11 / 10, "%d tokens have %d rows", count, rows);
    for (int at = 1; at <= count; at += at < 4 ? 1 : count / 5)
        compare_after(&c, text, at);
    esp_kv_cache_cut(&c.translated, count / 2);
    compare_after(&c, text, count);
    close_caches(&c);
    free(text);
    esp_engine_close(c.engine);
}

TEST(the_draft_reads_each_token_as_its_own_tokens)
{
    const struct esp_window window = {.sinks = 4, .recent = 40};
    foreign_draft(FOREIGN_EACH_FIFTH_REPLACED);
    check_rows(NULL, 300, true);
    check_rows(&window, 550, true);
    foreign_draft(FOREIGN_SENTENCEPIECE);
    check_rows(&(struct esp_window){.sinks = 0, .recent = 64}, 400, false);
}

/* ---------------------------------------------------------------- sessions with such drafts */

/* At temperature 0, the text with this drafter must equal the text of plain decoding. */
static void check_same_text(struct esp_engine *engine, const char *drafter, int window,
                            int tokens)
{
    struct run plain, drafted;
    struct esp_session_options options = {.drafter = "ar", .values = {.window = window}};
    generate(&plain, engine, prompt, &options, tokens);
    options.drafter = drafter;
    generate(&drafted, engine, prompt, &options, tokens);
    CHECK(same(&plain, &drafted), "%s, window %d", drafter, window);
    CHECK(drafted.per_iteration > 1, "%s: %g", drafter, drafted.per_iteration);
}

TEST(the_text_is_the_same_in_windows_and_full_contexts)
{
    const struct esp_engine_options options = {.draft = folder_path(),
                                               .backend = "cpu",
                                               .draft_match = ESP_MATCH_TOKENS,
                                               .context = 96};
    struct esp_engine *engine;
    foreign_draft(FOREIGN_EACH_FIFTH_REPLACED);
    engine = open_pair(folder_path(), ESP_MATCH_TOKENS);
    check_same_text(engine, "dynatree", 40, 300);
    check_same_text(engine, "linear:K=4", 40, 300);
    esp_engine_close(engine);
    /* In the draft's tokens, the text needs more rows than the context has. So from some
     * token on, nothing more can be drafted. */
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    check_same_text(engine, "dynatree", 0, 300);
    esp_engine_close(engine);
}

/* Compares the texts of these drafters on CUDA. If `plain` is empty, it receives the first
 * text, which plain decoding writes. The emulator is slow, so texts are short. */
static void check_on_cuda(int match, const char *const drafters[], struct run *plain)
{
    const struct esp_engine_options options = {.draft = folder_path(),
                                               .draft_match = match,
                                               .backend = "cuda",
                                               .exact = true,
                                               .max_nodes = 8};
    struct esp_engine *engine;
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    for (int i = 0; drafters[i]; i++) {
        struct run drafted;
        const struct esp_session_options how = {.drafter = drafters[i], .repeatable = true};
        generate(&drafted, engine, prompt, &how, 6);
        if (plain->count == 0)
            *plain = drafted;
        else
            CHECK(same(plain, &drafted) && drafted.per_iteration > 1, "%s: %g", drafters[i],
                  drafted.per_iteration);
    }
    esp_engine_close(engine);
}

TEST(cuda_drafts_for_another_vocabulary)
{
    static const char *const tokens[] = {"ar", "linear:K=3", "fixed:D=2,B=2", NULL};
    static const char *const text[] = {"respell:K=3", NULL};
    struct run plain = {.count = 0};
    cuda_is_real();
    foreign_draft(FOREIGN_EACH_FIFTH_REPLACED);
    check_on_cuda(ESP_MATCH_TOKENS, tokens, &plain);
    check_on_cuda(ESP_MATCH_TEXT, text, &plain);
}

TEST(the_text_is_the_same_with_quantised_models)
{
    char target[600], draft[600], built_in[600];
    struct esp_quantize_report report;
    struct esp_engine *engine;
    foreign_draft(FOREIGN_EACH_FIFTH_REPLACED);
    snprintf(target, sizeof target, "%s/target.gguf", folder_path());
    snprintf(draft, sizeof draft, "%s/draft.gguf", folder_path());
    snprintf(built_in, sizeof built_in, "%s/../engine/models/fairytale-target", check_path(""));
    CHECK(esp_model_quantize(built_in, target, "q8_0", false, &report, NULL, NULL, err,
                             sizeof err) == 0,
          "%s", err);
    CHECK(esp_model_quantize(folder_path(), draft, "q8_0", false, &report, NULL, NULL, err,
                             sizeof err) == 0,
          "%s", err);
    const struct esp_engine_options options = {
        .target = target, .draft = draft, .backend = "cpu", .draft_match = ESP_MATCH_TOKENS};
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    check_same_text(engine, "dynatree", 0, 100);
    esp_engine_close(engine);
}

/* A draft that has only letters as tokens drafts badly, so the user must get a warning. */
TEST(a_draft_with_only_letters_does_not_change_the_text)
{
    struct esp_session *session;
    struct run plain, drafted;
    char note[256];
    foreign_draft(FOREIGN_PERMUTED);
    write_tokenizer("", "");
    struct esp_engine *engine = open_pair(folder_path(), ESP_MATCH_TOKENS);
    struct esp_session_options options = {.drafter = "ar"};
    generate(&plain, engine, prompt, &options, 40);
    options.drafter = "linear:K=2";
    generate(&drafted, engine, prompt, &options, 40);
    CHECK(same(&plain, &drafted));
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_get(session, "notice", note, sizeof note) == 0);
    CHECK(strstr(note, "another vocabulary"), "%s", note);
    esp_session_close(session);
    esp_engine_close(engine);
}

/* --------------------------------------------------------- drafts of text instead of tokens */

TEST(drafted_text_is_tokenized_again)
{
    CHECK(gain_kept(FOREIGN_SENTENCEPIECE, "respell", 0) >= 0.95);
    CHECK(gain_kept(FOREIGN_RARE_REPLACED, "respell", 0) >= 0.85);
}

/* When the buffers have become large enough for the text, an iteration must allocate
 * nothing. */
TEST(respelling_allocates_nothing)
{
    enum { WARM = 20, COUNTED = 40 };
    int32_t start[128];
    foreign_draft(FOREIGN_SENTENCEPIECE);
    struct esp_engine *engine = open_pair(folder_path(), ESP_MATCH_TEXT);
    struct esp_session *session;
    const struct esp_session_options options = {.drafter = "respell",
                                                .values = {.ignore_eos = true}};
    const int count = esp_tokenize(engine, prompt, strlen(prompt), start, 128);
    CHECK(esp_session_open(&session, engine, &options, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_prompt(session, start, count, err, sizeof err) == 0, "%s", err);
    esp_session_allow(session, 600);
    for (int i = 0, before = 0; i < WARM + COUNTED; i++) {
        before = allocations;
        CHECK(esp_session_step(session, err, sizeof err) > 0, "%s", err);
        CHECK(i < WARM || allocations == before, "iteration %d: %d allocations", i,
              allocations - before);
    }
    CHECK(!COUNTS_ALLOCATIONS || allocations > 0);
    esp_session_close(session);
    esp_engine_close(engine);
}

static bool opens(struct esp_engine *engine, const char *drafter, const char *verifier,
                  double temperature)
{
    struct esp_session *session;
    const struct esp_session_options options = {
        .drafter = drafter, .verifier = verifier, .values.temperature = temperature};
    if (esp_session_open(&session, engine, &options, err, sizeof err) < 0)
        return false;
    esp_session_close(session);
    return true;
}

/* If few tokens are shared, the draft writes text by default. Drafters that need the draft's
 * tokens, and verifiers that need q, must then be refused with a message that names them. */
TEST(with_draft_match_text_drafters_that_need_its_tokens_are_refused)
{
    char drafter[128];
    struct esp_session *session;
    foreign_draft(FOREIGN_PERMUTED);
    write_tokenizer("", "");
    struct esp_engine *engine = open_pair(folder_path(), ESP_MATCH_AUTO);
    CHECK(esp_session_open(&session, engine, NULL, err, sizeof err) == 0, "%s", err);
    CHECK(esp_session_get(session, "drafter", drafter, sizeof drafter) == 0);
    CHECK(strncmp(drafter, "respell", 7) == 0, "%s", drafter);
    esp_session_close(session);
    CHECK(opens(engine, "ar", NULL, 0) && opens(engine, "suffix", NULL, 0));
    CHECK(opens(engine, "respell", "nss", 1), "%s", err);
    CHECK(!opens(engine, "dynatree", NULL, 0) && strstr(err, "use respell"), "%s", err);
    CHECK(!opens(engine, "goodput", NULL, 0) && !opens(engine, "nde", NULL, 1));
    CHECK(!opens(engine, "respell", "swor", 1) && strstr(err, "not exact"), "%s", err);
    CHECK(!opens(engine, "respell", "traversal", 1));
    struct run plain, drafted;
    struct esp_session_options how = {.drafter = "ar"};
    generate(&plain, engine, prompt, &how, 40);
    how.drafter = "respell";
    generate(&drafted, engine, prompt, &how, 40);
    CHECK(same(&plain, &drafted));
    esp_engine_close(engine);
}

/* The draft must end its text at the same place as the target. */
TEST(drafted_text_works_in_a_window_and_in_a_full_context)
{
    foreign_draft(FOREIGN_SENTENCEPIECE);
    const struct esp_engine_options options = {
        .draft = folder_path(), .backend = "cpu", .draft_match = ESP_MATCH_TEXT, .context = 96};
    struct esp_engine *engine = open_pair(folder_path(), ESP_MATCH_TEXT);
    check_same_text(engine, "respell", 40, 300);
    esp_engine_close(engine);
    CHECK(esp_engine_open(&engine, &options, err, sizeof err) == 0, "%s", err);
    check_same_text(engine, "respell:K=32", 0, 300);
    esp_engine_close(engine);
}
