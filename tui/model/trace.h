/* trace.h - stores the past iterations of a session. A trace stores the last iterations
 * completely, some values of earlier iterations, and sums.
 *
 * All code that shows more than one iteration reads a trace: panes, the numbers in the header,
 * comparisons, races, lessons, web pages. Iterations are added one by one.
 *
 * A session can continue forever. Therefore a trace stores only the last ESP_KEPT iterations,
 * and the values (viz/course.h) of at most ESP_POINTS iterations. If `whole` is true, it stores
 * all iterations. Races and lessons use this, because their runs end.
 */
#ifndef ESP_TRACE_H
#define ESP_TRACE_H

#include "sessions/iteration_copy.h"
#include "viz/course.h"

enum { ESP_POINTS = 512, ESP_KEPT = 256 };

/* A zero-initialised trace is empty. */
struct esp_trace {
    bool whole;
    struct esp_course course;        /* some values of the last iterations */
    struct esp_iteration_copy *kept; /* (kept_count) a ring buffer; esp_trace_at() reads it */
    int kept_count, kept_first, kept_capacity;
    struct esp_totals since; /* sums since esp_trace_restart() */
    struct esp_totals timed; /* the same sums without iterations in step mode */
    int since_setting;       /* number of points since the last change of a setting */
};

/* Adds an iteration. If other iterations were merged with it (snapshot.h), `totals` has the
 * sums over all of these iterations; otherwise it is NULL. `stepped` is true if the iteration
 * ran in step mode. Returns 0 or ESP_E_MEMORY. */
int esp_trace_add(struct esp_trace *trace, const struct esp_iteration *it,
                  const struct esp_totals *totals, bool stepped);
/* Sets the sums to 0. */
void esp_trace_restart(struct esp_trace *trace);
/* Removes all iterations. */
void esp_trace_forget(struct esp_trace *trace);
void esp_trace_free(struct esp_trace *trace);

/* Returns iteration `index` of the iterations in memory, or NULL if there is none. The oldest
 * iteration has index 0. */
const struct esp_iteration *esp_trace_at(const struct esp_trace *trace, int index);

/* Sets values[i] to the value that a gauge of `it` had after iteration i of the course, or to
 * NaN if the gauge did not exist then. Iteration 0 is the oldest. */
void esp_trace_values(const struct esp_trace *trace, const struct esp_iteration *it,
                      const char *symbol, float values[ESP_POINTS]);

/* Returns the seconds per token in the last `count` points, measured in the same way as for
 * plain decoding (engine/pace.h). Leaves out points in step mode. Returns 0 if there are no
 * other points. */
double esp_trace_pace(const struct esp_trace *trace, int count);

#endif
