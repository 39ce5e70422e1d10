/* ranks.c - tests models that are divided among processes. Results must be bit-identical for
 * any number of ranks and any plan. If a process ends, hangs or has a file that differs, there
 * must be an error message.
 *
 * The other ranks are processes of this test program (tests/check.c calls esp_is_rank()).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/model/inflate.h"
#include "kernels/clock.h"
#include "kernels/cpu/orders.h"
#include "kernels/model_desc.h"
#include "kernels/ranks/desc_wire.h"
#include "kernels/ranks/ranks.h"
#include "tests/check.h"
#include "tests/divided.h"

static struct esp_backend *open_backend(const struct division *d)
{
    struct esp_backend *backend;
    char err[512] = "";
    CHECK(esp_cpu_open(&backend, NULL, d->threads, err, sizeof err) == 0, "%s", err);
    CHECK(divided_start(backend, d, err, sizeof err) == 0, "%s", err);
    return backend;
}

/* ------------------------------------------------------------------ bit-identical results */

static const char *const models[] = {"logits/llama-gqa",
                                     "logits/llama-mqa-tied",
                                     "logits/llama-bf16",
                                     "logits/qwen3",
                                     "logits/qwen3-moe-some",
                                     "logits/olmo2",
                                     "logits/gemma2",
                                     "logits/gemma3",
                                     "logits/gpt-oss",
                                     "logits/neox-parallel",
                                     "logits/gpt2-f16",
                                     "logits/granite",
                                     "logits/phi3-long",
                                     "logits/smollm3-window",
                                     "logits/llama-head-dim",
                                     "logits/lfm2",
                                     "logits/qwen3-5",
                                     "logits/qwen3-5-moe",
                                     "logits/granite-hybrid",
                                     "logits/granite-hybrid-moe",
                                     "logits/qwen3-next",
                                     "logits/nemotron-h",
                                     "logits/nemotron-h-moe",
                                     "logits/lfm2-moe",
                                     "gguf/qwen3-moe.gguf",
                                     "gguf/mixed.gguf",
                                     "gguf/llama-gqa-00001-of-00002.gguf"};
enum { MODELS = sizeof models / sizeof *models };

static const struct division divisions[] = {
    {.ranks = 2, .threads = 1},
    {.ranks = 3, .threads = 1},
    {.ranks = 2, .threads = 2, .share = {3, 1}},
    {.ranks = 2, .threads = 1, .by_layers = true},
    {.ranks = 5, .threads = 1},
    {.ranks = 2, .threads = 1, .whole = OUTPUT},
    {.ranks = 2, .threads = 1, .whole = DOWN | GATES},
    {.ranks = 2, .threads = 1, .whole = MLP | STATES},
    {.ranks = 2, .threads = 1, .whole = ATTENTION},
    {.ranks = 2, .threads = 1, .whole = HEAD},
    {.ranks = 3, .threads = 1, .share = {1, 5, 2}, .whole = OUTPUT | HEAD},
    {.ranks = 3, .threads = 1, .share = {1, 2, 1}, .by_layers = true}};
enum { DIVISIONS = sizeof divisions / sizeof *divisions };

TEST(any_division_gives_the_same_bits)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    static const struct esp_window window = {.sinks = 2, .recent = 5};
    struct esp_model *model[MODELS];
    struct divided_results expected[MODELS];
    struct esp_backend *backend = open_backend(&alone);
    for (int i = 0; i < MODELS; i++) {
        model[i] = divided_model(models[i]);
        expected[i] = divided_compute(backend, &model[i]->desc, i % 2 ? &window : NULL);
    }
    backend->ops->close(backend);
    for (int k = 0, layers = 0; k < (check_quick() ? 4 : DIVISIONS); k++) {
        backend = open_backend(&divisions[k]);
        for (int i = 0; i < MODELS; i++) {
            if (divisions[k].by_layers && model[i]->desc.layers <= divisions[k].ranks)
                continue;
            layers += divisions[k].by_layers;
            divided_compare(backend, &model[i]->desc, i % 2 ? &window : NULL, &expected[i],
                            models[i], &divisions[k]);
        }
        CHECK(!divisions[k].by_layers || layers > 0);
        backend->ops->close(backend);
    }
    for (int i = 0; i < MODELS; i++) {
        esp_model_close(model[i]);
        free(expected[i].values);
    }
}

