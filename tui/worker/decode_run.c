/* decode_run.c - see decode_run.h. */
#include "tui/worker/decode_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PRACTICE[] = "There was once a poor widow who lived in a little cottage";

struct decoding {
    struct esp_run *run;
    struct esp_engine *engine;
    bool practising;
    int status;
};

static const char *token_text(void *engine, int32_t token, size_t *length)
{
    return esp_token_bytes(engine, token, length);
}

static void on_event(void *user, const struct esp_event *event)
{
    struct decoding *d = user;
    const struct esp_tokens tokens = {token_text, d->engine};
    if (d->practising || d->status < 0)
        return;
    pthread_mutex_lock(&d->run->lock);
    d->status = esp_run_take(d->run, event, &tokens);
    pthread_mutex_unlock(&d->run->lock);
}

/* Runs the next iteration of the session whose turn it is. */
static int step(struct esp_session *session, struct esp_compare *beside, char *err,
                size_t errlen)
{
    if (!beside)
        return esp_session_step(session, err, errlen);
    return esp_compare_turn(beside) ? esp_compare_step(beside, err, errlen)
                                    : esp_compare_step_first(beside, err, errlen);
}

int esp_decode_on(struct esp_session *session, struct esp_compare *beside,
                  const struct esp_decode_options *o, bool practice, char *err, size_t errlen)
{
    struct esp_stats stats;
    esp_session_allow(session, o->tokens);
    int status = beside ? esp_compare_begin(beside, err, errlen) : (int)ESP_OK;
    while (status >= 0) {
        esp_session_stats(session, &stats);
        if (o->goes_on &&
            !o->goes_on(o->user, practice, (double)stats.generated_tokens / o->tokens))
            break;
        status = step(session, beside, err, errlen);
        if (status == 0)
            break;
    }
    return status < 0 ? status : ESP_OK;
}

static int write_text(struct esp_session *session, const struct esp_decode_options *o,
                      bool practice, char *err, size_t errlen)
{
    int status = o->text ? esp_session_fork(session, o->text, o->text_count, err, errlen)
                         : esp_session_prompt_text(session, o->prompt, strlen(o->prompt), 0,
                                                   err, errlen);
    return status < 0 ? status : esp_decode_on(session, NULL, o, practice, err, errlen);
}

static void describe(struct esp_run *run, const struct esp_engine *engine,
                     const struct esp_session *session, double temperature)
{
    struct esp_model_info info;
    pthread_mutex_lock(&run->lock);
    run->temperature = temperature;
    esp_session_get(session, "drafter", run->drafter, sizeof run->drafter);
    esp_session_get(session, "verifier", run->verifier, sizeof run->verifier);
    if (esp_engine_target(engine, &info))
        snprintf(run->target, sizeof run->target, "%s", info.name);
    if (esp_engine_draft(engine, &info))
        snprintf(run->draft, sizeof run->draft, "%s", info.name);
    pthread_mutex_unlock(&run->lock);
}

int esp_decode_run(struct esp_run *run, struct esp_engine *engine,
                   const struct esp_decode_options *o, char *err, size_t errlen)
{
    struct esp_session_options options = o->session;
    struct esp_session *session;
    struct decoding d = {.run = run, .engine = engine};
    options.observer = on_event;
    options.user = &d;
    options.values.baseline = false;
    int status = esp_session_open(&session, engine, &options, err, errlen);
    if (status < 0)
        return status;
    describe(run, engine, session, options.values.temperature);
    if (o->practice > 0) {
        d.practising = true;
        struct esp_decode_options other = *o;
        other.prompt = PRACTICE;
        other.text = NULL;
        other.tokens = o->practice;
        status = write_text(session, &other, true, err, errlen);
        esp_session_clear(session);
        d.practising = false;
    }
    if (status == ESP_OK && o->scores)
        status = esp_session_score(session, true, err, errlen);
    if (status == ESP_OK)
        status = write_text(session, o, false, err, errlen);
    if (status == ESP_OK && d.status < 0)
        status = esp_fail(err, errlen, d.status, "not enough memory for the decoded text");
    pthread_mutex_lock(&run->lock);
    run->complete = true;
    pthread_mutex_unlock(&run->lock);
    esp_session_close(session);
    return status;
}

/* ------------------------------------------------------------------ enlarged targets */

/* Measures the seconds that a pass of plain decoding takes, as the median of a few passes. */
static int time_pass(struct esp_engine *engine, double *seconds, char *err, size_t errlen)
{
    enum { PASSES = 6 };
    struct esp_run run;
    const struct esp_decode_options options = {
        .session = {.drafter = "ar", .repeatable = true}, .prompt = PRACTICE, .tokens = PASSES};
    esp_run_init(&run);
    int status = esp_decode_run(&run, engine, &options, err, errlen);
    double took[PASSES];
    int count = 0;
    for (int i = 0; i < esp_run_steps(&run) && i < PASSES; i++) {
        const struct esp_course_point *point = &run.trace.course.points[i];
        const double one = point->at - (i > 0 ? point[-1].at : 0);
        int at = count++;
        for (; at > 0 && took[at - 1] > one; at--)
            took[at] = took[at - 1];
        took[at] = one;
    }
    *seconds = count > 0 ? took[count / 2] : 0;
    esp_run_free(&run);
    return status;
}

/* Returns how many bytes the weights can use. This is a quarter of the free memory, and at most
 * 4 GB. */
static double room(void)
{
    const double free_pages = (double)sysconf(_SC_AVPHYS_PAGES),
                 page = (double)sysconf(_SC_PAGESIZE);
    const double quarter = free_pages * page / 4;
    return quarter < 4e9 ? quarter : 4e9;
}

/* Closes the previous engine, opens the engine with options `o` and measures the time of a
 * pass. */
static int try_size(struct esp_engine **engine, struct esp_engine_options *o, double *took,
                    char *err, size_t errlen)
{
    esp_engine_close(*engine);
    int status = esp_engine_open(engine, o, err, errlen);
    return status < 0 ? status : time_pass(*engine, took, err, errlen);
}

int esp_engine_open_slow(struct esp_engine **engine, const struct esp_engine_options *options,
                         double seconds, double *took, char *err, size_t errlen)
{
    struct esp_engine_options o = *options;
    struct esp_model_info info;
    *engine = NULL;
    o.width = 4; /* the target is now too large for any cache: time is proportional to size */
    o.layers = 0;
    o.progress = NULL;
    int status = try_size(engine, &o, took, err, errlen), least = 0;
    for (int tries = 0; tries < 2 && status == ESP_OK; tries++) {
        esp_engine_target(*engine, &info);
        if (tries == 0)
            least = info.layers; /* the model cannot have fewer layers than this */
        const double layer = *took / info.layers, bytes = (double)info.bytes / info.layers;
        const bool wider = o.width < 8 && seconds / *took > 4;
        const double times = wider ? 4 : 1; /* factor by which a layer's weights grow */
        double layers = seconds / (times * layer);
        if (layers * times * bytes > room())
            layers = room() / (times * bytes);
        int count = (int)layers < least ? least : (int)layers > 1000 ? 1000 : (int)layers;
        if (count > least + 4)
            count -= count % 4; /* with fewer sizes, costs from earlier runs can be reused */
        const double off = *took / seconds;
        if (!wider && (count == info.layers || (tries > 0 && off > 0.6 && off < 1.7)))
            break;
        o.width = wider ? 8 : o.width;
        o.layers = count;
        o.progress = options->progress;
        status = try_size(engine, &o, took, err, errlen);
    }
    if (status < 0) {
        esp_engine_close(*engine);
        *engine = NULL;
    }
    return status;
}
