/* recorder.h - records a session as it happens (*.esp.jsonl).
 *
 * The session's observer passes every event on to the recorder, which writes it at once, with
 * one write: a program that is killed loses at most the event it was writing. A failure (a full
 * disk, a closed pipe, a reader that does not read) suspends the recording for good, with one
 * sentence that says why; the session goes on after waiting a second at most. The file holds
 * prompts, so only its owner may read it (mode 0600, less what the umask takes away). It has
 * one recorder at a time.
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
/* Records that the generation, if one runs, was ended from outside, with the reason. */
void esp_recorder_end(struct esp_recorder *recorder, const char *why);
/* Ends the recording (NULL: nothing). Returns 0, or a negative status with a sentence in err if
 * it was suspended or could not be closed. */
int esp_recorder_close(struct esp_recorder *recorder, char *err, size_t errlen);

#endif
