/* session_recording.c - see session_recording.h. */
#include "tui/worker/session_recording.h"

#include <stdio.h>
#include <string.h>

static const char *token_text(void *user, int32_t token, size_t *length)
{
    const struct esp_models *pair = user;
    return esp_token_bytes(pair->engine, token, length);
}

static bool record_prompt(struct esp_session_recording *record, const int32_t *text, int start,
                          int end, int said, int said_end, char *err, size_t errlen)
{
    const struct esp_event prompt = {
        .type = ESP_EVENT_PROMPT,
        .tokens = text + start,
        .token_count = end - start,
        .marks = said - start,
        .marks_after = end - said_end,
    };
    return end <= start || esp_session_recording_event(record, &prompt, err, errlen);
}

/* Records the text so far as prompts: for each turn the user's text and the answer. */
static bool record_text(struct esp_session_recording *record, const struct esp_session *session,
                        char *err, size_t errlen)
{
    struct esp_turn_places turn;
    int count, done = 0;
    const int32_t *text = esp_session_tokens(session, &count);
    const bool chat = *esp_session_chat(session);
    bool recorded = true;
    for (int i = 0; chat && recorded && esp_session_turn(session, i, &turn); i++) {
        /* The answer before this turn, and the mark at its end, if any. */
        const bool ended =
            turn.before > done && esp_session_is_end(session, text[turn.before - 1]);
        recorded = record_prompt(record, text, done, turn.before, done, turn.before - ended,
                                 err, errlen) &&
                   record_prompt(record, text, turn.before, turn.answer, turn.said,
                                 turn.said_end, err, errlen);
        done = turn.answer;
    }
    const bool ended = chat && count > done && esp_session_is_end(session, text[count - 1]);
    return recorded &&
           record_prompt(record, text, done, count, done, count - ended, err, errlen);
}

int esp_session_recording_start(struct esp_session_recording *record,
                                const struct esp_models *pair,
                                const struct esp_recording_request *request, char *err,
                                size_t errlen)
{
    struct esp_recorder_options options = {.path = request->path,
                                           .force = request->overwrite,
                                           .tokens = {token_text, (void *)pair}};
    struct esp_recording_header header = {.columns = request->columns, .rows = request->rows};
    esp_recording_describe(&header, pair->engine, pair->session);
    int status = esp_recorder_open(&record->recorder, &options, &header, err, errlen);
    if (status < 0)
        return status;
    snprintf(record->path, sizeof record->path, "%s", request->path);
    record->stepped = false;
    return record_text(record, pair->session, err, errlen) ? (int)ESP_OK : ESP_E_FILE;
}

bool esp_session_recording_step(struct esp_session_recording *record, bool stepped, char *err,
                                size_t errlen)
{
    if (stepped == record->stepped)
        return true;
    record->stepped = stepped;
    return esp_session_recording_event(record,
                                       &(struct esp_event){.type = ESP_EVENT_SETTING,
                                                           .key = "step",
                                                           .text = stepped ? "on" : "off"},
                                       err, errlen);
}

bool esp_session_recording_event(struct esp_session_recording *record,
                                 const struct esp_event *event, char *err, size_t errlen)
{
    if (!record->recorder)
        return true;
    esp_recorder_event(record->recorder, event);
    if (!*esp_recorder_trouble(record->recorder))
        return true;
    esp_session_recording_stop(record, err, errlen);
    return false;
}

int esp_session_recording_stop(struct esp_session_recording *record, char *err, size_t errlen)
{
    esp_recorder_end(record->recorder, "");
    int status = esp_recorder_close(record->recorder, err, errlen);
    record->recorder = NULL;
    return status;
}
