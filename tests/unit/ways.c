/* Tests the two ways to multiply by quantised weights on a processor with a tile unit. Tests
 * how one of them is chosen, how their times are measured, and how a file stores the times.
 *
 * The test makes up a processor. One way uses the tile unit, which tests/emu/tiles.h emulates.
 * The other way uses the best vector instructions of this machine. Both ways read activations
 * of 8 bits in the same form.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/quantize.h"
#include "engine/support/paths.h"
#include "engine/way_times.h"
#include "kernels/clock.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ways.h"
#include "tests/check.h"
#include "tests/random_model.h"

enum { BATCH = 20, VOCABULARY = 75 };

static const struct random_shape shape = {
    "mixed types", 2,     256,   4,    2,     24,   64, VOCABULARY, 24,
    ESP_Q8_0,      false, false, true, false, false};

static const struct esp_cpu_isa *vectors, *unit; /* the instruction sets of both ways */
static struct esp_cpu_isa both;
static struct esp_cpu_backend *cpu;
static struct random_model model;
static struct esp_weights *weights;

static int count[ESP_WAYS]; /* how many products each way has computed so far */

static void multiply(const struct esp_packed *w, int begin, int end, const struct esp_matmul *p)
{
    count[p->tiles ? ESP_WAY_TILES : ESP_WAY_VECTORS]++;
    (p->tiles ? unit : vectors)->matmul_blocks(w, begin, end, p);
}

static int slow_until[ESP_WAYS]; /* a way is slow up to this many rows */

/* Computes nothing. Takes a tenth of a millisecond if the way is slow, and almost no time
 * otherwise. */
static void pretend(const struct esp_packed *w, int begin, int end, const struct esp_matmul *p)
{
    const double until = esp_clock() + 1e-4;
    (void)w, (void)begin, (void)end;
    while (p->rows <= slow_until[p->tiles ? ESP_WAY_TILES : ESP_WAY_VECTORS] &&
           esp_clock() < until)
        ;
}

static const struct esp_cpu_isa *isa_named(const char *name)
{
    struct esp_backend *backend;
    if (esp_cpu_open(&backend, name, 1, NULL, 0) < 0)
        return NULL;
    const struct esp_cpu_isa *isa = ((struct esp_cpu_backend *)backend)->isa;
    esp_backend_cpu.close(backend);
    return isa;
}

/* Opens a backend on the made-up processor, and weights of all quantised types. If this machine
 * cannot run even the emulation, skips the test. */
static void open_processor(void)
{
    struct esp_backend *backend;
    char err[200] = "";
    unit = isa_named("tiles");
    vectors = esp_cpu_vectors();
    if (!unit)
        check_skip();
    both = *vectors;
    both.two_ways = true;
    both.cut = unit->cut;
    both.matmul_blocks = multiply;
    CHECK(esp_cpu_open(&backend, NULL, 2, err, sizeof err) == 0, "%s", err);
    cpu = (struct esp_cpu_backend *)backend;
    cpu->isa = &both;
    cpu->worth_a_thread = 0;
    snprintf(cpu->way_key, sizeof cpu->way_key, "put together");
    random_model_make(&model, &shape, 7);
    CHECK(backend->ops->weights_open(&weights, backend, &model.desc, NULL, NULL, err,
                                     sizeof err) == 0,
          "%s", err);
    count[0] = count[1] = 0;
}

static void close_processor(void)
{
    cpu->base.ops->weights_close(weights);
    cpu->base.ops->close(&cpu->base);
    random_model_free(&model);
}

/* Sets the times of both ways. Up to `rows` rows, way `first` is faster. With more rows, the
 * other way is faster. */
static void plant(struct esp_way_times *times, enum esp_way first, int rows)
{
    static const int sizes[ESP_WAY_SIZES] = {1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};
    double *at = &times->ns[0][0][0][0];
    for (size_t i = 0; i < sizeof times->ns / sizeof *at; i++) {
        const bool quick = (sizes[i / ESP_WAYS % ESP_WAY_SIZES] <= rows) == (i % 2 == first);
        at[i] = quick ? 10 : 20;
    }
}

