/* Tests that greedy decoding on the built-in pair gives identical texts: after each of 50
 * prompts, every drafter must write the same 256 tokens as plain decoding. With cache=rebuild,
 * only every fifth prompt is tested, because rebuilding depends only on the loop, not on the
 * prompt. Each instruction set is tested with two prompts. The CUDA backend must give identical
 * texts in exact mode. On a GPU (ESPALIER_CUDA_PLUGIN names its plugin), it is tested with all
 * prompts. On the emulator, it is tested with one prompt and few tokens.
 *
 * The short form has fewer tokens, and six prompts, or two prompts under sanitizers.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/drafters/drafter.h"
#include "engine/engine.h"
#include "tests/each_backend.h"
#include "tests/folder.h"
#include "tests/foreign.h"

enum { PROMPTS = 50, TOKENS = 256, LONGEST = 512, WORKERS = 2, FIFTH = 5 };
#ifdef __SANITIZE_ADDRESS__
enum { QUICK_PROMPTS = 2, QUICK_TOKENS = TOKENS / 16 };
#else
enum { QUICK_PROMPTS = 6, QUICK_TOKENS = TOKENS / 4 };
#endif
enum { EMULATED_TOKENS = 6, EMULATED_NODES = 24 };

/* Two workers run at the same time. Each has an engine with one thread, and continues every
 * second prompt. */
static struct esp_engine *engines[WORKERS];
static int prompts, new_tokens, workers;
static int32_t prompt[PROMPTS][LONGEST];
static int prompt_length[PROMPTS];
static int32_t plain[PROMPTS][TOKENS];
static int plain_length[PROMPTS];

static void read_prompts(void)
{
    char line[4096];
    prompts = 0;
    FILE *file = fopen(check_path("prompts.txt"), "r");
    CHECK(file, "%s", check_path("prompts.txt"));
    while (prompts < PROMPTS && fgets(line, sizeof line, file)) {
        size_t n = strcspn(line, "\n");
        int count = esp_tokenize(engines[0], line, n, prompt[prompts], LONGEST);
        CHECK(count > 0 && count <= LONGEST, "prompt %d has %d tokens", prompts, count);
        prompt_length[prompts++] = count;
    }
    fclose(file);
    CHECK(prompts == PROMPTS);
}

/* Continues prompt `i`. Returns the number of new tokens, or a negative status with a message
 * in err. */
static int generate(struct esp_session *session, int i, int32_t *tokens, char *err,
                    size_t errlen)
{
    int length;
    esp_session_clear(session);
    int status = esp_session_prompt(session, prompt[i], prompt_length[i], err, errlen);
    esp_session_allow(session, new_tokens);
    while (status >= 0 && (status = esp_session_step(session, err, errlen)) > 0)
        continue;
    if (status < 0)
        return status;
    const int32_t *text = esp_session_tokens(session, &length);
    length -= prompt_length[i];
    memcpy(tokens, text + prompt_length[i], (size_t)length * sizeof *tokens);
    return length;
}

/* Continues the worker's prompts with the drafter `spec`. With every = 5, for example, it
 * continues only every fifth prompt. If `fill` is set, stores the texts in plain[]. Otherwise
 * compares the texts with plain[]. */
static void work(int worker, const char *spec, int every, bool fill, char *err, size_t errlen)
{
    struct esp_session *session;
    struct esp_session_options options = {.drafter = spec};
    int32_t tokens[TOKENS];
    if (esp_session_open(&session, engines[worker], &options, err, errlen) < 0)
        return;
    for (int i = worker; i < prompts && !*err; i += every * workers) {
        int same = 0, length = generate(session, i, fill ? plain[i] : tokens, err, errlen);
        if (fill)
            plain_length[i] = length;
        if (fill || length < 0)
            continue;
        while (same < length && same < plain_length[i] && tokens[same] == plain[i][same])
            same++;
        if (same < length || length != plain_length[i])
            snprintf(err, errlen, "prompt %d differs from plain decoding at token %d", i, same);
    }
    esp_session_close(session);
}

struct job {
    int worker;
    const char *spec;
    int every;
    bool fill;
    char *err;
    size_t errlen;
};

static void *work_as_thread(void *arg)
{
    const struct job *job = arg;
    work(job->worker, job->spec, job->every, job->fill, job->err, job->errlen);
    return NULL;
}

static void run(const char *spec, int every, bool fill)
{
    char err[WORKERS][256] = {"", ""};
    struct job jobs[WORKERS];
    pthread_t threads[WORKERS];
    for (int worker = 0; worker < workers; worker++) {
        jobs[worker] = (struct job){worker, spec, every, fill, err[worker], sizeof err[worker]};
        CHECK(pthread_create(&threads[worker], NULL, work_as_thread, &jobs[worker]) == 0);
    }
    for (int worker = 0; worker < workers; worker++)
        pthread_join(threads[worker], NULL);
    for (int worker = 0; worker < workers; worker++)
        CHECK(!*err[worker], "%s: %s", spec, err[worker]);
}

static void open_engines(const struct esp_engine_options *options, int count)
{
    char err[256] = "";
    workers = count;
    for (int i = 0; i < workers; i++)
        CHECK(esp_engine_open(&engines[i], options, err, sizeof err) == 0, "%s", err);
    read_prompts();
    new_tokens = TOKENS;
}

