/* divided.c - see divided.h. */
#include "tests/divided.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/own_copy.h"
#include "tests/check.h"

enum { MOST_LOGITS = 1 << 17 };

int divided_start(struct esp_backend *backend, const struct division *d, char *err,
                  size_t errlen)
{
    struct esp_rank_options options = {.ranks = d->ranks,
                                       .threads = d->threads,
                                       .whole = d->whole,
                                       .planned = true,
                                       .by_layers = d->by_layers};
    memcpy(options.share, d->share, sizeof d->share);
    return d->ranks < 2 ? 0 : backend->ops->start_ranks(backend, &options, err, errlen);
}

struct esp_model *divided_model(const char *name)
{
    struct esp_model *model;
    char path[128], err[512] = "";
    snprintf(path, sizeof path, "vectors/%s", name);
    CHECK(esp_model_open(&model, check_path(path), err, sizeof err) == 0, "%s: %s", name, err);
    esp_model_set_context(model, CACHE);
    model->desc.divided = true;
    return model;
}

/* ------------------------------------------------------------------ passes */

void divided_open_on(struct divided *m, struct esp_backend *backend,
                     const struct esp_model_desc *desc)
{
    char err[512] = "";
    *m = (struct divided){
        .ops = backend->ops, .vocabulary = desc->vocabulary, .hidden = desc->hidden};
    int status = m->ops->weights_open(&m->weights, backend, desc, NULL, NULL, err, sizeof err);
    CHECK(status == 0, "%s", err);
    status = m->ops->cache_open(&m->cache, m->weights, CACHE, CACHE, err, sizeof err);
    CHECK(status == 0, "%s", err);
    CHECK(m->ops->rows_open(&m->logits, backend, CACHE, m->vocabulary, err, sizeof err) == 0);
    CHECK(m->ops->rows_open(&m->states, backend, CACHE, 2 * m->hidden, err, sizeof err) == 0);
}

void divided_close_on(struct divided *m)
{
    m->ops->rows_close(m->states);
    m->ops->rows_close(m->logits);
    m->ops->cache_close(m->cache);
    m->ops->weights_close(m->weights);
}

static int32_t token_of(const struct divided *m, int i)
{
    return (int32_t)((i * 7919 + 13) % m->vocabulary);
}

int divided_run_rows(struct divided *m, int first, int seed, int count, int text, bool wanted)
{
    int32_t tokens[CACHE], positions[CACHE];
    for (int i = 0; i < count; i++) {
        tokens[i] = token_of(m, seed + i);
        positions[i] = first + i;
    }
    const struct esp_batch batch = {.rows = count,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = first,
                                    .prefix = first,
                                    .text = text,
                                    .logits = wanted ? m->logits : NULL};
    return m->ops->forward(m->cache, &batch);
}

int divided_run_chain(struct divided *m, int first, int count, bool wanted)
{
    return divided_run_rows(m, first, first, count, 0, wanted);
}

/* Runs a pass over a tree of NODES nodes after PREFIX rows. Node i is a child of node
 * (i - 1) / 2. Requests the logits of every second node and the hidden states of every third
 * node. `window` can be NULL. */
static int run_tree(struct divided *m, const struct esp_window *window)
{
    int32_t tokens[NODES], positions[NODES], logits_row[NODES], states_row[NODES];
    uint64_t mask[NODES];
    struct esp_states states = {
        .count = 2, .state = {1, ESP_STATE_NORMED}, .to = m->states, .row = states_row};
    for (int i = 0; i < NODES; i++) {
        tokens[i] = token_of(m, 100 + i);
        mask[i] = (i > 0 ? mask[(i - 1) / 2] : 0) | (uint64_t)1 << i;
        positions[i] = PREFIX - 1 + __builtin_popcountll(mask[i]);
        logits_row[i] = i % 2 ? -1 : i / 2;
        states_row[i] = i % 3 ? -1 : i / 3;
    }
    const struct esp_batch batch = {.rows = NODES,
                                    .tokens = tokens,
                                    .positions = positions,
                                    .first = PREFIX,
                                    .prefix = PREFIX,
                                    .mask = mask,
                                    .mask_words = 1,
                                    .window = window,
                                    .logits = m->logits,
                                    .logits_row = logits_row,
                                    .states = &states};
    return m->ops->forward(m->cache, &batch);
}

/* Runs passes over a chain, over a tree, and over one more row after accepting a path of the
 * tree. Writes all outputs of these passes to `out`. Returns how many numbers it wrote. */