/* Changes the type of all matrices of the layers to `dtype`. They are converted while they are
 * read. */
static void quantise(struct esp_layer *layer, const struct esp_model_desc *desc,
                     struct esp_tensor_file *source, enum esp_dtype dtype)
{
    for (int i = 0; i < desc->layers; i++) {
        const struct esp_layer *from = &desc->layer[i];
        const struct esp_tensor *matrix[] = {&from->query,  &from->key,  &from->value,
                                             &from->output, &from->gate, &from->up,
                                             &from->down};
        struct esp_tensor *to[] = {&layer[i].query,  &layer[i].key,  &layer[i].value,
                                   &layer[i].output, &layer[i].gate, &layer[i].up,
                                   &layer[i].down};
        layer[i] = *from;
        for (size_t k = 0; k < sizeof to / sizeof *to; k++)
            if (matrix[k]->columns % esp_dtype_block(dtype) == 0)
                *to[k] = (struct esp_tensor){.data = matrix[k]->data,
                                             .dtype = dtype,
                                             .rows = matrix[k]->rows,
                                             .columns = matrix[k]->columns,
                                             .block = matrix[k]->rows,
                                             .stride = matrix[k]->rows,
                                             .source = source,
                                             .original = matrix[k]};
    }
}

TEST(every_quantised_type_gives_the_same_bits)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_tensor_file source = {.fd = -1};
    struct esp_backend *one = open_backend(&alone), *many = open_backend(&three);
    struct esp_model *model = divided_model("logits/llama-gqa");
    char err[300] = "";
    int types = 0;
    const int wide = 256 / model->desc.hidden > 1 ? 256 / model->desc.hidden : 1;
    CHECK(esp_model_enlarge(model, wide, 0, err, sizeof err) == 0, "%s", err);
    struct esp_layer *layer = calloc((size_t)model->desc.layers, sizeof *layer);
    for (int t = 0; t < ESP_DTYPE_COUNT; t++) {
        struct esp_model_desc desc = model->desc;
        if (!esp_dtype_quantised((enum esp_dtype)t) ||
            desc.hidden % esp_dtype_block((enum esp_dtype)t) != 0)
            continue;
        quantise(layer, &model->desc, &source, (enum esp_dtype)t);
        desc.layer = layer;
        struct divided_results e = divided_compute(one, &desc, NULL);
        divided_compare(many, &desc, NULL, &e, esp_dtype_name((enum esp_dtype)t), &three);
        free(e.values);
        types++;
    }
    CHECK(types >= 8, "%d types", types);
    free(layer);
    esp_model_close(model);
    one->ops->close(one);
    many->ops->close(many);
}

/* Models that tests make in memory must be sent to the ranks, too. */
TEST(tensors_in_memory_reach_the_ranks)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_backend *one = open_backend(&alone), *many = open_backend(&two);
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct divided_results e = divided_compute(one, &model->desc, NULL);
    struct esp_tensor *t = &model->desc.layer[0].up;
    char *rows = malloc((size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns));
    esp_tensor_copy_rows(t, 0, t->rows, rows);
    *t = (struct esp_tensor){.data = rows,
                             .dtype = t->dtype,
                             .rows = t->rows,
                             .columns = t->columns,
                             .block = t->rows,
                             .stride = t->rows};
    divided_compare(many, &model->desc, NULL, &e, "in memory", &two);
    free(rows);
    free(e.values);
    esp_model_close(model);
    one->ops->close(one);
    many->ops->close(many);
}

TEST(an_own_copy_is_divided_with_its_target)
{
    const struct division alone = {.ranks = 1, .threads = 1};
    const struct division two = {.ranks = 2, .threads = 1, .share = {2, 1}, .whole = OUTPUT};
    struct esp_backend *one = open_backend(&alone), *many = open_backend(&two);
    divided_compare_copy(one, many);
    one->ops->close(one);
    many->ops->close(many);
}

