/* course_chart.h - draws charts of a session, for slides.
 *
 *     thresholds   the values of the controller over the iterations; each value that changes
 *                  has a panel with its own scale and its goal
 *     acceptance   how often a drafted token of each depth was accepted: as a fraction of the
 *                  iterations in which the verifier reached that depth, and of all iterations
 *     stages       the time of each iteration as a column of its stages, and the time that
 *                  plain decoding takes for the same number of tokens
 *
 * No meaning depends on colour alone. The same course gives the same drawing.
 */
#ifndef ESP_COURSE_CHART_H
#define ESP_COURSE_CHART_H

#include "viz/course.h"
#include "viz/drawing.h"
#include "viz/picture_options.h"

/* X(identifier, name) */
#define ESP_COURSE_CHARTS(X)                                                                   \
    X(THRESHOLDS, "thresholds")                                                                \
    X(ACCEPTANCE, "acceptance")                                                                \
    X(STAGES, "stages")

enum esp_course_chart_kind {
#define X(name, text) ESP_COURSE_CHART_##name,
    ESP_COURSE_CHARTS(X)
#undef X
        ESP_COURSE_CHART_KINDS
};

/* Returns the kind of chart with this name, or -1. */
int esp_course_chart_find(const char *name);
const char *esp_course_chart_name(int kind);

struct esp_course_chart_options {
    int kind;
    const char *theme;  /* "light" (NULL) or "dark" */
    const char *models; /* names of the models, for the caption; NULL if none */
    double aspect;      /* width divided by height; 0 means 16:9 */
    int caption;        /* enum esp_caption */
};

/* Fills an empty drawing. Returns 0, or a negative status with an error message in err, for
 * example if there is nothing to draw. */
int esp_course_chart_draw(const struct esp_course *course,
                          const struct esp_course_chart_options *options,
                          struct esp_drawing *drawing, char *err, size_t errlen);

#endif
