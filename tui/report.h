/* report.h - what the engine's thread tells the interface: snapshots through the ring (ring.h),
 * and a descriptor that becomes readable when there are some. */
#ifndef ESP_REPORT_H
#define ESP_REPORT_H

#include <stdatomic.h>
#include <time.h>

#include "pair.h"
#include "ring.h"

struct esp_report {
    struct esp_ring *ring;
    int wake;              /* descriptor */
    atomic_bool awake;     /* it is readable */
    struct timespec woken; /* when an iteration last made it so */
    int phase;             /* that was told last */
};

/* Returns 0 or ESP_E_MEMORY; close what was opened either way. */
int esp_report_open(struct esp_report *report);
void esp_report_close(struct esp_report *report);

/* ---- the engine's side */

void esp_report_wake(struct esp_report *report);
/* The same for an iteration, but not for each of many: every wake-up takes a processor from
 * those that compute. What is not announced now goes with the next. */
void esp_report_wake_for_iteration(struct esp_report *report);

/* An answer to a command: `type` is MESSAGE, ERROR, REFUSED or CLEAR. */
void esp_report_tell(struct esp_report *report, int type, const char *text);
void esp_report_phase(struct esp_report *report, int phase, const char *text, double fraction);
/* What is loaded and set now; `anew` as in esp_loaded. */
void esp_report_loaded(struct esp_report *report, const struct esp_pair *pair, int serial,
                       bool anew);

/* ---- the interface's side */

/* Before reading the ring: the descriptor is not readable any more until there is more. */
void esp_report_rest(struct esp_report *report);

#endif