/* ------------------------------------------------------------------ failures */

/* Returns whether all child processes end within a few seconds. */
static bool no_child_is_left(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < 300 && divided_child(0) > 0; i++)
        nanosleep(&moment, NULL);
    return divided_child(0) == 0;
}

static void check_failed(struct esp_backend *backend, struct divided *m, const char *says,
                         double most)
{
    const double start = esp_clock();
    CHECK(divided_run_chain(m, PREFIX, 1, true) == ESP_E_DEVICE);
    CHECK(esp_clock() - start < most, "%.1f s", esp_clock() - start);
    CHECK(strstr(backend->ops->failure(backend), says), "%s", backend->ops->failure(backend));
    CHECK(divided_run_chain(m, PREFIX, 1, true) == ESP_E_DEVICE);
    CHECK(no_child_is_left());
    divided_close_on(m);
    backend->ops->close(backend);
}

TEST(a_killed_rank_ends_the_pass_with_an_error_message)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_model *model = divided_model("logits/llama-gqa");
    for (int which = 0; which < 2; which++) {
        struct esp_backend *backend = open_backend(&three);
        struct divided m;
        divided_open_on(&m, backend, &model->desc);
        CHECK(divided_run_chain(&m, 0, PREFIX, true) == 0);
        CHECK(divided_child(which) > 0 && kill(divided_child(which), SIGKILL) == 0);
        check_failed(backend, &m, "of 3 ended (signal 9)", 1.5);
    }
    esp_model_close(model);
}

TEST(a_rank_that_hangs_is_ended)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct divided m;
    setenv("ESPALIER_RANKS_PATIENCE", "0.5", 1);
    struct esp_backend *backend = open_backend(&two);
    unsetenv("ESPALIER_RANKS_PATIENCE");
    divided_open_on(&m, backend, &model->desc);
    CHECK(divided_run_chain(&m, 0, PREFIX, true) == 0);
    CHECK(kill(divided_child(0), SIGSTOP) == 0);
    check_failed(backend, &m, "has not answered", 2.5);
    esp_model_close(model);
}

static int asked;

/* Is called while a rank does not answer. After a while, lets the stopped rank continue. */
static bool wakes(void *user, int rank, int ranks, double seconds)
{
    asked += rank == 1 && ranks == 2;
    if (seconds > 0.4)
        kill(*(const pid_t *)user, SIGCONT);
    return true;
}

TEST(the_user_can_wait_for_a_rank_that_hangs)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct divided m;
    setenv("ESPALIER_RANKS_PATIENCE", "0.2", 1);
    struct esp_backend *backend = open_backend(&two);
    unsetenv("ESPALIER_RANKS_PATIENCE");
    pid_t rank = divided_child(0);
    backend->ops->ask_about_ranks(backend, wakes, &rank);
    divided_open_on(&m, backend, &model->desc);
    CHECK(kill(rank, SIGSTOP) == 0);
    CHECK(divided_run_chain(&m, 0, PREFIX, true) == 0, "%s", backend->ops->failure(backend));
    CHECK(asked > 0);
    divided_close_on(&m);
    backend->ops->close(backend);
    esp_model_close(model);
}

/* After a restart of the ranks, the weights stay open, but the caches must be opened again.
 * Results must be bit-identical. */
