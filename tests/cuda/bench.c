/* bench.c - measures the CUDA backend and prints the tables of MEASURED.md in Markdown.
 *
 *     bench [--try] [FOLDER]
 *
 * The models are the built-in pair, enlarged (engine/model/inflate.h). The enlarged target
 * accepts as many draft tokens as a trained target would. Its passes take as long as the passes
 * of any model of the same size. The target is enlarged in memory. The draft has at most 120
 * MB; it is written to FOLDER (default: TMPDIR or /tmp) and removed at the end. --try uses
 * small sizes and few repetitions, to test this program.
 *
 * Times are medians of repetitions within this run, measured by the device. "Idle" is the
 * fraction of a generation's time in which the device executed no call.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/backends.h"
#include "engine/model/inflate.h"
#include "engine/support/paths.h"
#include "engine/session_parts.h"

enum { PREFIX = 256, MOST_ROWS = 257, FIRST_SLOT = 16, MOST_RUNS = 200 };

static const char *const text =
    "Once upon a time there was a king who had three sons. The two eldest were clever, but the "
    "youngest spoke little and was simple, and was called Simpleton. When the king grew old "
    "and "
    "weak and thought of his end, he did not know which of his sons should inherit the "
    "kingdom.";

static int runs = 50, new_tokens = 256, most_rows = MOST_ROWS;

static void stop(const char *what, const char *err)
{
    fprintf(stderr, "bench: %s: %s\n", what, err);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

/* -------------------------------------------------------- time in which the device is busy */

/* To time the engine's calls, the functions below replace the backend's operations. They record
 * a mark on the device before and after the work of each call. If a call waits for its results,
 * the second mark must come before the wait; otherwise the device would seem busy while the
 * host wakes up. So the results are deferred (ESP_LATER), and a second, small call fetches them
 * after the mark. This takes time, so speeds are measured while calls are not timed. */
static const struct esp_backend_ops *real;
static struct esp_backend *timed_backend;
static int slot = FIRST_SLOT;
static double busy_seconds, keep_seconds;
static bool keeps[ESP_MARKS];
static struct esp_backend_ops timed; /* `real`, but with the timed functions below */

static void flush(void)
{
    for (int i = FIRST_SLOT; i < slot; i += 2) {
        double seconds = real->between(timed_backend, i, i + 1);
        busy_seconds += seconds;
        keep_seconds += keeps[i] ? seconds : 0;
    }
    slot = FIRST_SLOT;
}

static void begin(void)
{
    if (slot + 2 > ESP_MARKS)
        flush();
    keeps[slot] = false;
    timed_backend->ops = real; /* calls that the timed call makes are not timed */
    real->mark(timed_backend, slot);
}

/* Ends a timed call. If `answers` is not NULL, fetches the deferred results of these rows. */
static int end(int status, struct esp_rows *answers)
{
    double value;
    real->mark(timed_backend, slot + 1);
    slot += 2;
    if (status == ESP_OK && answers)
        status = real->gather(answers, &(int32_t){0}, &(int32_t){0}, 1, &value, ESP_NOW);
    timed_backend->ops = &timed;
    return status;
}

#define TIMED(name, parameters, arguments, answers)                                            \
    static int timed_##name parameters                                                         \
    {                                                                                          \
        begin();                                                                               \
        return end(real->name arguments, answers);                                             \
    }

static int timed_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_batch later = *batch;
    struct esp_step step = batch->step ? *batch->step : (struct esp_step){0};
    const bool now = batch->step && step.when == ESP_NOW;
    step.when = ESP_LATER;
    later.step = batch->step ? &step : NULL;
    begin();
    return end(real->forward(cache, &later), now ? batch->logits : NULL);
}

TIMED(argmax,
      (struct esp_rows * rows, const int32_t *which, int count, int32_t *ids,
       enum esp_delivery when),
      (rows, which, count, ids, ESP_LATER), when == ESP_NOW ? rows : NULL)
TIMED(top_k,
      (struct esp_rows * rows, const int32_t *which, int count, int k, int32_t *ids,
       float *values, enum esp_delivery when),
      (rows, which, count, k, ids, values, ESP_LATER), when == ESP_NOW ? rows : NULL)
TIMED(softmax,
      (struct esp_rows * rows, const int32_t *which, int count,
       const struct esp_sampling *sampling),
      (rows, which, count, sampling), NULL)
TIMED(gather,
      (struct esp_rows * rows, const int32_t *which, const int32_t *tokens, int count,
       double *values, enum esp_delivery when),
      (rows, which, tokens, count, values, ESP_LATER), when == ESP_NOW ? rows : NULL)