static void close_engines(void)
{
    for (int i = 0; i < workers; i++)
        esp_engine_close(engines[i]);
}

/* Returns whether drafter number `i` uses a draft model, and can use any draft model. */
static bool goes_with_any(int i)
{
    return !esp_drafters[i]->without_model && !esp_drafters[i]->chooser;
}

/* Returns whether `spec` is only a drafter's name. Then the test has already run this drafter,
 * because without parameters it uses its defaults. */
static bool is_drafter(const char *spec)
{
    int i = 0;
    while (esp_drafters[i] && strcmp(esp_drafters[i]->name, spec) != 0)
        i++;
    return esp_drafters[i] != NULL;
}

/* Runs plain decoding once. Every `step`-th drafter must write the same texts as plain
 * decoding. If `step` is 1, some drafters are also tested with other parameters. */
static void check_drafters(int step)
{
    run("ar", 1, true);
    for (int i = 0; i < prompts; i++)
        CHECK(plain_length[i] > 0 && plain_length[i] <= TOKENS);
    for (int i = 0; esp_drafters[i]; i++) {
        char spec[64];
        struct esp_params params;
        if (i % step != 0)
            continue;
        run(esp_drafters[i]->name, 1, false);
        esp_params_init(&params, esp_drafters[i]->params);
        snprintf(spec, sizeof spec, "%s:cache=rebuild", esp_drafters[i]->name);
        if (esp_params_find(&params, "cache") >= 0)
            run(spec, FIFTH, false);
    }
    if (step > 1)
        return;
    run("fixed:root=draft,cache=rebuild", FIFTH, false);
    run("fixed:prune=stop", FIFTH, false);
    run("dynatree:root=draft,cache=rebuild", FIFTH, false);
    run("dynatree:draws=swor", FIFTH, false);
    run("dynatree:history=price,prune=stop", FIFTH, false);
    if (!is_drafter(esp_engine_preset(engines[0], false)))
        run(esp_engine_preset(engines[0], false), 1, false);
}

TEST(every_drafter_equals_plain_decoding)
{
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1};
    open_engines(&options, WORKERS);
    if (check_quick()) {
        prompts = QUICK_PROMPTS;
        new_tokens = QUICK_TOKENS;
    }
    check_drafters(1);
    close_engines();
}

/* Tests the drafters that can use any draft model. Uses few prompts, because a pass of the
 * draft model in `options` can take as long as a pass of the target. */
static void check_any_draft(const struct esp_engine_options *options)
{
    open_engines(options, WORKERS);
    prompts = check_quick() ? QUICK_PROMPTS / 2 : PROMPTS / FIFTH;
    new_tokens = check_quick() ? QUICK_TOKENS : TOKENS / 4;
    run("ar", 1, true);
    for (int i = 0; esp_drafters[i]; i++)
        if (goes_with_any(i))
            run(esp_drafters[i]->name, 1, false);
    run("linear:cache=rebuild", 1, false);
    close_engines();
}

TEST(every_drafter_equals_plain_decoding_with_the_targets_own_copy)
{
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1, .draft = "self"};
    check_any_draft(&options);
}

/* The draft spells a fifth of the target's tokens with several of its own tokens. */
TEST(every_drafter_equals_plain_decoding_with_a_draft_of_another_vocabulary)
{
    static const enum foreign_kind kinds[] = {FOREIGN_EACH_FIFTH_REPLACED,
                                              FOREIGN_SENTENCEPIECE};
    for (int kind = 0; kind < 2; kind++) {
        foreign_draft(kinds[kind]);
        const struct esp_engine_options options = {.backend = "cpu",
                                                   .threads = 1,
                                                   .draft = folder_path(),
                                                   .draft_match = ESP_MATCH_TOKENS};
        check_any_draft(&options);
    }
}

/* Each instruction set has separate code for matrix products, and AMX adds in a different
 * order. */
EACH_ISA(every_drafter_equals_plain_decoding_with_each_instruction_set)
{
    const struct esp_engine_options options = {.backend = "cpu", .threads = 1};
    open_engines(&options, WORKERS);
    prompts = 2;
    new_tokens = TOKENS / 16;
    printf("    on %s\n", esp_engine_device(engines[0]));
    /* A third of the drafters is enough: an earlier test runs all of them on the best
     * instruction set. */
    check_drafters(3);
    close_engines();
}

TEST(every_drafter_equals_plain_decoding_on_cuda)
{
    bool real = cuda_is_real();
    const struct esp_engine_options options = {
        .backend = "cuda", .exact = true, .max_nodes = real ? 0 : EMULATED_NODES};
    open_engines(&options, 1);
    printf("    on %s\n", esp_engine_device(engines[0]));
    if (!real) {
        prompts = 1;
        new_tokens = check_quick() ? EMULATED_TOKENS / 2 : EMULATED_TOKENS;
    }
    /* The emulator is slow, so the short form runs a fifth of the drafters, and the long form
     * half of them. (cuda_variants compares every kernel on the emulator with plain decoding.)
     * */
    check_drafters(real ? 1 : check_quick() ? 5 : 2);
    close_engines();
}