TEST(killed_ranks_are_started_again_once)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct esp_backend *backend = open_backend(&three);
    const struct esp_backend_ops *ops = backend->ops;
    struct divided m;
    struct esp_rank_times times;
    struct esp_cache *old;
    static float a[4096], b[4096];
    char why[512] = "", err[512] = "";
    divided_open_on(&m, backend, &model->desc);
    CHECK(m.vocabulary <= 4096 && divided_run_chain(&m, 0, PREFIX, false) == 0);
    CHECK(divided_run_chain(&m, PREFIX, 1, true) == 0 && ops->read_row(m.logits, 0, a) == 0);
    /* refused, because the ranks are alive */
    CHECK(ops->restart_ranks(backend, 30, why, sizeof why) < 0);
    CHECK(kill(divided_child(0), SIGKILL) == 0);
    CHECK(divided_run_chain(&m, 0, PREFIX, true) == ESP_E_DEVICE);
    /* fails, because no time is allowed for the restart */
    CHECK(ops->restart_ranks(backend, 0, why, sizeof why) < 0);
    CHECK(ops->restart_ranks(backend, 30, why, sizeof why) == 0);
    CHECK(strstr(why, "ended (signal 9)"), "%s", why);
    CHECK(ops->rank_times(backend, &times) && times.starts == 2);
    CHECK(divided_run_chain(&m, 0, PREFIX, true) ==
          ESP_E_DEVICE); /* only the old ranks had this cache */
    CHECK(strstr(ops->failure(backend), "have lost the keys"), "%s", ops->failure(backend));
    old = m.cache;
    CHECK(ops->cache_open(&m.cache, m.weights, CACHE, CACHE, err, sizeof err) == 0, "%s", err);
    ops->cache_close(old);
    CHECK(divided_run_chain(&m, 0, PREFIX, false) == 0);
    CHECK(divided_run_chain(&m, PREFIX, 1, true) == 0 && ops->read_row(m.logits, 0, b) == 0);
    CHECK(memcmp(a, b, (size_t)m.vocabulary * sizeof *a) == 0);
    CHECK(kill(divided_child(0), SIGKILL) == 0);
    CHECK(divided_run_chain(&m, 0, PREFIX, true) == ESP_E_DEVICE);
    CHECK(ops->restart_ranks(backend, 30, why, sizeof why) < 0);
    divided_close_on(&m);
    ops->close(backend);
    CHECK(no_child_is_left());
    esp_model_close(model);
}

/* ------------------------------------------------------------------ times of a pass */

/* Each of two ranks computes whole layers: first rank 0, then rank 1, then rank 0 again. These
 * are three laps. After each of the first two laps, the rows are sent over a simulated network
 * that delays them. */
TEST(laps_of_a_pass_say_who_computes)
{
    static const double DELAY = 0.02;
    const struct division two = {.ranks = 2, .threads = 1, .by_layers = true};
    struct esp_model *model = divided_model("logits/qwen3-5");
    struct esp_backend *backend = open_backend(&two);
    struct divided m;
    struct esp_rank_times times;
    divided_open_on(&m, backend, &model->desc);
    CHECK(backend->ops->set_rank_delay(backend, "20ms") == 0);
    CHECK(divided_run_chain(&m, 0, PREFIX, true) == 0);
    CHECK(backend->ops->rank_times(backend, &times) && times.lap_count == 6);
    for (int i = 0; i < 6; i++) {
        const struct esp_rank_lap *lap = &times.laps[i];
        CHECK(lap->rank == i % 2 && lap->wait >= 0);
        /* A hop is the time of an exchange without the time of waiting for the other rank. So
         * it can be slightly less than the delay. */
        CHECK(i > 3 || (lap->hop > 0.9 * DELAY && lap->hop < 1), "%d: hop %g", i, lap->hop);
        CHECK(i <= 3 || (lap->hop == 0 && lap->wait == 0));
        CHECK(i / 2 % 2 != i % 2 || lap->compute > 0);
        /* rank 0 has the last layers and the head, so rank 1 computes nothing */
        CHECK(i != 5 || lap->compute == 0);
    }
    divided_close_on(&m);
    backend->ops->close(backend);
    esp_model_close(model);
}

/* Divided matrices need many exchanges. So several exchanges are reported as one lap. */
TEST(laps_of_many_exchanges_are_merged)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_model *model = divided_model("logits/qwen3-5");
    struct esp_backend *backend = open_backend(&three);
    struct divided m;
    struct esp_rank_times times;
    double sums[3] = {0};
    divided_open_on(&m, backend, &model->desc);
    backend->ops->rank_times(backend, &times);
    const long before = times.exchanges;
    const double start = esp_clock();
    CHECK(divided_run_chain(&m, 0, PREFIX, true) == 0);
    const double took = esp_clock() - start;
    CHECK(backend->ops->rank_times(backend, &times) && times.exchanges - before > 12);
    CHECK(times.lap_count % 3 == 0 && times.lap_count > 3 * 6 && times.lap_count <= 3 * 12);
    for (int i = 0; i < times.lap_count; i++) {
        CHECK(times.laps[i].rank == i % 3);
        sums[i % 3] += times.laps[i].compute + times.laps[i].wait + times.laps[i].hop;
    }
    CHECK(sums[0] > 0 && sums[0] <= took, "%g of %g s", sums[0], took);
    CHECK(sums[1] > 0 && sums[2] > 0);
    divided_close_on(&m);
    backend->ops->close(backend);
    esp_model_close(model);
}