TIMED(sample,
      (struct esp_rows * rows, const int32_t *which, const double *u, int count, int draws,
       const int32_t *excluded, int per, int32_t *tokens, double *values,
       enum esp_delivery when),
      (rows, which, u, count, draws, excluded, per, tokens, values, ESP_LATER),
      when == ESP_NOW ? rows : NULL)

static int timed_keep(struct esp_cache *cache, int first, const int32_t *which, int count)
{
    begin();
    keeps[slot] = true;
    return end(real->keep(cache, first, which, count), NULL);
}

/* Starts or stops timing the engine's calls. */
static void time_calls(struct esp_engine *engine, bool on)
{
    if (!on) {
        engine->backend->ops = real;
        return;
    }
    real = engine->backend->ops;
    timed_backend = engine->backend;
    timed = *real;
    timed.forward = timed_forward;
    timed.argmax = timed_argmax;
    timed.top_k = timed_top_k;
    timed.softmax = timed_softmax;
    timed.gather = timed_gather;
    timed.sample = timed_sample;
    timed.keep = timed_keep;
    engine->backend->ops = &timed;
    busy_seconds = keep_seconds = 0;
    slot = FIRST_SLOT;
}

/* ------------------------------------------------------------------ opening */

/* Describes a pair of models. The target is the built-in target, `width` times as wide and
 * with `layers` layers (0: as many as the built-in target has). The draft is in a folder
 * (NULL: the built-in draft). */
struct pair {
    int width, layers;
    const char *draft;
};

static struct esp_engine *open_engine(const struct pair *pair, bool exact)
{
    struct esp_engine *engine;
    char err[512];
    struct esp_engine_options options = {.draft = pair->draft,
                                         .backend = "cuda",
                                         .exact = exact,
                                         .width = pair->width,
                                         .layers = pair->layers};
    if (esp_engine_open(&engine, &options, err, sizeof err) < 0)
        stop("the models", err);
    return engine;
}

static struct esp_session *open_session(struct esp_engine *engine, const char *drafter)
{
    struct esp_session *session;
    char err[512];
    int32_t prompt[PREFIX];
    struct esp_session_options options = {.drafter = drafter};
    int count = esp_tokenize(engine, text, strlen(text), prompt, PREFIX);
    if (count < 1 || count > PREFIX)
        stop("the prompt", "it does not fit into the context");
    if (esp_session_open(&session, engine, &options, err, sizeof err) < 0)
        stop(drafter, err);
    for (int i = count; i < PREFIX && !strcmp(drafter, "ar"); i++)
        prompt[i] = prompt[i % count];
    if (esp_session_prompt(session, prompt, strcmp(drafter, "ar") ? count : PREFIX, err,
                           sizeof err) < 0)
        stop(drafter, err);
    return session;
}

/* ------------------------------------------------------------------ one pass */

/* Returns how many seconds a target pass over a tree of `rows` nodes takes. This includes the
 * choice of a token at each node. The parent of node i is node (i - 1) / 2. */
static double pass_seconds(struct esp_session *s, int rows)
{
    static uint64_t mask[MOST_ROWS][(MOST_ROWS + 63) / 64];
    static int32_t tokens[MOST_ROWS], positions[MOST_ROWS], which[MOST_ROWS], ids[MOST_ROWS];
    static double seconds[MOST_RUNS];
    enum { WORDS = (MOST_ROWS + 63) / 64 };
    memset(mask, 0, sizeof mask);
    for (int i = 0; i < rows; i++) {
        which[i] = i;
        tokens[i] = (i * 37 + 11) % s->p->vocabulary;
        positions[i] = i == 0 ? s->target.length : positions[(i - 1) / 2] + 1;
        if (i > 0)
            memcpy(mask[i], mask[(i - 1) / 2], sizeof mask[i]);
        mask[i][i / 64] |= (uint64_t)1 << i % 64;
    }
    struct esp_batch batch = {.rows = rows,
                              .tokens = tokens,
                              .positions = positions,
                              .first = s->target.length,
                              .prefix = s->target.length,
                              .mask = mask[0],
                              .mask_words = WORDS,
                              .logits = s->p};
    for (int i = -3; i < runs; i++) {
        s->ops->mark(s->engine->backend, 0);
        if (s->ops->forward(s->target.cache, &batch) < 0 ||
            s->ops->argmax(s->p, which, rows, ids, ESP_NOW) < 0)
            stop("a pass", esp_session_failure(s, ESP_E_DEVICE));
        s->ops->mark(s->engine->backend, 1);
        if (i >= 0)
            seconds[i] = s->ops->between(s->engine->backend, 0, 1);
    }
    return median(seconds, runs);
}

/* Returns how many bytes one pass must read: all weights except the embedding. A pass reads
 * only a few rows of the embedding. */
