/* session_recording.h - records the session, in the engine thread.
 *
 * The worker reports start and end with ESP_SNAPSHOT_RECORD (the path, or "") and a message.
 */
#ifndef ESP_SESSION_RECORDING_H
#define ESP_SESSION_RECORDING_H

#include <limits.h>

#include "tui/worker/models.h"
#include "sessions/recorder.h"

/* Zeroed: not recording. */
struct esp_session_recording {
    struct esp_recorder *recorder;
    char path[PATH_MAX];
    bool stepped; /* the previous iteration ran in step mode */
};

/* The path is needed only during the call. */
struct esp_recording_request {
    const char *path;  /* NULL: end the recording */
    int columns, rows; /* of the screen, saved in the file */
    bool overwrite;
};

/* Starts to record. The text so far is recorded as a prompt. Keep the pair open while it
 * records. */
int esp_session_recording_start(struct esp_session_recording *record,
                                const struct esp_models *pair,
                                const struct esp_recording_request *request, char *err,
                                size_t errlen);
/* Call it before an iteration's event. `stepped`: it ran in step mode, so its times mean
 * little. A change is recorded as the setting "step". */
bool esp_session_recording_step(struct esp_session_recording *record, bool stepped, char *err,
                                size_t errlen);
/* False: the recording had to be ended, with a message in err. */
bool esp_session_recording_event(struct esp_session_recording *record,
                                 const struct esp_event *event, char *err, size_t errlen);
int esp_session_recording_stop(struct esp_session_recording *record, char *err, size_t errlen);

#endif