/* Ranks can leave an exchange at different times. So the computing time of the slowest rank can
 * exceed the time that rank 0 spent computing and waiting. */
TEST(last_lap_of_rank_0_takes_as_long_as_its_exchange)
{
    struct esp_ranks *r = calloc(1, sizeof *r);
    CHECK(r);
    r->count = 2;
    esp_ranks_pass_begins(r);
    r->exchanged = 1;
    r->computed[0] = 1;
    r->computed[1] = 5;
    r->met = 3;
    esp_ranks_pass_ends(r);
    CHECK(r->times.lap_count == 4);
    CHECK(r->laps[0].wait + r->laps[0].hop == 3, "%g, %g", r->laps[0].wait, r->laps[0].hop);
    CHECK(r->laps[1].wait == 0);
    free(r);
}

TEST(a_rank_that_is_killed_before_loading_makes_loading_fail)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct esp_backend *backend = open_backend(&two);
    struct esp_weights *weights;
    char err[512] = "";
    CHECK(kill(divided_child(0), SIGKILL) == 0);
    CHECK(backend->ops->weights_open(&weights, backend, &model->desc, NULL, NULL, err,
                                     sizeof err) == ESP_E_DEVICE);
    CHECK(!weights && strstr(err, "rank 1 of 2 ended (signal 9)"), "%s", err);
    CHECK(no_child_is_left());
    backend->ops->close(backend);
    esp_model_close(model);
}

TEST(ranks_end_when_their_backend_closes)
{
    const struct division three = {.ranks = 3, .threads = 1};
    struct esp_backend *backend = open_backend(&three);
    CHECK(divided_child(1) > 0 && divided_child(2) == 0);
    const double start = esp_clock();
    backend->ops->close(backend);
    CHECK(esp_clock() - start < 1.5);
    CHECK(no_child_is_left());
}

static bool stop_at_once(void *user, const char *what, size_t done, size_t total)
{
    (void)user, (void)what, (void)done, (void)total;
    return false;
}

TEST(loading_can_be_cancelled)
{
    const struct division two = {.ranks = 2, .threads = 1};
    struct esp_backend *backend = open_backend(&two);
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct esp_weights *weights;
    char err[512] = "";
    CHECK(backend->ops->weights_open(&weights, backend, &model->desc, stop_at_once, NULL, err,
                                     sizeof err) == ESP_E_CANCELLED);
    backend->ops->close(backend);
    CHECK(no_child_is_left());
    esp_model_close(model);
}

/* ------------------------------------------------------------------ descriptions */

TEST(a_file_that_differs_is_refused_by_a_rank)
{
    char path[] = "/tmp/espalier-ranks-XXXXXX", err[512] = "";
    const int fd = mkstemp(path);
    struct esp_model *model = divided_model("logits/llama-gqa");
    struct esp_tensor_file file = {.fd = fd, .path = path};
    struct esp_tensor *t = &model->desc.layer[0].up;
    struct esp_wire wire = {.bytes = NULL};
    struct esp_desc_copy copy;
    char *rows = malloc((size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns));
    esp_tensor_copy_rows(t, 0, t->rows, rows);
    const size_t size = (size_t)t->rows * esp_dtype_row_bytes(t->dtype, t->columns);
    CHECK(write(fd, rows, size) == (ssize_t)size);
    t->source = &file;
    t->offset = 0;
    esp_desc_write(&wire, &model->desc);
    CHECK(!wire.failed);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == 0, "%s", err);
    esp_desc_copy_close(&copy);
    CHECK(pwrite(fd, "x", 1, 0) == 1);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == ESP_E_MISMATCH);
    CHECK(strstr(err, path) && strstr(err, "differs from the file"), "%s", err);
    esp_desc_copy_close(&copy);
    CHECK(ftruncate(fd, 100) == 0);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == ESP_E_MISMATCH);
    esp_desc_copy_close(&copy);
    CHECK(unlink(path) == 0);
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == ESP_E_FILE);
    esp_desc_copy_close(&copy);
    close(fd);
    free(rows);
    free(wire.bytes);
    esp_model_close(model);
}