TEST(the_faster_way_is_used)
{
    struct esp_way_times times = {0};
    CHECK(!esp_cpu_takes_tiles(&times, ESP_Q4_K, true, 1), "a guess: one row");
    CHECK(esp_cpu_takes_tiles(&times, ESP_Q4_K, true, 64), "a guess: many rows");
    plant(&times, ESP_WAY_VECTORS, 12);
    for (int rows = 1; rows < 300; rows++)
        CHECK(esp_cpu_takes_tiles(&times, ESP_Q6_K, false, rows) == (rows > 12), "%d rows",
              rows);
    times.ns[ESP_Q6_K][0][0][ESP_WAY_TILES] = 1;
    CHECK(esp_cpu_takes_tiles(&times, ESP_Q6_K, false, 1) &&
              !esp_cpu_takes_tiles(&times, ESP_Q6_K, false, 2) &&
              !esp_cpu_takes_tiles(&times, ESP_Q6_K, true, 1),
          "times depend on the type, on the bits of activations, and on the number of rows");
}

/* Measures the times of one type, with pretend() as the product. `vectors_until` and
 * `tiles_until` are the largest numbers of rows for which the ways are slow. */
static void time_slow(struct esp_way_times *times, int vectors_until, int tiles_until)
{
    struct esp_cpu_isa isa = *esp_cpu_vectors();
    isa.matmul_blocks = pretend;
    slow_until[ESP_WAY_VECTORS] = vectors_until;
    slow_until[ESP_WAY_TILES] = tiles_until;
    CHECK(esp_cpu_time_ways(times, &isa, ESP_Q4_K, true));
}

TEST(measured_times_decide_which_way_is_used)
{
    struct esp_way_times times = {0};
    time_slow(&times, 0, 6);
    for (int rows = 1; rows <= 6; rows++)
        CHECK(!esp_cpu_takes_tiles(&times, ESP_Q4_K, true, rows), "%d rows", rows);
    time_slow(&times, 64, 6);
    for (int rows = 7; rows <= 64; rows++)
        CHECK(esp_cpu_takes_tiles(&times, ESP_Q4_K, true, rows), "%d rows", rows);
    CHECK(times.ns[ESP_Q5_K][1][0][0] == 0 && times.ns[ESP_Q4_K][0][0][0] == 0,
          "no times were measured for other types");
}

/* Computes the logits of a batch of `rows` rows. */
static void run(int rows, float *out)
{
    const struct esp_backend_ops *ops = cpu->base.ops;
    struct esp_cache *cache;
    struct esp_rows *logits;
    int32_t tokens[BATCH], positions[BATCH];
    for (int i = 0; i < BATCH; i++) {
        tokens[i] = (5 * i + 1) % VOCABULARY;
        positions[i] = i;
    }
    CHECK(ops->cache_open(&cache, weights, 2 * BATCH, BATCH, NULL, 0) == 0);
    CHECK(ops->rows_open(&logits, &cpu->base, BATCH, VOCABULARY, NULL, 0) == 0);
    const struct esp_batch batch = {
        .rows = rows, .tokens = tokens, .positions = positions, .logits = logits};
    CHECK(ops->forward(cache, &batch) == 0);
    for (int i = 0; i < rows; i++)
        memcpy(out + i * VOCABULARY, esp_cpu_row(logits, i), VOCABULARY * sizeof *out);
    ops->rows_close(logits);
    ops->cache_close(cache);
}

/* The results must not depend on the way that is used, because another run may measure other
 * times and choose the other way. */
TEST(a_pass_uses_the_measured_way_and_gives_the_same_bits)
{
    static float want[BATCH * VOCABULARY], got[BATCH * VOCABULARY];
    open_processor();
    for (int rows = 1; rows <= BATCH; rows += rows < 3 ? 1 : 8)
        for (int until = 0; until <= 64; until += 8) {
            plant(&cpu->way_times, ESP_WAY_VECTORS, until);
            count[0] = count[1] = 0;
            run(rows, until == 0 ? want : got);
            CHECK((count[ESP_WAY_TILES] > 0) == (rows > until) &&
                      (count[ESP_WAY_VECTORS] > 0) == (rows <= until),
                  "%d rows, tiles are faster above %d rows: %d products used tiles, %d used "
                  "vectors",
                  rows, until, count[ESP_WAY_TILES], count[ESP_WAY_VECTORS]);
            CHECK(until == 0 ||
                      memcmp(want, got, (size_t)rows * VOCABULARY * sizeof *want) == 0,
                  "%d rows, tiles beyond %d", rows, until);
        }
    close_processor();
}

/* ------------------------------------------------------------------ the file */

static void in_fresh_home(char home[128])
{
    const char *base = getenv("TMPDIR");
    snprintf(home, 128, "%s/esp-ways-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(home));
    setenv("XDG_STATE_HOME", home, 1);
}

static void leave_home(const char *home)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r '%s'", home);
    CHECK(system(command) == 0);
    unsetenv("XDG_STATE_HOME");
}

