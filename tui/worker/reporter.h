/* reporter.h - reports from the engine thread to the UI thread: snapshots through the ring
 * (ring.h), and a descriptor that becomes readable when there are new ones. */
#ifndef ESP_REPORTER_H
#define ESP_REPORTER_H

#include <stdatomic.h>

#include "tui/worker/models.h"
#include "tui/model/ring.h"

struct esp_reporter {
    struct esp_ring *ring;
    int wake[2];       /* a pipe: its reading end, its writing end */
    atomic_bool awake; /* the pipe is readable */
    double woken;      /* the last time an iteration made it readable, by esp_clock() */
    int phase;         /* last reported phase */
};

/* Returns 0 or ESP_E_MEMORY; close the reporter in both cases. */
int esp_reporter_open(struct esp_reporter *report);
void esp_reporter_close(struct esp_reporter *report);

/* ---- for the engine thread */

/* Makes the descriptor readable. */
void esp_reporter_wake(struct esp_reporter *report);
/* Makes the descriptor readable after an iteration, but at a limited rate, because every
 * wake-up takes a processor from the computation. The next wake-up also announces the
 * iterations that were skipped. */
void esp_reporter_wake_for_iteration(struct esp_reporter *report);

/* Answers a command. `type` is ESP_SNAPSHOT_MESSAGE, ERROR, REFUSED, CLEAR or RECORD. */
__attribute__((format(printf, 3, 4))) void esp_reporter_tell(struct esp_reporter *report,
                                                             int type, const char *format, ...);
void esp_reporter_phase(struct esp_reporter *report, int phase, const char *text,
                        double fraction);
/* Reports the configuration of the compared session, or that there is none (NULL). */
void esp_reporter_compared(struct esp_reporter *report, const struct esp_session *session);
/* Reports the loaded models and the settings. For `anew` see struct esp_setup. */
void esp_reporter_loaded(struct esp_reporter *report, const struct esp_models *pair, int serial,
                         bool anew);

/* ---- for the UI thread */

/* Call it before reading the ring. Makes the descriptor unreadable until the next snapshot. */
void esp_reporter_rest(struct esp_reporter *report);

#endif