TEST(a_truncated_description_is_refused)
{
    struct esp_model *model = divided_model("logits/qwen3-moe-some");
    struct esp_wire wire = {.bytes = NULL};
    char err[512];
    esp_desc_write(&wire, &model->desc);
    CHECK(!wire.failed && wire.size > 0);
    for (size_t size = 0; size < wire.size; size += 1 + size / 40) {
        struct esp_desc_copy copy;
        CHECK(esp_desc_read(&copy, wire.bytes, size, err, sizeof err) < 0, "%zu", size);
        esp_desc_copy_close(&copy);
    }
    struct esp_desc_copy copy;
    CHECK(esp_desc_read(&copy, wire.bytes, wire.size, err, sizeof err) == 0, "%s", err);
    CHECK(esp_model_desc_check(&copy.desc, err, sizeof err) == 0, "%s", err);
    esp_desc_copy_close(&copy);
    free(wire.bytes);
    esp_model_close(model);
}

/* ------------------------------------------------------------------ greetings */

/* Imitates a group of two ranks. Rank 1's greeting is a copy of rank 0's greeting with one
 * change. */
struct mirror {
    struct esp_ranks base;
    char *area[2];
    void (*differ)(struct esp_greeting *greeting);
};

static char *mirror_own(struct esp_ranks *ranks)
{
    return ((struct mirror *)ranks)->area[0];
}

static const char *mirror_of(struct esp_ranks *ranks, int rank)
{
    return ((struct mirror *)ranks)->area[rank];
}

static int mirror_meet(struct esp_ranks *ranks, const size_t *bytes, bool to_first)
{
    struct mirror *m = (struct mirror *)ranks;
    struct esp_greeting greeting;
    (void)to_first;
    memcpy(m->area[1], m->area[0], bytes[0]);
    if (bytes[0] != sizeof greeting + sizeof(struct esp_rank_said))
        return ESP_OK;
    memcpy(&greeting, m->area[1], sizeof greeting);
    if (m->differ)
        m->differ(&greeting);
    memcpy(m->area[1], &greeting, sizeof greeting);
    return ESP_OK;
}

static void mirror_fail(struct esp_ranks *ranks, const char *sentence)
{
    (void)ranks, (void)sentence;
}

static const struct esp_transport mirror = {.name = "mirror",
                                            .own = mirror_own,
                                            .of = mirror_of,
                                            .meet = mirror_meet,
                                            .fail = mirror_fail};

static void other_version(struct esp_greeting *g)
{
    memcpy(g->version, "99.1", sizeof "99.1");
}

static void other_protocol(struct esp_greeting *g)
{
    memcpy(g->protocol, "77", sizeof "77");
}

static void other_build(struct esp_greeting *g)
{
    g->build[0] = g->build[0] == '1' ? '2' : '1';
}

static void other_layout(struct esp_greeting *g)
{
    memcpy(g->layout, "1+2", sizeof "1+2");
}

static void other_sums(struct esp_greeting *g)
{
    memcpy(g->sums, "another", sizeof "another");
}

static void without_end(struct esp_greeting *g)
{
    memset(g->version, 'v', sizeof g->version);
}

static void slower(struct esp_greeting *g)
{
    g->read /= 2;
}

