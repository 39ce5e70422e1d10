/* worker_record.c - records the session of the engine thread; see worker_parts.h.
 *
 * At the start and the end of a recording, ESP_SNAPSHOT_RECORD reports the path of the
 * recording ("" at the end), and a message for the user is sent.
 */
#include "tui/worker/worker_parts.h"

#include <stdio.h>
#include <string.h>

static const char *token_text(void *user, int32_t token, size_t *length)
{
    const struct esp_models *pair = user;
    return esp_token_bytes(pair->engine, token, length);
}

void esp_worker_stop_recording(struct esp_worker *worker)
{
    struct esp_session_recording *record = &worker->record;
    char err[512];
    if (!record->recorder)
        return;
    esp_recorder_end(record->recorder, "");
    int status = esp_recorder_close(record->recorder, err, sizeof err);
    record->recorder = NULL;
    ESP_TELL(worker, RECORD, "%s", "");
    if (status < 0)
        ESP_TELL(worker, ERROR, "%s", err);
    else
        ESP_TELL(worker, MESSAGE, "recorded to %.500s", record->path);
}

/* Records an event. If writing fails, ends the recording. */
static void record_event(struct esp_worker *worker, const struct esp_event *event)
{
    if (!worker->record.recorder)
        return;
    esp_recorder_event(worker->record.recorder, event);
    if (*esp_recorder_trouble(worker->record.recorder))
        esp_worker_stop_recording(worker);
}

void esp_worker_note(struct esp_worker *worker, const struct esp_event *event)
{
    struct esp_session_recording *record = &worker->record;
    if (event->type == ESP_EVENT_ITERATION &&
        record->stepped != esp_mailbox_steps(&worker->mailbox)) {
        record->stepped = !record->stepped;
        record_event(worker, &(struct esp_event){.type = ESP_EVENT_SETTING,
                                                 .key = "step",
                                                 .text = record->stepped ? "on" : "off"});
    }
    record_event(worker, event);
}

/* Records text[start, end) as a prompt. The user has typed only text[said, said_end) of it. */
static void record_prompt(struct esp_worker *worker, const int32_t *text, int start, int end,
                          int said, int said_end)
{
    if (end > start)
        record_event(worker, &(struct esp_event){.type = ESP_EVENT_PROMPT,
                                                 .tokens = text + start,
                                                 .token_count = end - start,
                                                 .marks = said - start,
                                                 .marks_after = end - said_end});
}

/* Records the current text as prompts: for each turn, the user's text and the answer. */
static void record_text(struct esp_worker *worker)
{
    const struct esp_session *session = worker->pair.session;
    struct esp_turn_places turn;
    int count, done = 0;
    const int32_t *text = esp_session_tokens(session, &count);
    const bool chat = *esp_session_chat(session);
    for (int i = 0; chat && esp_session_turn(session, i, &turn); i++) {
        /* The answer before this turn can end with a control token. */
        const bool ended =
            turn.before > done && esp_session_is_end(session, text[turn.before - 1]);
        record_prompt(worker, text, done, turn.before, done, turn.before - ended);
        record_prompt(worker, text, turn.before, turn.answer, turn.said, turn.said_end);
        done = turn.answer;
    }
    const bool ended = chat && count > done && esp_session_is_end(session, text[count - 1]);
    record_prompt(worker, text, done, count, done, count - ended);
}

void esp_worker_record(struct esp_worker *worker, const struct esp_message *command)
{
    struct esp_session_recording *record = &worker->record;
    struct esp_recorder_options options = {.path = command->text[0],
                                           .force = command->flag,
                                           .tokens = {token_text, &worker->pair}};
    struct esp_recording_header header = {.columns = command->number[0],
                                          .rows = command->number[1]};
    char err[512];
    if (!options.path) {
        esp_worker_stop_recording(worker);
        return;
    }
    if (record->recorder) {
        ESP_TELL(worker, ERROR, "already recording; :record ends it");
        return;
    }
    esp_recording_describe(&header, worker->pair.engine, worker->pair.session);
    if (esp_recorder_open(&record->recorder, &options, &header, err, sizeof err) < 0) {
        ESP_TELL(worker, ERROR, "%s", err);
        return;
    }
    snprintf(record->path, sizeof record->path, "%s", options.path);
    record->stepped = false;
    record_text(worker);
    if (!record->recorder)
        return;
    ESP_TELL(worker, RECORD, "%s", record->path);
    ESP_TELL(worker, MESSAGE, "recording to %.500s", record->path);
}