static size_t run_all(struct divided *m, const struct esp_window *window, float *out)
{
    static const int32_t path[] = {PREFIX, PREFIX + 2, PREFIX + 5};
    size_t n = 0;
    const size_t width = (size_t)m->vocabulary;
    CHECK(divided_run_chain(m, 0, PREFIX, true) == 0);
    for (int i = 0; i < PREFIX; i++, n += width)
        CHECK(m->ops->read_row(m->logits, i, out + n) == 0);
    CHECK(run_tree(m, window) == 0);
    for (int i = 0; i < NODES / 2; i++, n += width)
        CHECK(m->ops->read_row(m->logits, i, out + n) == 0);
    for (int i = 0; i < NODES / 3; i++, n += 2 * (size_t)m->hidden)
        CHECK(m->ops->read_row(m->states, i, out + n) == 0);
    CHECK(m->ops->keep(m->cache, PREFIX, path, 3) == 0);
    CHECK(divided_run_chain(m, PREFIX + 3, 1, true) == 0);
    CHECK(m->ops->read_row(m->logits, 0, out + n) == 0);
    return n + width;
}

static float room[MOST_LOGITS];

struct divided_results divided_compute(struct esp_backend *backend,
                                       const struct esp_model_desc *desc,
                                       const struct esp_window *window)
{
    struct divided m;
    struct divided_results e;
    divided_open_on(&m, backend, desc);
    CHECK((size_t)(PREFIX + NODES) * (size_t)(m.vocabulary + m.hidden) < MOST_LOGITS);
    e.count = run_all(&m, window, room);
    e.values = malloc(e.count * sizeof *e.values);
    memcpy(e.values, room, e.count * sizeof *e.values);
    divided_close_on(&m);
    return e;
}

void divided_compare(struct esp_backend *backend, const struct esp_model_desc *desc,
                     const struct esp_window *window, const struct divided_results *e,
                     const char *name, const struct division *d)
{
    struct divided_results other = divided_compute(backend, desc, window);
    size_t differ = 0;
    CHECK(other.count == e->count);
    for (size_t i = 0; i < e->count; i++)
        differ += memcmp(&e->values[i], &other.values[i], sizeof(float)) != 0;
    CHECK(differ == 0,
          "%s, %d ranks, whole %u: %zu of %zu outputs differ from the outputs of one rank",
          name, d->ranks, d->whole, differ, e->count);
    free(other.values);
}

/* Runs `copy`, a draft model that is a copy of the target, on the target's KV cache. Writes a
 * row of logits (vocabulary) to `out` and returns its length. */
static size_t run_joined(struct esp_backend *backend, struct esp_model *model,
                         struct esp_model *copy, float *out)
{
    struct divided m, c;
    char err[300] = "";
    divided_open_on(&m, backend, &model->desc);
    copy->desc.lender = m.weights;
    copy->desc.divided = true;
    c = m;
    CHECK(m.ops->weights_open(&c.weights, backend, &copy->desc, NULL, NULL, err, sizeof err) ==
              0,
          "%s", err);
    CHECK(m.ops->cache_join(&c.cache, c.weights, m.cache, CACHE, err, sizeof err) == 0, "%s",
          err);
    CHECK(divided_run_chain(&m, 0, PREFIX, false) == 0);
    CHECK(divided_run_chain(&c, PREFIX, 2, false) == 0);
    CHECK(divided_run_chain(&c, PREFIX + 2, 1, true) == 0);
    CHECK(m.ops->read_row(m.logits, 0, out) == 0);
    m.ops->cache_close(c.cache);
    m.ops->weights_close(c.weights);
    divided_close_on(&m);
    return (size_t)m.vocabulary;
}

void divided_compare_copy(struct esp_backend *one, struct esp_backend *many)
{
    struct esp_model *model = divided_model("logits/llama-gqa"), *copy;
    static float a[4096], b[4096];
    char err[300] = "";
    CHECK(esp_own_copy_open(&copy, model, "self:q4_0", err, sizeof err) == 0, "%s", err);
    const size_t n = run_joined(one, model, copy, a);
    CHECK(run_joined(many, model, copy, b) == n && n <= 4096);
    CHECK(memcmp(a, b, n * sizeof *a) == 0);
    esp_model_close(copy);
    esp_model_close(model);
}

pid_t divided_child(int which)
{
    DIR *folder = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *e; found == 0 && folder && (e = readdir(folder));) {
        char path[300], state;
        int parent = 0, pid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%.200s/stat", e->d_name);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) == 2 &&
            parent == (int)getpid() && state != 'Z' && which-- == 0)
            found = pid;
        if (file)
            fclose(file);
    }
    closedir(folder);
    return found;
}