TEST(ranks_that_cannot_compute_the_same_bits_are_refused_at_once)
{
    static const struct {
        void (*differ)(struct esp_greeting *greeting);
        const char *says;
    } cases[] = {{other_version, "rank 1 has version 99.1 and this program "},
                 {other_protocol, "rank 1 has protocol 77 and this program 1;"},
                 {other_build, "build all ranks from the same source"},
                 {other_layout, "rank 1 has layout of structs 1+2 and this program "},
                 {other_sums, "rank 1 has order of sums another and this program "},
                 {without_end, "rank 1 has version vvvv"},
                 {slower, NULL},
                 {NULL, NULL}};
    const struct division alone = {.ranks = 1, .threads = 1};
    struct esp_backend *backend = open_backend(&alone);
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)backend;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char err[512] = "";
        struct mirror m = {.base = {.transport = &mirror, .count = 2},
                           .area = {malloc(ESP_RANK_AREA), malloc(ESP_RANK_AREA)},
                           .differ = cases[i].differ};
        cpu->ranks = &m.base;
        const int status = esp_cpu_greet(cpu, err, sizeof err);
        CHECK(status == (cases[i].says ? ESP_E_MISMATCH : ESP_OK), "%zu: %s", i, err);
        CHECK(m.base.failed == (cases[i].says != NULL));
        CHECK(!cases[i].says || strstr(err, cases[i].says), "%s", err);
        free(m.area[0]);
        free(m.area[1]);
    }
    cpu->ranks = NULL;
    backend->ops->close(backend);
}

/* ------------------------------------------------------------------ recurrent layers */

static int run_text(struct divided *m, int first, int seed, int count)
{
    return divided_run_rows(m, first, seed, count, count, true);
}

/* Continues a text, then returns to a saved copy of its states and continues with other tokens.
 * Writes the logits of both continuations. */
static size_t run_states(struct esp_backend *backend, const struct esp_model_desc *desc,
                         float *out)
{
    struct divided m;
    divided_open_on(&m, backend, desc);
    const size_t width = (size_t)m.vocabulary;
    CHECK(run_text(&m, 0, 0, PREFIX) == 0);
    CHECK(m.ops->state_save(m.cache, 0, PREFIX) == 0);
    CHECK(divided_run_chain(&m, PREFIX, ESP_STATE_CHUNK, false) == 0);
    CHECK(m.ops->fold(m.cache, PREFIX + ESP_STATE_CHUNK, 0) == 0);
    CHECK(run_text(&m, PREFIX + ESP_STATE_CHUNK, 40, 2) == 0);
    CHECK(m.ops->read_row(m.logits, 1, out) == 0);
    /* refused, because the states already include these tokens */
    CHECK(run_text(&m, PREFIX, 50, 2) == ESP_E_ARGUMENT);
    CHECK(m.ops->state_load(m.cache, 1) == ESP_E_ARGUMENT);
    CHECK(m.ops->state_load(m.cache, 0) == 0);
    CHECK(run_text(&m, PREFIX, 60, 2) == 0);
    CHECK(m.ops->read_row(m.logits, 1, out + width) == 0);
    divided_close_on(&m);
    return 2 * width;
}

TEST(states_are_restored_in_all_ranks)
{
    static const char *const names[] = {"logits/lfm2", "logits/granite-hybrid",
                                        "logits/qwen3-5"};
    const struct division alone = {.ranks = 1, .threads = 1};
    static const struct division divided[] = {{.ranks = 3, .threads = 1},
                                              {.ranks = 2, .threads = 1, .by_layers = true}};
    static float a[4096], b[4096];
    struct esp_backend *one = open_backend(&alone), *many[2];
    for (int k = 0; k < 2; k++)
        many[k] = open_backend(&divided[k]);
    for (int i = 0; i < 3; i++) {
        struct esp_model *model = divided_model(names[i]);
        model->desc.state_slots = 2;
        CHECK(2 * model->desc.vocabulary <= 4096);
        const size_t count = run_states(one, &model->desc, a);
        for (int k = 0; k < 2; k++) {
            CHECK(run_states(many[k], &model->desc, b) == count);
            CHECK(memcmp(a, b, count * sizeof *a) == 0, "%s, division %d", names[i], k);
        }
        esp_model_close(model);
    }
    for (int k = 0; k < 2; k++)
        many[k]->ops->close(many[k]);
    one->ops->close(one);
}
