/* snapshot.c - copies events in the engine thread; see snapshot.h. */
#include "tui/model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>

static int append(struct esp_snapshot *snapshot, const int32_t *tokens, int count)
{
    int needed = snapshot->token_count + count;
    if (needed > snapshot->token_capacity) {
        int capacity = needed * 2;
        struct esp_text_token *grown =
            realloc(snapshot->tokens, (size_t)capacity * sizeof *grown);
        if (!grown)
            return ESP_E_MEMORY;
        snapshot->tokens = grown;
        snapshot->token_capacity = capacity;
    }
    for (int i = 0; i < count; i++)
        snapshot->tokens[snapshot->token_count++] = (struct esp_text_token){.token = tokens[i]};
    return 0;
}

/* Appends the tokens of an event; `kind`: the kind of each token. */
static int append_event(struct esp_snapshot *snapshot, const struct esp_event *event,
                        const int32_t *tokens, int count)
{
    const int first = snapshot->token_count, status = append(snapshot, tokens, count);
    for (int i = 0; status == 0 && i < count; i++)
        snapshot->tokens[first + i].kind = (uint8_t)esp_text_kind_of(event, i);
    return status;
}

void esp_totals_add(struct esp_totals *totals, const struct esp_totals *more)
{
    totals->iterations += more->iterations;
    totals->committed += more->committed;
    totals->drafted += more->drafted;
    totals->accepted += more->accepted;
    for (int i = 0; i < ESP_STAGES; i++)
        totals->seconds[i] += more->seconds[i];
}

static void add_iteration(struct esp_totals *totals, const struct esp_iteration *it)
{
    struct esp_totals one = {
        .iterations = 1,
        .committed = it->committed_count,
        .drafted = it->tree.verified > 0 ? it->tree.verified - 1 : 0,
        .accepted = it->path_length,
    };
    for (int i = 0; i < ESP_STAGES; i++)
        one.seconds[i] = it->seconds[i];
    esp_totals_add(totals, &one);
}

int esp_snapshot_merge(struct esp_snapshot *snapshot, const struct esp_event *event)
{
    const struct esp_iteration *it = event->iteration;
    int status = append_event(snapshot, event, it->committed, it->committed_count);
    if (status < 0)
        return status;
    add_iteration(&snapshot->totals, it);
    return esp_iteration_copy(&snapshot->iteration, it);
}

void esp_snapshot_reset(struct esp_snapshot *snapshot, int type)
{
    snapshot->type = type;
    snapshot->second = false;
    snapshot->fraction = 0;
    snapshot->stage = snapshot->phase = snapshot->token_count = 0;
    snapshot->totals = (struct esp_totals){.iterations = 0};
    snapshot->key[0] = snapshot->text[0] = '\0';
}

int esp_snapshot_take(struct esp_snapshot *snapshot, const struct esp_event *event)
{
    esp_snapshot_reset(snapshot, event->type);
    snapshot->stage = event->stage;
    snapshot->kept = event->token_count;
    snapshot->start = event->token_start;
    snapshot->lossy = event->lossy;
    snprintf(snapshot->key, sizeof snapshot->key, "%s", event->key ? event->key : "");
    snprintf(snapshot->text, sizeof snapshot->text, "%s", event->text ? event->text : "");
    switch (event->type) {
    case ESP_EVENT_PROMPT:
        return append_event(snapshot, event, event->tokens, event->token_count);
    case ESP_EVENT_ITERATION:
        return esp_snapshot_merge(snapshot, event);
    case ESP_EVENT_LAYER:
    case ESP_EVENT_STAGE:
        return esp_iteration_copy(&snapshot->iteration, event->iteration);
    default:
        return 0;
    }
}

void esp_snapshot_free(struct esp_snapshot *snapshot)
{
    esp_iteration_free(&snapshot->iteration);
    free(snapshot->tokens);
    snapshot->tokens = NULL;
    snapshot->token_count = snapshot->token_capacity = 0;
}