static double pass_bytes(const struct esp_engine *e)
{
    const struct esp_model_desc *d = &e->target->desc;
    double bytes = (double)e->target_weights->bytes;
    if (d->head.data != d->embedding.data)
        bytes -= 2.0 * d->vocabulary * d->hidden;
    return bytes;
}

/* Returns the size of the session's rows of logits, divided by the size of all weights and KV
 * caches. */
static double rows_share(const struct esp_engine *engine, const struct esp_session *session)
{
    const struct esp_backend_ops *ops = engine->backend->ops;
    double plain = (double)engine->target_weights->bytes + (double)session->target.cache->bytes;
    double drafting =
        (double)engine->draft_weights->bytes + (double)session->draft_cache.cache->bytes;
    return 2.0 * (double)ops->rows_need(session->p->capacity, session->p->vocabulary) /
           (plain + drafting);
}

static void print_passes(const struct pair *pair, double rate)
{
    static const int rows[] = {1, 2, 4, 8, 16, 17, 32, 64, 128, 256};
    double share = 0;
    for (int exact = 0; exact < 2; exact++) {
        struct esp_engine *engine = open_engine(pair, exact);
        struct esp_session *session = open_session(engine, "ar");
        double bytes = pass_bytes(engine), one = 0;
        printf("\n| rows of a pass%s | ms | relative to one row | GB/s | of the read rate |\n"
               "|---|---|---|---|---|\n",
               exact ? ", exact" : "");
        for (size_t i = 0; i < sizeof rows / sizeof *rows && rows[i] <= most_rows; i++) {
            double seconds = pass_seconds(session, rows[i]);
            one = i == 0 ? seconds : one;
            printf("| %d | %.3f | %.2f | %.0f | %.0f %% |\n", rows[i], 1e3 * seconds,
                   seconds / one, bytes / seconds / 1e9, 100 * bytes / seconds / rate);
        }
        share = rows_share(engine, session);
        esp_session_close(session);
        esp_engine_close(engine);
    }
    printf("\nMemory beyond weights and caches (rows of logits): %.1f %%.\n", 100 * share);
}

/* ------------------------------------------------------------------ speculation */

static double draft_step(struct esp_session *s)
{
    static double seconds[MOST_RUNS];
    int32_t token = 1, position = s->draft_cache.length, ids[4];
    float values[4];
    const struct esp_step step = {{.temperature = 1, .top_p = 1}, 4, ids, values, ESP_NOW};
    struct esp_batch batch = {.rows = 1,
                              .tokens = &token,
                              .positions = &position,
                              .first = s->draft_cache.length,
                              .prefix = s->draft_cache.length,
                              .logits = s->q,
                              .step = &step};
    for (int i = -3; i < runs; i++) {
        s->ops->mark(s->engine->backend, 0);
        if (s->ops->forward(s->draft_cache.cache, &batch) < 0)
            stop("a draft step", esp_session_failure(s, ESP_E_DEVICE));
        s->ops->mark(s->engine->backend, 1);
        if (i >= 0)
            seconds[i] = s->ops->between(s->engine->backend, 0, 1);
    }
    return median(seconds, runs);
}

/* Generates a text, and returns how many seconds that took. */
static double write_text(struct esp_session *session, const char *name)
{
    char err[512];
    int status;
    esp_session_allow(session, new_tokens);
    double start = esp_clock();
    while ((status = esp_session_step(session, err, sizeof err)) > 0)
        continue;
    if (status < 0)
        stop(name, err);
    return esp_clock() - start;
}

static void print_drafter(struct esp_engine *engine, const char *name, const char *spec,
                          double *plain)
{
    struct esp_stats stats;
    struct esp_session *session = open_session(engine, spec);
    double step = engine->draft ? draft_step(session) : 0;
    double wall = write_text(session, name);
    esp_session_stats(session, &stats);
    esp_session_close(session);
    double rate = stats.generated_tokens / wall;
    if (*plain == 0)
        *plain = rate;
    double passes = (double)stats.draft_passes;
    double drafting = passes > 0 ? stats.stage_seconds[ESP_STAGE_DRAFT] / passes / step : 0;
    double host = stats.stage_seconds[ESP_STAGE_FLATTEN] + stats.stage_seconds[ESP_STAGE_ADAPT];

    time_calls(engine, true);
    session = open_session(engine, spec);
    flush(); /* waits for the prompt's passes */
    busy_seconds = keep_seconds = 0;
    double timed_wall = write_text(session, name);
    flush();
    esp_session_close(session);
    time_calls(engine, false);
    printf("| %s | %.1f | %.2f | %.2f | %.3f | %.1f | %.2f | %.1f %% | %.1f %% | %.2f %% |\n",
           name, rate, rate / *plain, stats.tokens_per_iteration, stats.acceptance_rate,
           (double)stats.drafted_nodes / stats.iterations, drafting, 100 * host / wall,
           100 * (1 - busy_seconds / timed_wall), 100 * keep_seconds / timed_wall);
}