/* Reads the processor's times from the file or measures them, as an engine does. Returns the
 * number of products that were computed to measure them. */
static int use(void)
{
    memset(&cpu->way_times, 0, sizeof cpu->way_times);
    count[0] = count[1] = 0;
    esp_way_times_use(&cpu->base, (struct esp_weights *const[]){weights, NULL}, 2);
    return count[0] + count[1];
}

/* Returns whether the times of every type in the model are known. */
static bool is_complete(void)
{
    const unsigned types = ((struct esp_cpu_weights *)weights)->block_types;
    for (int t = 0; t < ESP_DTYPE_COUNT; t++)
        for (int i = 0; i < ESP_WAY_SIZES * ESP_WAYS && types >> t & 1; i++) {
            const double ns = cpu->way_times.ns[t][1][i / ESP_WAYS][i % ESP_WAYS];
            if (!(ns > 0 && isfinite(ns)))
                return false;
        }
    return true;
}

TEST(times_are_measured_once_and_stored)
{
    char home[128], file[64];
    struct esp_way_times first;
    open_processor();
    in_fresh_home(home);
    CHECK(use() > 0 && is_complete());
    first = cpu->way_times;
    CHECK(use() == 0, "measured again: %d products", count[0] + count[1]);
    for (size_t i = 0; i < sizeof first.ns / sizeof(double); i++) {
        const double was = (&first.ns[0][0][0][0])[i];
        const double is = (&cpu->way_times.ns[0][0][0][0])[i];
        CHECK(fabs(is - was) <= 1e-9 * was, "%g was kept as %g", was, is);
    }
    snprintf(cpu->way_key, sizeof cpu->way_key, "another processor");
    CHECK(use() > 0, "the times of another processor were used");
    snprintf(cpu->way_key, sizeof cpu->way_key, "put together");
    CHECK(use() == 0, "this processor's times were replaced by another processor's times");
    esp_state_name(file, sizeof file, "products", "put together");
    CHECK(*file);
    *cpu->way_key = '\0';
    CHECK(use() == 0, "a processor with only one way was measured");
    leave_home(home);
    close_processor();
}

/* Opens an engine whose target is the built-in draft with quantised weights. */
TEST(an_engine_stores_times)
{
    char home[128], draft[PATH_MAX], file[160], err[300] = "", name[64] = "";
    struct esp_quantize_report report;
    struct esp_engine *engine;
    if (!isa_named("tiles"))
        check_skip();
    in_fresh_home(home);
    snprintf(file, sizeof file, "%s/q.gguf", home);
    CHECK(esp_find_data(draft, sizeof draft, "models", "fairytale-draft") == 0);
    CHECK(esp_model_quantize(draft, file, "q8_0", false, &report, NULL, NULL, err,
                             sizeof err) == 0,
          "%s", err);
    setenv("ESPALIER_ISA", "tiles", 1);
    const struct esp_engine_options options = {.target = file, .draft = "", .backend = "cpu"};
    const int status = esp_engine_open(&engine, &options, err, sizeof err);
    unsetenv("ESPALIER_ISA");
    CHECK(status == 0, "%s", err);
    esp_engine_close(engine);
    snprintf(file, sizeof file, "%s/espalier", home);
    CHECK(esp_list_folder(file, ".json", 0, name, sizeof name) == 0 &&
              strncmp(name, "products-", 9) == 0,
          "the file is '%s'", name);
    leave_home(home);
}

TEST(damaged_files_of_times_do_no_harm)
{
    static const char *const files[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"key\":3}",
        "{\"key\":\"put together\",\"Q4_K\":7}",
        "{\"key\":\"put together\",\"Q4_K\":[[],[[1,2],[3,4]]]}",
        "{\"key\":\"put "
        "together\",\"Q4_K\":[[],[[0,-1],[1e300,1e-400],[null,\"1\"],[],[[1],2]]]}",
        "{\"key\":\"put together\",\"Q4_K\":{\"a\":1},\"nothing\":[[[1,2]]],\"F32\":[[[1,2]]]}",
    };
    char home[128], file[64];
    open_processor();
    in_fresh_home(home);
    esp_state_name(file, sizeof file, "products", cpu->way_key);
    for (size_t i = 0; i < sizeof files / sizeof *files && (i < 2 || !check_quick()); i++) {
        CHECK(esp_state_write(file, files[i]) == ESP_OK);
        CHECK(use() > 0 && is_complete(), "%s", files[i]);
        CHECK(use() == 0, "this file was not replaced: %s", files[i]);
    }
    leave_home(home);
    close_processor();
}
