/* recorded.c - see recorded.h. */
#include "tests/recorded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/drafting.h"

/* ------------------------------------------------------------------ the file of a recording */

static char folder[64], path[96];

static void remove_file(void)
{
    unlink(path);
    rmdir(folder);
}

const char *recorded_path(void)
{
    if (!*path) {
        strcpy(folder, "/tmp/espalier-recorded-XXXXXX");
        CHECK(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/session.esp.jsonl", folder);
        atexit(remove_file);
    }
    return path;
}

void recorded_write(const char *bytes, size_t length)
{
    FILE *file = fopen(recorded_path(), "w");
    CHECK(file && fwrite(bytes, 1, length, file) == length);
    CHECK(fclose(file) == 0);
}

char *recorded_read(size_t *length)
{
    FILE *file = fopen(recorded_path(), "r");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    char *bytes = malloc((size_t)size + 1);
    rewind(file);
    CHECK(bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    bytes[size] = '\0';
    *length = (size_t)size;
    return bytes;
}

struct esp_recording *recorded_open(void)
{
    struct esp_recording *recording;
    char err[512] = "";
    CHECK(esp_recording_open(&recording, recorded_path(), err, sizeof err) == 0, "%s", err);
    return recording;
}

/* ------------------------------------------------------------------ events */

void recorded_keep(struct recorded_events *events, const struct esp_event *event)
{
    int count = events->count + 1;
    events->event = realloc(events->event, (size_t)count * sizeof *events->event);
    struct recorded_event *kept = malloc(sizeof *kept);
    CHECK(events->event && kept);
    events->event[events->count] = kept;
    *kept = (struct recorded_event){.type = event->type, .stage = event->stage};
    if (event->iteration)
        CHECK(esp_iteration_copy(&kept->iteration, event->iteration) == 0);
    kept->token_count = event->token_count;
    kept->tokens = malloc((size_t)event->token_count * sizeof *kept->tokens + 1);
    CHECK(kept->tokens);
    if (event->tokens)
        memcpy(kept->tokens, event->tokens, (size_t)event->token_count * sizeof *kept->tokens);
    snprintf(kept->key, sizeof kept->key, "%s", event->key ? event->key : "");
    snprintf(kept->text, sizeof kept->text, "%s", event->text ? event->text : "");
    events->count++;
}

void recorded_forget(struct recorded_events *events)
{
    for (int i = 0; i < events->count; i++) {
        esp_iteration_free(&events->event[i]->iteration);
        free(events->event[i]->tokens);
        free(events->event[i]);
    }
    free(events->event);
    *events = (struct recorded_events){.count = 0};
}

const char *recorded_token(void *user, int32_t token, size_t *length)
{
    static const struct {
        const char *bytes;
        size_t length;
    } texts[] = {
        {" the", 4},         {"\n", 1},           {"\"\\/", 3},    {"\033[31m\x7f", 6},
        {"\xe6\xb0\xb4", 3}, {"\xe6\xb0", 2},     {"\x80\xff", 2}, {"a\0b", 3},
        {"\xe2\x80\xae", 3}, {"\t\r\b\f\x01", 5}, {NULL, 0},       {"", 0},
    };
    (void)user;
    size_t at = (size_t)token % (sizeof texts / sizeof *texts);
    *length = texts[at].length;
    return texts[at].bytes;
}

/* ------------------------------------------------------------------ a session */

static struct {
    struct esp_recorder *recorder;
    struct recorded_events *events;
} live;

static void observe(void *user, const struct esp_event *event)
{
    (void)user;
    if (live.recorder)
        esp_recorder_event(live.recorder, event);
    if (live.recorder && live.events)
        recorded_keep(live.events, event);
}

static void prompt(struct drafting *d, int count)
{
    int32_t tokens[64];
    for (int i = 0; i < count; i++)
        tokens[i] = (5 * i + 1) % 12;
    CHECK(esp_session_prompt(d->session, tokens, count, d->err, sizeof d->err) == 0, "%s",
          d->err);
    esp_session_allow(d->session, DRAFTING_ALLOWED);
}

void recorded_session(struct recorded_events *events, const char *drafter, double temperature,
                      int iterations)
{
    struct drafting d;
    struct drafting_setup setup = {.drafter = drafter,
                                   .temperature = temperature,
                                   .observer = observe,
                                   .max_nodes = 40,
                                   .context = 512,
                                   .sharpness = 3,
                                   .seed = 5};
    struct esp_recorder_options options = {
        .path = recorded_path(), .force = true, .tokens = {recorded_token, NULL}};
    struct esp_recording_header header = {.vocabulary = 12, .columns = 80, .rows = 24};
    char err[512] = "";
    live.recorder = NULL;
    live.events = events;
    drafting_open(&d, &setup);
    esp_session_clear(d.session);
    esp_session_explain(d.session, temperature > 0);
    CHECK(esp_recorder_open(&live.recorder, &options, &header, err, sizeof err) == 0, "%s",
          err);
    prompt(&d, 9);
    for (int i = 0; i < iterations; i++) {
        if (i == iterations / 2) {
            drafting_set(&d, "order", "hpd");
            CHECK(esp_session_rewind(d.session, 8) == 0);
            prompt(&d, 3);
        }
        if (!drafting_step(&d))
            prompt(&d, 2);
    }
    esp_session_allow(d.session, 0);
    drafting_step(&d);
    CHECK(esp_recorder_close(live.recorder, err, sizeof err) == 0, "%s", err);
    live.recorder = NULL;
    drafting_close(&d);
}

/* ------------------------------------------------------------------ equal */

static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_ids(const int32_t *a, const int32_t *b, int count)
{
    return count == 0 || memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static void same_node(const struct esp_node *a, const struct esp_node *b, int index,
                      const char *what)
{
    CHECK(a->token == b->token && a->parent == b->parent && a->depth == b->depth &&
              a->rank == b->rank && a->copies == b->copies && a->copied == b->copied,
          "%s: node %d: %d %d %d %d %d, not %d %d %d %d %d", what, index, a->token, a->parent,
          a->depth, a->rank, a->copies, b->token, b->parent, b->depth, b->rank, b->copies);
    CHECK(same_float(a->q, b->q) && same_float(a->cumulative_log_q, b->cumulative_log_q) &&
              same_float(a->confidence, b->confidence) && same_float(a->value, b->value),
          "%s: node %d: q %g log %g confidence %g value %g, not %g %g %g %g", what, index, a->q,
          a->cumulative_log_q, a->confidence, a->value, b->q, b->cumulative_log_q,
          b->confidence, b->value);
    CHECK(same_float(a->p, b->p) && same_float(a->u, b->u) &&
              same_float(a->acceptance, b->acceptance),
          "%s: node %d: p %g u %g acceptance %g, not %g %g %g", what, index, a->p, a->u,
          a->acceptance, b->p, b->u, b->acceptance);
    CHECK(same_float(a->branching, b->branching) &&
              same_float(a->acceptance_rate, b->acceptance_rate) &&
              same_float(a->ceiling, b->ceiling),
          "%s: node %d: branching %g rate %g ceiling %g, not %g %g %g", what, index,
          a->branching, a->acceptance_rate, a->ceiling, b->branching, b->acceptance_rate,
          b->ceiling);
    CHECK(a->verdict == b->verdict && a->reason == b->reason && a->drawn == b->drawn,
          "%s: node %d: verdict %d reason %d drawn %d, not %d %d %d", what, index, a->verdict,
          a->reason, a->drawn, b->verdict, b->reason, b->drawn);
}

static void same_gauge(const struct esp_gauge *a, const struct esp_gauge *b, const char *what)
{
    CHECK(strcmp(a->name, b->name) == 0 && same_double(a->before, b->before) &&
              same_double(a->after, b->after) && same_double(a->minimum, b->minimum) &&
              same_double(a->maximum, b->maximum),
          "%s: gauge %s %g %g, not %s %g %g", what, a->name, a->before, a->after, b->name,
          b->before, b->after);
}

void recorded_same(const struct esp_iteration *a, const struct esp_iteration *b,
                   const char *what)
{
    CHECK(a->index == b->index && a->position == b->position && a->deepest == b->deepest &&
              a->mask_blocks == b->mask_blocks && a->state_bytes == b->state_bytes &&
              a->state_read == b->state_read && a->state_written == b->state_written &&
              a->lossy == b->lossy,
          "%s: index %d position %d deepest %d blocks %d, not %d %d %d %d", what, a->index,
          a->position, a->deepest, a->mask_blocks, b->index, b->position, b->deepest,
          b->mask_blocks);
    CHECK(a->draft_passes == b->draft_passes && a->target_passes == b->target_passes,
          "%s: %d draft and %d target passes, not %d and %d", what, a->draft_passes,
          a->target_passes, b->draft_passes, b->target_passes);
    CHECK(a->tree.count == b->tree.count && a->tree.verified == b->tree.verified &&
              a->path_length == b->path_length && a->committed_count == b->committed_count &&
              a->gauge_count == b->gauge_count,
          "%s: counts %d %d %d %d %d, not %d %d %d %d %d", what, a->tree.count,
          a->tree.verified, a->path_length, a->committed_count, a->gauge_count, b->tree.count,
          b->tree.verified, b->path_length, b->committed_count, b->gauge_count);
    for (int i = 0; i < a->tree.count; i++)
        same_node(&a->tree.nodes[i], &b->tree.nodes[i], i, what);
    CHECK(same_ids(a->tree.order, b->tree.order, a->tree.verified) &&
              same_ids(a->path, b->path, a->path_length) &&
              same_ids(a->committed, b->committed, a->committed_count),
          "%s: the order, the path or the committed tokens differ", what);
    CHECK(a->bonus == b->bonus && same_float(a->bonus_u, b->bonus_u), "%s: bonus", what);
    for (int i = 0; i < a->gauge_count; i++)
        same_gauge(&a->gauges[i], &b->gauges[i], what);
    CHECK(a->choice_count == b->choice_count, "%s: %d choices, not %d", what, a->choice_count,
          b->choice_count);
    for (int i = 0; i < a->choice_count; i++) {
        const struct esp_shape_choice *x = &a->choices[i], *y = &b->choices[i];
        CHECK(x->paths == y->paths && x->stem == y->stem && x->branch == y->branch &&
                  same_double(x->share, y->share) && same_double(x->tokens, y->tokens) &&
                  same_double(x->seconds, y->seconds),
              "%s: choice %d", what, i);
    }
    for (int i = 0; i < ESP_STAGES; i++)
        CHECK(same_double(a->seconds[i], b->seconds[i]), "%s: seconds of stage %d: %g, not %g",
              what, i, a->seconds[i], b->seconds[i]);
    CHECK(same_double(a->baseline, b->baseline) && strcmp(a->drafter, b->drafter) == 0 &&
              strcmp(a->verifier, b->verifier) == 0,
          "%s: the baseline, the drafter or the verifier differs", what);
}

void recorded_mark(struct esp_recorder *recorder, const char *text)
{
    esp_recorder_event(recorder, &(struct esp_event){.type = ESP_EVENT_MARKER, .text = text});
}