static void print_speculation(const struct pair *pair)
{
    struct esp_engine *engine = open_engine(pair, false);
    const char *preset = esp_engine_preset(engine, false);
    const char *const specs[][2] = {
        {"ar", "ar"},
        {"goodput", "goodput"},
        {"linear", "linear"},
        {"dynatree (preset)", preset ? preset : "dynatree"},
        {"dynatree", "dynatree"},
        {"fixed", "fixed"},
        {"eagle2", "eagle2"},
        {"dyspec", "dyspec"},
        {"sequoia", "sequoia:learn=off"},
        {"salf", "salf"},
    };
    double plain = 0;
    printf("\n| drafter | tokens/s | speedup over ar | tokens/iteration | accepted/drafted | "
           "nodes | draft "
           "pass / single step | flatten, adapt | idle | keep |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        print_drafter(engine, specs[i][0], specs[i][1], &plain);
    esp_engine_close(engine);
}

/* ------------------------------------------------------------------ models */

static void remove_folder(const char *folder)
{
    char path[600];
    DIR *all = opendir(folder);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        snprintf(path, sizeof path, "%s/%.255s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (all)
        closedir(all);
    rmdir(folder);
}

static void make(const char *name, const char *to, int width, int layers)
{
    char from[512], err[512] = "it was not found";
    remove_folder(to);
    if (esp_find_data(from, sizeof from, "models", name) < 0 ||
        esp_model_inflate(from, to, width, layers, err, sizeof err) < 0)
        stop(name, err);
}

/* Returns the free memory of the device, in GB. */
static double memory_free(const struct esp_backend *backend)
{
    return (double)backend->ops->memory_free(backend) / 1e9;
}

static void print_pair(const struct pair *pair, double before, double rate)
{
    struct esp_model_info t, d;
    struct esp_engine *engine = open_engine(pair, false);
    struct esp_session *session = open_session(engine, "linear");
    esp_engine_target(engine, &t);
    esp_engine_draft(engine, &d);
    printf("\n## Target %.2fB (%d layers, hidden %d), draft %.1fM (%d layers, hidden %d), %s, "
           "loaded in %.1f s\n",
           (double)t.parameters / 1e9, t.layers, t.hidden, (double)d.parameters / 1e6, d.layers,
           d.hidden, t.dtype, esp_engine_load_seconds(engine));
    printf("Memory free: %.2f GB before, %.2f GB with models, caches and graphs.\n", before,
           memory_free(engine->backend));
    esp_session_close(session);
    esp_engine_close(engine);
    print_passes(pair, rate);
    print_speculation(pair);
    fflush(stdout);
}

/* Prints and returns the read rate of the device. Writes to *before how much memory is free
 * while no model is loaded. */
static double print_device(bool small, double *before)
{
    struct esp_backend *backend;
    char err[512] = "", date[32];
    time_t now = time(NULL);
    if (esp_backend_open(&backend, "cuda", 0, 0, err, sizeof err) < 0)
        stop("the device", err);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    *before = memory_free(backend);
    double rate = backend->ops->read_rate(backend, small ? 1 << 20 : (size_t)4 << 30);
    printf("# %s, %s\n\nRead rate: %.0f GB/s. Medians of %d; text of %d tokens; greedy.\n",
           date, backend->ops->device(backend), rate / 1e9, runs, PREFIX);
    backend->ops->close(backend);
    return rate;
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--try") == 0;
    const char *temporary = getenv("TMPDIR");
    const char *folder = argc > 1 + small          ? argv[1 + small]
                         : temporary && *temporary ? temporary
                                                   : "/tmp";
    /* Each entry: width and layers of the target, width and layers of the draft. */
    static const int sizes[][4] = {{8, 32, 4, 6}, {16, 32, 8, 8}}, small_size[] = {1, 6, 2, 2};
    char draft[400];
    double before;
    setvbuf(stdout, NULL, _IOLBF, 0); /* results are printed even if a later step fails */
    if (small) {
        runs = 2;
        new_tokens = 6;
        most_rows = 8;
    }
    const double rate = print_device(small, &before);
    if (!small)
        print_pair(&(struct pair){0}, before, rate);
    for (size_t i = 0; i < (small ? 1 : sizeof sizes / sizeof *sizes); i++) {
        const int *size = small ? small_size : sizes[i];
        snprintf(draft, sizeof draft, "%s/espalier-bench-draft-%d", folder, (int)getpid());
        make("fairytale-draft", draft, size[2], size[3]);
        print_pair(&(struct pair){size[0], size[1], draft}, before, rate);
        remove_folder(draft);
    }
    return 0;
}
