/* session_recording.c - see session_recording.h. */
#include "tui/worker/session_recording.h"

#include <stdio.h>
#include <string.h>

static const char *token_text(void *user, int32_t token, size_t *length)
{
    const struct esp_models *pair = user;
    return esp_token_bytes(pair->engine, token, length);
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
    int count;
    esp_recording_describe(&header, pair->engine, pair->session);
    int status = esp_recorder_open(&record->recorder, &options, &header, err, errlen);
    if (status < 0)
        return status;
    snprintf(record->path, sizeof record->path, "%s", request->path);
    record->stepped = false;
    const int32_t *tokens = esp_session_tokens(pair->session, &count);
    struct esp_event text = {.type = ESP_EVENT_PROMPT, .tokens = tokens, .token_count = count};
    if (count > 0 && !esp_session_recording_event(record, &text, err, errlen))
        return ESP_E_FILE;
    return ESP_OK;
}

bool esp_session_recording_step(struct esp_session_recording *record, bool stepped, char *err, size_t errlen)
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

bool esp_session_recording_event(struct esp_session_recording *record, const struct esp_event *event, char *err,
                      size_t errlen)
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
