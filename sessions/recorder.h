/* recorder.h - records a session to a file (*.esp.jsonl).
 *
 * The session's observer passes every event to the recorder, which writes it at once, with one
 * write: a program that is killed loses at most the current event. A failure (a full disk, a
 * closed pipe, a stalled reader) suspends the recording for good, with one sentence that says
 * why; the session goes on after at most a second. The file holds prompts, so only its owner
 * may read it (mode 0600, minus the umask). Only one recorder writes to it at a time.
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
    /* Replaces write(2); NULL: write(2). */
    ssize_t (*write)(int fd, const void *bytes, size_t length);
};

/* Fills a header from the current engine and session, except terminal and start. */
void esp_recording_describe(struct esp_recording_header *header,
                            const struct esp_engine *engine, const struct esp_session *session);

/* Creates the file and writes the header, adding version, program and start. Returns 0, or a
 * negative status with a sentence in err; then no new file is left behind. */
int esp_recorder_open(struct esp_recorder **recorder,
                      const struct esp_recorder_options *options,
                      const struct esp_recording_header *header, char *err, size_t errlen);
/* Any event of the session, in order. Its time is stored relative to the recording's start. */
void esp_recorder_event(struct esp_recorder *recorder, const struct esp_event *event);
/* Why the recording was suspended, as a sentence; "" while it goes on. */
const char *esp_recorder_trouble(const struct esp_recorder *recorder);
/* Records the end of a running generation that was stopped from outside, with the reason. */
void esp_recorder_end(struct esp_recorder *recorder, const char *why);
/* Ends the recording (NULL: nothing). Returns 0, or a negative status with a sentence in err if
 * it was suspended or could not be closed. */
int esp_recorder_close(struct esp_recorder *recorder, char *err, size_t errlen);

#endif
