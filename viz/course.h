/* course.h - collects values of a session's iterations for charts, and adds them up. */
#ifndef ESP_COURSE_H
#define ESP_COURSE_H

#include "viz/acceptance.h"

enum { ESP_COURSE_GAUGES = 64 };

struct esp_course_point {
    int index, committed, path, deepest;
    int drafted, cut; /* drafted: verified nodes except the root; cut: nodes that were cut */
    int passes;       /* passes of the draft model */
    double seconds[ESP_STAGES], exchange, baseline;
    double at;       /* sum of all stage times so far, including this iteration, in seconds */
    int64_t written; /* tokens committed so far */
    bool stepped;    /* set by the caller: step mode was on, so the times mean nothing */
};

/* A value of one drafter's controller, or of the session (esp_gauge_owner()). */
struct esp_course_gauge {
    char owner[32], symbol[32], name[64]; /* "dynatree", "tauh", "upper confidence (tauh)" */
    char goal[32]; /* symbol of the goal, a gauge with the same owner; "": no goal */
    float *values; /* (count) value after each iteration; NaN where it is missing */
};

/* The values of all iterations so far. A zero-initialised struct is empty. */
struct esp_course {
    /* Maximum number of points, an even number. When there are this many points, the older half
     * is dropped. 0 means no limit. */
    int most;
    struct esp_course_point *points; /* (count) oldest first */
    int count, capacity;
    struct esp_course_gauge gauges[ESP_COURSE_GAUGES]; /* (gauge_count) oldest first */
    int gauge_count;
    struct esp_acceptance acceptance;
    char drafters[256], verifiers[256]; /* names, oldest first: "dynatree, goodput" */
};

/* Sums of values over several iterations. */
struct esp_totals {
    int iterations;
    int64_t committed;         /* tokens */
    int64_t drafted, accepted; /* drafted: verified nodes except roots */
    double seconds[ESP_STAGES];
};

/* Adds an iteration. Returns 0 or ESP_E_MEMORY. */
int esp_course_add(struct esp_course *course, const struct esp_iteration *it);
void esp_course_free(struct esp_course *course);

/* Returns the index of the gauge with this owner and symbol, or -1. */
int esp_course_find(const struct esp_course *course, const char *owner, const char *symbol);

/* Returns whether the values of a gauge change during the session. */
bool esp_course_moves(const struct esp_course *course, int gauge);

/* Returns the sums for a single iteration. */
struct esp_totals esp_totals_of(const struct esp_iteration *it);
void esp_totals_add(struct esp_totals *totals, const struct esp_totals *more);

#endif
