/* reporter.h - reports from the engine thread to the UI thread. It writes snapshots to the ring
 * (ring.h), and makes a file descriptor readable when there are new snapshots. */
#ifndef ESP_REPORTER_H
#define ESP_REPORTER_H

#include <stdatomic.h>

#include "tui/worker/models.h"
#include "tui/model/ring.h"

struct esp_reporter {
    struct esp_ring *ring;
    int wake[2];       /* a pipe: wake[0] is for reading, wake[1] for writing */
    atomic_bool awake; /* true if the pipe is readable */
    double woken; /* the value of esp_clock() when an iteration last made the pipe readable */
    int phase;    /* the phase that was reported last */
};

/* Returns 0 or ESP_E_MEMORY. The reporter must be closed in both cases. */
int esp_reporter_open(struct esp_reporter *report);
void esp_reporter_close(struct esp_reporter *report);

/* ---- for the engine thread */

/* Makes the descriptor readable, which wakes the UI thread. */
void esp_reporter_wake(struct esp_reporter *report);
/* Makes the descriptor readable after an iteration. Skips some iterations, because each wake-up
 * takes a processor from the computation. The next wake-up also announces the skipped
 * iterations. */
void esp_reporter_wake_for_iteration(struct esp_reporter *report);

/* Answers a command. `type` is ESP_SNAPSHOT_MESSAGE, ERROR, REFUSED, CLEAR or RECORD. */
__attribute__((format(printf, 3, 4))) void esp_reporter_tell(struct esp_reporter *report,
                                                             int type, const char *format, ...);
void esp_reporter_phase(struct esp_reporter *report, int phase, const char *text,
                        double fraction);
/* Reports the drafter and verifier of the compared session. If `session` is NULL, reports that
 * there is no such session. */
void esp_reporter_compared(struct esp_reporter *report, const struct esp_session *session);
/* Reports the loaded models and the settings. struct esp_setup describes `anew`. */
void esp_reporter_loaded(struct esp_reporter *report, const struct esp_models *pair, int serial,
                         bool anew);

/* ---- for the UI thread */

/* Must be called before the ring is read. After this call, the descriptor is not readable until
 * there is another snapshot. */
void esp_reporter_rest(struct esp_reporter *report);

#endif
