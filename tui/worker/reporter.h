/* reporter.h - what the engine's thread tells the interface: snapshots through the ring
 * (ring.h), and a descriptor that becomes readable when there are some. */
#ifndef ESP_REPORTER_H
#define ESP_REPORTER_H

#include <stdatomic.h>

#include "tui/worker/models.h"
#include "tui/model/ring.h"

struct esp_reporter {
    struct esp_ring *ring;
    int wake;          /* descriptor */
    atomic_bool awake; /* it is readable */
    double woken;      /* when an iteration last made it so */
    int phase;         /* that was told last */
};

/* Returns 0 or ESP_E_MEMORY; close what was opened either way. */
int esp_reporter_open(struct esp_reporter *report);
void esp_reporter_close(struct esp_reporter *report);

/* ---- the engine's side */

void esp_reporter_wake(struct esp_reporter *report);
/* The same for an iteration, but not for each of many: every wake-up takes a processor from
 * those that compute. What is not announced now goes with the next. */
void esp_reporter_wake_for_iteration(struct esp_reporter *report);

/* An answer to a command: `type` is MESSAGE, ERROR, REFUSED or CLEAR. */
void esp_reporter_tell(struct esp_reporter *report, int type, const char *text);
void esp_reporter_phase(struct esp_reporter *report, int phase, const char *text,
                        double fraction);
/* What is loaded and set now; `anew` as in esp_setup. */
void esp_reporter_loaded(struct esp_reporter *report, const struct esp_models *pair, int serial,
                         bool anew);

/* ---- the interface's side */

/* Before reading the ring: the descriptor is not readable any more until there is more. */
void esp_reporter_rest(struct esp_reporter *report);

#endif
