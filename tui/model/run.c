/* run.c - stores the events of a session in memory; see run.h. */
#include "tui/model/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/grow.h"
#include "sessions/recording.h"

void esp_run_init(struct esp_run *run)
{
    *run = (struct esp_run){.trace = {.whole = true}};
    pthread_mutex_init(&run->lock, NULL);
}

void esp_run_clear(struct esp_run *run)
{
    esp_trace_free(&run->trace);
    run->token_count = 0;
    run->end[0] = '\0';
    run->complete = false;
}

void esp_run_free(struct esp_run *run)
{
    esp_run_clear(run);
    esp_texts_free(&run->texts);
    free(run->tokens);
    pthread_mutex_destroy(&run->lock);
}

/* Copies the text of a token. */
static int own_text(struct esp_run *run, int32_t token, const struct esp_tokens *tokens)
{
    size_t length = 0;
    const char *bytes = tokens->text ? tokens->text(tokens->user, token, &length) : NULL;
    return esp_texts_add(&run->texts, token, bytes, bytes ? length : 0);
}

static int add_token(struct esp_run *run, int32_t token, int kind,
                     const struct esp_tokens *tokens)
{
    if (own_text(run, token, tokens) < 0 ||
        esp_grow(&run->tokens, run->token_count, &run->token_capacity, sizeof *run->tokens) < 0)
        return ESP_E_MEMORY;
    run->tokens[run->token_count++] = (struct esp_text_token){token, (uint8_t)kind};
    return ESP_OK;
}

/* Copies the names and texts of an iteration, because the originals belong to a recording or a
 * model. */
static int own_texts(struct esp_run *run, struct esp_iteration *it,
                     const struct esp_tokens *tokens)
{
    for (int i = 0; i < it->gauge_count; i++)
        if (!(it->gauges[i].name = esp_texts_name(&run->texts, it->gauges[i].name)))
            return ESP_E_MEMORY;
    for (int i = 0; i < it->tree.count; i++)
        if (own_text(run, it->tree.nodes[i].token, tokens) < 0)
            return ESP_E_MEMORY;
    return ESP_OK;
}

static int add_step(struct esp_run *run, const struct esp_iteration *it,
                    const struct esp_tokens *tokens)
{
    struct esp_iteration owned = *it;
    int status = ESP_OK;
    for (int i = 0; i < it->committed_count && status == ESP_OK; i++)
        status = add_token(run, it->committed[i],
                           i < it->path_length ? ESP_TEXT_DRAFTED : ESP_TEXT_BONUS, tokens);
    if (status == ESP_OK)
        status = own_texts(run, &owned, tokens);
    return status < 0 ? status : esp_trace_add(&run->trace, &owned, NULL, false);
}

int esp_run_take(struct esp_run *run, const struct esp_event *event,
                 const struct esp_tokens *tokens)
{
    int status = ESP_OK;
    switch (event->type) {
    case ESP_EVENT_PROMPT:
        for (int i = 0; i < event->token_count && status == ESP_OK; i++)
            status = add_token(run, event->tokens[i], ESP_TEXT_PROMPT, tokens);
        return status;
    case ESP_EVENT_ITERATION:
        return add_step(run, event->iteration, tokens);
    case ESP_EVENT_END:
        snprintf(run->end, sizeof run->end, "%.63s", event->text ? event->text : "");
        return ESP_OK;
    default:
        return ESP_OK;
    }
}

static int read_events(struct esp_run *run, struct esp_recording *recording, char *err,
                       size_t errlen)
{
    const struct esp_tokens tokens = {esp_recording_token_text, recording};
    for (int i = 0; i < esp_recording_events(recording); i++) {
        const struct esp_event *event;
        int status = esp_recording_read(recording, i, &event, err, errlen);
        if (status < 0)
            return status;
        if (event->type == ESP_EVENT_CLEAR || event->type == ESP_EVENT_REWIND)
            break;
        if (esp_run_take(run, event, &tokens) < 0)
            return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the recording");
    }
    return ESP_OK;
}

int esp_run_read(struct esp_run *run, const char *path, char *err, size_t errlen)
{
    struct esp_recording *recording;
    int status = esp_recording_open(&recording, path, err, errlen);
    if (status < 0)
        return status;
    const struct esp_recording_header *header = esp_recording_header(recording);
    snprintf(run->drafter, sizeof run->drafter, "%s", header->drafter);
    snprintf(run->verifier, sizeof run->verifier, "%s", header->verifier);
    snprintf(run->target, sizeof run->target, "%s", header->target.name);
    snprintf(run->draft, sizeof run->draft, "%s", header->draft.name);
    run->temperature = header->values.temperature;
    status = read_events(run, recording, err, errlen);
    esp_recording_close(recording);
    run->complete = true;
    if (status == ESP_OK && esp_run_steps(run) == 0)
        status = esp_fail(err, errlen, ESP_E_FORMAT,
                          "%s has no iterations; record a generation first", path);
    return status;
}

struct esp_tokens esp_run_tokens(struct esp_run *run)
{
    return (struct esp_tokens){esp_texts_find, &run->texts};
}

int esp_run_written(const struct esp_run *run)
{
    int written = 0;
    for (int i = 0; i < run->token_count; i++)
        written += run->tokens[i].kind != ESP_TEXT_PROMPT;
    return written;
}

int esp_run_steps(const struct esp_run *run)
{
    return run->trace.kept_count;
}

double esp_run_seconds(const struct esp_run *run)
{
    const int steps = esp_run_steps(run);
    return steps > 0 ? run->trace.course.points[steps - 1].at : 0;
}

int esp_run_steps_at(const struct esp_run *run, double seconds)
{
    int low = 0, high = esp_run_steps(run);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (run->trace.course.points[middle].at <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int esp_run_tokens_after(const struct esp_run *run, int steps)
{
    int64_t written = run->trace.course.points[steps - 1].written;
    int count = 0;
    while (written > 0 && count < run->token_count)
        written -= run->tokens[count++].kind != ESP_TEXT_PROMPT;
    return count;
}
