/* session_recording.h - the engine's thread records its session, when the user wants it to.
 *
 * All of it runs in that thread, between events; what happens is told with ESP_SNAPSHOT_RECORD
 * (the path, or "" when nothing is recorded any more) and a message by the worker.
 */
#ifndef ESP_SESSION_RECORDING_H
#define ESP_SESSION_RECORDING_H

#include <limits.h>

#include "tui/worker/models.h"
#include "sessions/recorder.h"

/* Zeroed: nothing is recorded. */
struct esp_session_recording {
    struct esp_recorder *recorder;
    char path[PATH_MAX];
    bool stepped; /* the iteration before was in step mode */
};

/* What is to be recorded where; the path is needed only during the call that takes it. */
struct esp_recording_request {
    const char *path;  /* NULL: nothing any more */
    int columns, rows; /* of the screen, to be remembered */
    bool overwrite;
};

/* Starts as the request says. What there is of a text is recorded as a prompt. The pair must
 * stay as long as it is recorded. */
int esp_session_recording_start(struct esp_session_recording *record,
                                const struct esp_models *pair,
                                const struct esp_recording_request *request, char *err,
                                size_t errlen);
/* Before an iteration's event: whether it ran in step mode, where times mean little. Recorded
 * as a setting, "step", when it changes. */
bool esp_session_recording_step(struct esp_session_recording *record, bool stepped, char *err,
                                size_t errlen);
/* Returns false if the recording had to be ended, with a sentence in err. */
bool esp_session_recording_event(struct esp_session_recording *record,
                                 const struct esp_event *event, char *err, size_t errlen);
int esp_session_recording_stop(struct esp_session_recording *record, char *err, size_t errlen);

#endif
