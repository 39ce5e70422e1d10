/* recorder.h - records a session to a file (*.esp.jsonl).
 *
 * The session's observer passes every event to the recorder, which writes it at once, in a
 * single write, so a program that is killed loses at most the current event. A failure (a full
 * disk, a closed pipe, a stalled reader) ends the recording, and one sentence says why; it
 * delays the session by at most a second. The file contains prompts, so only its owner may
 * read it (mode 0600, minus the umask). Only one recorder writes to it at a time.
 */
#ifndef ESP_RECORDER_H
#define ESP_RECORDER_H

#include <sys/types.h>

#include "sessions/recording.h"

struct esp_recorder;

struct esp_recorder_options {
    const char *path;
    bool force; /* overwrite the file if there is one, unless another recorder writes to it */
    struct esp_tokens tokens;
    /* A replacement for write(2), for tests; NULL means write(2). */
    ssize_t (*write)(int fd, const void *bytes, size_t length);
};

/* Fills a header from the current engine and session, except for the size of the terminal and
 * the time of the start. */
void esp_recording_describe(struct esp_recording_header *header,
                            const struct esp_engine *engine, const struct esp_session *session);

/* Creates the file and writes the header, adding version, program and start. Returns 0, or a
 * negative status with a sentence in err and without leaving a new file behind. */
int esp_recorder_open(struct esp_recorder **recorder,
                      const struct esp_recorder_options *options,
                      const struct esp_recording_header *header, char *err, size_t errlen);
/* Records an event of the session; to be called for all events, in order. The time of
 * recording is stored, relative to the start of the recording. */
void esp_recorder_event(struct esp_recorder *recorder, const struct esp_event *event);
/* A sentence that says why the recording was suspended; "" while it goes on. */
const char *esp_recorder_trouble(const struct esp_recorder *recorder);
/* Records the end of a running generation that was stopped from outside, with the reason. */
void esp_recorder_end(struct esp_recorder *recorder, const char *why);
/* Ends the recording; `recorder` may be NULL. Returns 0, or a negative status with a sentence
 * in err if the recording was suspended or the file could not be closed. */
int esp_recorder_close(struct esp_recorder *recorder, char *err, size_t errlen);

#endif
