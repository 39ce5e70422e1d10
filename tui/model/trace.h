/* trace.h - the past iterations of a session. A trace has the last ones in full, some values of
 * earlier ones, and sums.
 *
 * Everything that shows more than one iteration reads a trace: panes, the numbers in the
 * header, comparisons, races, lessons, web pages. Iterations are added one by one.
 *
 * A session may continue forever, so a trace keeps the last ESP_KEPT iterations and the
 * values (viz/course.h) of at most ESP_POINTS. With `whole` it keeps everything. This is for
 * the runs of races and lessons, which end.
 */
#ifndef ESP_TRACE_H
#define ESP_TRACE_H

#include "sessions/iteration_copy.h"
#include "viz/course.h"

enum { ESP_POINTS = 512, ESP_KEPT = 256 };

/* A zero-initialised trace is empty. */
struct esp_trace {
    bool whole;
    struct esp_course course;        /* values of the last iterations */
    struct esp_iteration_copy *kept; /* (kept_count) a ring; see esp_trace_at() */
    int kept_count, kept_first, kept_capacity;
    struct esp_totals since; /* sums since esp_trace_restart() */
    struct esp_totals timed; /* the part of `since` that ran outside step mode */
    int since_setting;       /* points since the last change of a setting */
};

/* Adds an iteration. `totals` has its sums and those of the iterations that were merged with
 * it (snapshot.h); NULL if none were. `stepped` says that it ran in step mode. Returns 0 or
 * ESP_E_MEMORY. */
int esp_trace_add(struct esp_trace *trace, const struct esp_iteration *it,
                  const struct esp_totals *totals, bool stepped);
/* Sets the sums to 0. */
void esp_trace_restart(struct esp_trace *trace);
/* Drops all iterations. */
void esp_trace_forget(struct esp_trace *trace);
void esp_trace_free(struct esp_trace *trace);

/* The kept iteration `index`, counted from the oldest, which is 0; or NULL. */
const struct esp_iteration *esp_trace_at(const struct esp_trace *trace, int index);

/* Sets values[i] to the value of a gauge of `it` after iteration i of the course, oldest
 * first; NaN if the gauge did not exist then. */
void esp_trace_values(const struct esp_trace *trace, const struct esp_iteration *it,
                      const char *symbol, float values[ESP_POINTS]);

/* Seconds per token in the last `count` points, without those that ran in step mode, measured
 * like plain decoding (engine/pace.h); 0 if there are none. */
double esp_trace_pace(const struct esp_trace *trace, int count);

#endif
