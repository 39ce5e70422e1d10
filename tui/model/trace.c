/* trace.c - stores the past iterations of a session; see trace.h. */
#include "tui/model/trace.h"

#include <math.h>
#include <string.h>

#include "engine/pace.h"
#include "sessions/grow.h"
#include "viz/gauges.h"

/* Makes room for another iteration. */
static int grow(struct esp_trace *trace)
{
    const int before = trace->kept_capacity;
    if (esp_grow(&trace->kept, trace->kept_count, &trace->kept_capacity, sizeof *trace->kept) <
        0)
        return ESP_E_MEMORY;
    if (trace->kept_capacity == before)
        return ESP_OK;
    memset(trace->kept + before, 0,
           (size_t)(trace->kept_capacity - before) * sizeof *trace->kept);
    for (int i = 0; i < before; i++)
        esp_iteration_moved(&trace->kept[i]);
    return ESP_OK;
}

/* Copies an iteration into the ring. If the ring is full, replaces the oldest iteration. */
static int keep(struct esp_trace *trace, const struct esp_iteration *it)
{
    const bool full = !trace->whole && trace->kept_count == ESP_KEPT;
    int status = full ? ESP_OK : grow(trace);
    if (status == ESP_OK)
        status =
            esp_iteration_copy(&trace->kept[full ? trace->kept_first : trace->kept_count], it);
    if (status < 0)
        return status;
    if (full)
        trace->kept_first = (trace->kept_first + 1) % ESP_KEPT;
    else
        trace->kept_count++;
    return ESP_OK;
}

int esp_trace_add(struct esp_trace *trace, const struct esp_iteration *it,
                  const struct esp_totals *totals, bool stepped)
{
    const struct esp_totals one = esp_totals_of(it);
    trace->course.most = trace->whole ? 0 : ESP_POINTS;
    int status = esp_course_add(&trace->course, it);
    if (status < 0)
        return status;
    trace->course.points[trace->course.count - 1].stepped = stepped;
    trace->since_setting++;
    esp_totals_add(&trace->since, totals ? totals : &one);
    if (!stepped)
        esp_totals_add(&trace->timed, totals ? totals : &one);
    return keep(trace, it);
}

void esp_trace_restart(struct esp_trace *trace)
{
    trace->since = trace->timed = (struct esp_totals){.iterations = 0};
}

void esp_trace_forget(struct esp_trace *trace)
{
    esp_course_free(&trace->course);
    trace->kept_count = trace->kept_first = trace->since_setting = 0;
    esp_trace_restart(trace);
}

void esp_trace_free(struct esp_trace *trace)
{
    esp_trace_forget(trace);
    for (int i = 0; i < trace->kept_capacity; i++)
        esp_iteration_free(&trace->kept[i]);
    free(trace->kept);
    trace->kept = NULL;
    trace->kept_capacity = 0;
}

const struct esp_iteration *esp_trace_at(const struct esp_trace *trace, int index)
{
    if (index < 0 || index >= trace->kept_count)
        return NULL;
    return &trace->kept[(trace->kept_first + index) % trace->kept_capacity].it;
}

void esp_trace_values(const struct esp_trace *trace, const struct esp_iteration *it,
                      const char *symbol, float values[ESP_POINTS])
{
    const struct esp_course *course = &trace->course;
    const int gauge = esp_course_find(course, esp_gauge_owner(it, symbol), symbol);
    for (int i = 0; i < course->count; i++)
        values[i] = gauge < 0 ? NAN : course->gauges[gauge].values[i];
}

double esp_trace_pace(const struct esp_trace *trace, int count)
{
    const struct esp_course *course = &trace->course;
    struct esp_pace pace = {.most = ESP_PACE_STEPS};
    for (int i = count < course->count ? course->count - count : 0; i < course->count; i++) {
        const struct esp_course_point *point = &course->points[i];
        if (!point->stepped)
            esp_pace_add(&pace, point->seconds, point->committed,
                         1 + point->drafted + point->passes);
    }
    return esp_pace_per_token(&pace);
}
