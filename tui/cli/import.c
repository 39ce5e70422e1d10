/* import.c - adds a recording to the library of kept sessions. */
#include <limits.h>
#include <stdio.h>

#include "engine/find_models.h"
#include "kernels/status.h"
#include "sessions/recording.h"
#include "tui/cli/cli.h"
#include "tui/worker/keeper.h"

/* Stores the latest error message of the keeper (tui/worker/keeper.h). */
static void hear(void *user, const char *sentence)
{
    snprintf(user, 700, "%s", sentence);
}

/* Finds the path of the model that a recording names. Writes "" if it cannot be found. */
static void find_model(const char *name, char *path, size_t size)
{
    char err[512];
    if (!*name || esp_model_path(path, size, name, err, sizeof err) < 0)
        *path = '\0';
}

static int feed(struct esp_keeper *keeper, struct esp_recording *recording, char *err,
                size_t errlen)
{
    const struct esp_event *event;
    int status = ESP_OK;
    for (int i = 0; i < esp_recording_events(recording) && status == ESP_OK; i++) {
        status = esp_recording_read(recording, i, &event, err, errlen);
        if (status == ESP_OK)
            esp_keeper_event(keeper, event);
    }
    return status;
}

int cli_import(const char *library, const char *file, char *err, size_t errlen)
{
    char target[PATH_MAX], draft[PATH_MAX], trouble[700] = "";
    struct esp_recording *recording;
    struct esp_keeper *keeper;
    int status = esp_recording_open(&recording, file, err, errlen);
    if (status < 0)
        return status;
    const struct esp_recording_header *header = esp_recording_header(recording);
    const struct esp_tokens tokens = {esp_recording_token_text, recording};
    find_model(header->target.name, target, sizeof target);
    find_model(header->draft.name, draft, sizeof draft);
    if (esp_keeper_open(&keeper, library, 0, hear, trouble) < 0) {
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the recording");
    } else {
        esp_keeper_private(keeper, false);
        esp_keeper_models(keeper, header, target, draft, &tokens, false);
        status = feed(keeper, recording, err, errlen);
        esp_keeper_close(keeper);
    }
    if (status == ESP_OK && *trouble)
        status = esp_fail(err, errlen, ESP_E_FILE, "%s", trouble);
    esp_recording_close(recording);
    return status;
}
