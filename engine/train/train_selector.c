/* train_selector.c - runs the three steps of training selectors; see train_selector.h. */
#include "engine/train/train_selector.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/model/preset.h"
#include "engine/train/fit_selector.h"

struct run {
    const struct esp_selector_training *t;
    enum esp_goal goal;
    struct esp_sampler sampler;
    struct esp_sample_header header;
    struct esp_sample_file file;
    char path[PATH_MAX]; /* path of `file` */
    struct esp_pass_times times;
    int32_t *tokens;
    char *err;
    size_t errlen;
};

/* ------------------------------------------------------------------ the options */

static bool several(const struct esp_selector_training *t)
{
    return strchr(t->rules, ',') != NULL;
}

/* Writes the path of an output file. Without --output the file is `file` next to the target.
 * With --output and several verifiers it is `file` in the output folder. With --output and one
 * verifier it is the name given with --output, followed by `ending`. */
static bool place(const struct esp_selector_training *t, const char *file, const char *ending,
                  char *path, size_t size)
{
    char folder[4096], name[4096];
    int n = -1;
    if (!several(t) && t->output)
        n = snprintf(path, size, "%s%s", t->output, ending);
    else if (esp_place_beside(t->output ? t->output : t->engine->target->path, file, folder,
                              name))
        n = snprintf(path, size, "%s/%s", folder, name);
    return n > 0 && (size_t)n < size;
}

bool esp_selector_samples_path(const struct esp_selector_training *t, char *path, size_t size)
{
    char file[ESP_SELECTOR_NAME];
    snprintf(file, sizeof file, "nde-%.40s.samples", several(t) ? "all" : t->rules);
    return place(t, file, ".samples", path, size);
}

static int list_rules(struct run *r)
{
    char names[sizeof r->header.names];
    struct esp_sampler *s = &r->sampler;
    if (strlen(r->t->rules) >= sizeof names)
        return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT, "too many verifiers: %.80s...",
                        r->t->rules);
    snprintf(names, sizeof names, "%s", r->t->rules);
    char *rest = names;
    for (char *name; (name = strsep(&rest, ","));) {
        const struct esp_verifier_ops *rule = esp_verifier_find(name);
        if (!rule || !esp_tree_has_value(rule))
            return esp_fail(
                r->err, r->errlen, ESP_E_ARGUMENT,
                "a selector cannot be trained for verifier '%.40s': choose from nss, "
                "naivetree, spectr, specinfer, khisti, traversal",
                name);
        if (s->layout.rules == ESP_MAX_RULES)
            return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT,
                            "too many verifiers: at most %d are possible", ESP_MAX_RULES);
        s->rules[s->layout.rules++] = rule;
    }
    return ESP_OK;
}

static int read_text(struct run *r)
{
    const struct esp_selector_training *t = r->t;
    const size_t most = INT_MAX / 4;
    const size_t length = t->length < most ? t->length : most;
    r->tokens = calloc(length + 1, sizeof *r->tokens);
    if (!r->tokens)
        return esp_fail(r->err, r->errlen, ESP_E_MEMORY, "not enough memory for the text");
    const int count = esp_tokenize(t->engine, t->text, length, r->tokens, (int)length);
    if (count < 0)
        return esp_fail(r->err, r->errlen, count, "the text could not be divided into tokens");
    r->sampler.text = r->tokens;
    r->sampler.length = count < (int)length ? count : (int)length;
    return ESP_OK;
}

static uint64_t hash_text(const int32_t *tokens, int count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)(uint32_t)tokens[i]) * 0x100000001b3u;
    return hash;
}

static void make_header(struct run *r)
{
    const struct esp_sampler *s = &r->sampler;
    r->header = (struct esp_sample_header){.pair = r->t->engine->pair,
                                           .text = hash_text(s->text, s->length),
                                           .seed = s->seed,
                                           .layout = s->layout,
                                           .context = s->context};
    snprintf(r->header.names, sizeof r->header.names, "%s", r->t->rules);
}

/* ------------------------------------------------------------------ samples */

static bool tell(const struct run *r, enum esp_train_step step, int done, int total)
{
    const struct esp_selector_progress progress = {step, NULL, done, total, NAN, NAN};
    return !r->t->progress || r->t->progress(r->t->user, &progress);
}

static int measure(struct run *r)
{
    if (!tell(r, ESP_TRAIN_TIMES, 0, 1))
        return ESP_E_CANCELLED;
    int status = esp_measure_times(&r->sampler, &r->header.times);
    if (status == ESP_OK && !esp_pass_times_sound(&r->header.times))
        status = ESP_E_NUMERIC;
    return status == ESP_OK ? esp_sample_file_begin(&r->file, &r->header, r->err, r->errlen)
                            : status;
}

