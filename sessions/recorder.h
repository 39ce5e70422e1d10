/* recorder.h - records a session to a file (*.esp.jsonl).
 *
 * The session's observer passes every event to the recorder. The recorder writes each event
 * immediately with a single write(), so a program that is killed loses at most one event. A
 * failure (a full disk, a closed pipe, a reader that no longer reads) ends the recording. The
 * session is delayed by at most a second, and esp_recorder_trouble() says what happened. The
 * file contains prompts, so only its owner may read it (mode 0600, minus the umask). Only one
 * recorder can write to a file at a time.
 */
#ifndef ESP_RECORDER_H
#define ESP_RECORDER_H

#include <sys/types.h>

#include "sessions/recording.h"

struct esp_recorder;

struct esp_recorder_options {
    const char *path;
    bool force; /* overwrite an existing file, unless another recorder writes to it */
    struct esp_tokens tokens;
    /* A replacement for write(2), for tests; NULL means write(2). */
    ssize_t (*write)(int fd, const void *bytes, size_t length);
};

/* Fills a header from the engine and the session. The caller sets the size of the terminal;
 * esp_recorder_open() sets version, program and start time. */
void esp_recording_describe(struct esp_recording_header *header,
                            const struct esp_engine *engine, const struct esp_session *session);

/* Creates the file and writes the header, with version, program and start time. Returns 0, or
 * a negative status with a sentence in err. After a failure, a new file is removed. */
int esp_recorder_open(struct esp_recorder **recorder,
                      const struct esp_recorder_options *options,
                      const struct esp_recording_header *header, char *err, size_t errlen);
/* Records an event of the session. Call this for every event, in order. The stored time is the
 * number of seconds from the start of the recording to this call. */
void esp_recorder_event(struct esp_recorder *recorder, const struct esp_event *event);
/* Returns a sentence that says why the recording was suspended, or "" if it was not. */
const char *esp_recorder_trouble(const struct esp_recorder *recorder);
/* Records that the running generation was stopped from outside; `why` is the reason. Does
 * nothing if no generation is running. */
void esp_recorder_end(struct esp_recorder *recorder, const char *why);
/* Ends the recording; `recorder` may be NULL. Returns 0, or a negative status with a sentence
 * in err if the recording was suspended or the file could not be closed. */
int esp_recorder_close(struct esp_recorder *recorder, char *err, size_t errlen);

#endif
