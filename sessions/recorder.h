/* recorder.h - records a session as it happens (*.esp.jsonl).
 *
 * The session's observer hands every event over; each is written at once, with one write, so
 * that a program that is killed loses at most the event it was writing. What goes wrong on the
 * way (a full disk, a closed pipe, a reader that does not read) suspends the recording for
 * good and is told in one sentence; the session never notices and waits a second at most.
 */
#ifndef ESP_RECORDER_H
#define ESP_RECORDER_H

#include <sys/types.h>

#include "recording.h"

struct esp_recorder;

struct esp_recorder_options {
    const char *path;
    bool force; /* overwrite the file if there is one */
    struct esp_tokens tokens;
    /* Writes like write(2), which is what NULL stands for. */
    ssize_t (*write)(int fd, const void *bytes, size_t length);
};

/* Fills a header from what an engine and a session are now; terminal and start stay as they
 * are. */
void esp_recording_describe(struct esp_recording_header *header,
                            const struct esp_engine *engine, const struct esp_session *session);

/* Makes the file and writes the header, to which version, program and start are added. Returns
 * 0 or a negative status with a sentence in err; then there is no file that was not there
 * before. */
int esp_recorder_open(struct esp_recorder **recorder,
                      const struct esp_recorder_options *options,
                      const struct esp_recording_header *header, char *err, size_t errlen);
/* Any event of the session, in order. Its time becomes that since the recording was begun. */
void esp_recorder_event(struct esp_recorder *recorder, const struct esp_event *event);
/* Why the recording was suspended, as a sentence; "" while it goes on. */
const char *esp_recorder_trouble(const struct esp_recorder *recorder);
/* The generation that ran, if any, was ended from outside: records that, with the reason. */
void esp_recorder_end(struct esp_recorder *recorder, const char *why);
/* Ends the recording (NULL: nothing). Returns 0, or a negative status with a sentence in err if
 * it was suspended or could not be closed. */
int esp_recorder_close(struct esp_recorder *recorder, char *err, size_t errlen);

#endif