static int make_samples(struct run *r)
{
    const int total = r->t->pieces;
    int status = ESP_OK;
    float *samples = calloc(r->file.size * ESP_SAMPLE_ROOTS, sizeof *samples);
    if (!samples)
        return ESP_E_MEMORY;
    while (r->file.pieces < total && status >= 0) {
        if (!tell(r, ESP_TRAIN_SAMPLES, r->file.pieces, total)) {
            status = ESP_E_CANCELLED;
            break;
        }
        const int count = status = esp_sampler_piece(&r->sampler, r->file.pieces, samples);
        if (status >= 0)
            status = esp_sample_file_add(&r->file, samples, count, r->err, r->errlen);
    }
    free(samples);
    return status < 0 ? status : (int)ESP_OK;
}

/* ------------------------------------------------------------------ networks */

static int train_rule(struct run *r, int rule)
{
    const struct esp_selector_training *t = r->t;
    struct esp_selector selector;
    char path[PATH_MAX], file[ESP_SELECTOR_NAME];
    int status = esp_selector_open(&selector, &r->sampler.layout.shape);
    if (status < 0)
        return status;
    const struct esp_selector_fit fit = {&r->file,  r->sampler.layout, rule,
                                         &r->times, r->goal,           t};
    snprintf(selector.rule, sizeof selector.rule, "%s", r->sampler.rules[rule]->name);
    selector.goal = r->goal;
    selector.sources = t->engine->sources;
    selector.costs = r->goal == ESP_GOAL_SPEED ? t->engine->pair : 0;
    status = esp_selector_fit(&fit, &selector);
    esp_selector_file_name(file, selector.rule, r->goal);
    if (status == ESP_OK && !place(t, file, "", path, sizeof path))
        status = esp_fail(r->err, r->errlen, ESP_E_FILE, "the path of the output is too long");
    if (status == ESP_OK)
        status = esp_selector_write(&selector, path, r->err, r->errlen);
    esp_selector_close(&selector);
    return status;
}

static int prepare(struct run *r)
{
    const int goal = r->t->goal ? esp_goal_find(r->t->goal) : ESP_GOAL_SPEED;
    if (goal < 0)
        return esp_fail(r->err, r->errlen, ESP_E_ARGUMENT,
                        "--goal takes speed, tokens or cheap-rows");
    r->goal = (enum esp_goal)goal;
    int status = list_rules(r);
    if (status == ESP_OK)
        status = read_text(r);
    if (status == ESP_OK)
        status = esp_sampler_open(&r->sampler, r->err, r->errlen);
    if (status < 0)
        return status;
    make_header(r);
    if (!esp_selector_samples_path(r->t, r->path, sizeof r->path))
        return esp_fail(r->err, r->errlen, ESP_E_FILE, "the path of the output is too long");
    status = esp_sample_file_open(&r->file, r->path, &r->header, r->err, r->errlen);
    if (status == ESP_OK && !(r->header.times.length[0] > 0))
        status = measure(r);
    r->times = r->header.times;
    if (r->goal == ESP_GOAL_CHEAP_ROWS)
        esp_nominal_times(&r->times);
    return status;
}

int esp_train_selectors(const struct esp_selector_training *t, char *err, size_t errlen)
{
    struct run r = {.t = t, .err = err, .errlen = errlen, .file = {.file = -1}};
    if (errlen > 0)
        *err = '\0';
    if (!t->engine->draft)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "a selector needs a pair of models: name a draft model with --draft");
    if (t->engine->translation.tokens > 0)
        return esp_fail(err, errlen, ESP_E_UNSUPPORTED,
                        "a selector needs two models with the same vocabulary, but %s and %s "
                        "have different ones; choose a draft with the target's tokenizer",
                        t->engine->draft->path, t->engine->target->path);
    r.sampler.engine = t->engine;
    r.sampler.seed = t->seed;
    int status = prepare(&r);
    if (status == ESP_OK)
        status = make_samples(&r);
    for (int i = 0; i < r.sampler.layout.rules && status == ESP_OK; i++)
        status = train_rule(&r, i);
    esp_sampler_close(&r.sampler);
    esp_sample_file_close(&r.file);
    free(r.tokens);
    if (status < 0 && status != ESP_E_CANCELLED && errlen > 0 && !*err)
        esp_fail(err, errlen, status, "training failed: %s", esp_status_message(status));
    return status;
}
