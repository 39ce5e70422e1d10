/* reporter.h - reports from the engine thread to the UI thread: snapshots through the ring
 * (ring.h), and a descriptor that becomes readable when there are new ones. */
#ifndef ESP_REPORTER_H
#define ESP_REPORTER_H

#include <stdatomic.h>

#include "tui/worker/models.h"
#include "tui/model/ring.h"

struct esp_reporter {
    struct esp_ring *ring;
    int wake[2];       /* a pipe: to read, to write */
    atomic_bool awake; /* it is readable */
    double woken;      /* last time an iteration made it readable */
    int phase;         /* last reported phase */
};

/* Returns 0 or ESP_E_MEMORY; close it in both cases. */
int esp_reporter_open(struct esp_reporter *report);
void esp_reporter_close(struct esp_reporter *report);

/* ---- for the engine thread */

void esp_reporter_wake(struct esp_reporter *report);
/* The same for an iteration, at a limited rate: every wake-up takes a processor from the
 * computation. A skipped one is announced with the next. */
void esp_reporter_wake_for_iteration(struct esp_reporter *report);

/* Answers a command; `type`: MESSAGE, ERROR, REFUSED, CLEAR or RECORD. */
__attribute__((format(printf, 3, 4))) void esp_reporter_tell(struct esp_reporter *report,
                                                             int type, const char *format, ...);
void esp_reporter_phase(struct esp_reporter *report, int phase, const char *text,
                        double fraction);
/* Reports the configuration of the compared session; NULL: there is none. */
void esp_reporter_compared(struct esp_reporter *report, const struct esp_session *session);
/* Reports the loaded models and the settings; `anew`: see esp_setup. */
void esp_reporter_loaded(struct esp_reporter *report, const struct esp_models *pair, int serial,
                         bool anew);

/* ---- for the UI thread */

/* Call it before reading the ring. Makes the descriptor unreadable until the next snapshot. */
void esp_reporter_rest(struct esp_reporter *report);

#endif
