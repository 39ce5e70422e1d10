/* snapshot.c - copies events into snapshots. It runs in the engine thread; see snapshot.h. */
#include "tui/model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>

int esp_snapshot_reserve(struct esp_snapshot *snapshot, int count)
{
    int needed = snapshot->token_count + count;
    if (needed <= snapshot->token_capacity)
        return ESP_OK;
    struct esp_written *grown = realloc(snapshot->tokens, (size_t)needed * 2 * sizeof *grown);
    if (!grown)
        return ESP_E_MEMORY;
    snapshot->tokens = grown;
    snapshot->token_capacity = needed * 2;
    return ESP_OK;
}

/* Appends the tokens of an event to a snapshot. */
static int append_event(struct esp_snapshot *snapshot, const struct esp_event *event,
                        const int32_t *tokens, int count)
{
    const struct esp_iteration *it = event->iteration;
    int status = esp_snapshot_reserve(snapshot, count);
    for (int i = 0; status == 0 && i < count; i++) {
        struct esp_written *token = &snapshot->tokens[snapshot->token_count++];
        *token = (struct esp_written){.token = tokens[i],
                                      .iteration = it ? it->index : ESP_BY_NO_ITERATION,
                                      .kind = (uint8_t)esp_text_kind_of(event, i)};
        if (it && it->scores)
            token->score = it->scores[i];
    }
    return status;
}

int esp_snapshot_merge(struct esp_snapshot *snapshot, const struct esp_event *event)
{
    const struct esp_iteration *it = event->iteration;
    const struct esp_totals totals = esp_totals_of(it);
    int status = append_event(snapshot, event, it->committed, it->committed_count);
    if (status < 0)
        return status;
    esp_totals_add(&snapshot->totals, &totals);
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
