/* course_chart.h - charts of a session, for slides.
 *
 *     thresholds   the values of the controller over the iterations, each that moves in a panel
 *                  of its own with its own scale, with the line that it is steered to
 *     acceptance   by depth, how often a draft was accepted where the verifier came to it, and
 *                  in which part of all iterations
 *     stages       the time of each iteration as a column of its stages, and what plain
 *                  decoding takes for as many tokens
 *
 * Nothing is told by colour alone. The same course gives the same drawing.
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

/* The chart of this name, or -1. */
int esp_course_chart_find(const char *name);
const char *esp_course_chart_name(int kind);

struct esp_course_chart_options {
    int kind;
    const char *theme;  /* "light" (NULL) or "dark" */
    const char *models; /* for the caption; NULL: none */
    double aspect;      /* 0: 16:9 */
    int caption;        /* enum esp_caption */
};

/* Fills an empty drawing. Returns 0, or a negative status with a sentence, as when there is
 * nothing to draw. */
int esp_course_chart_draw(const struct esp_course *course,
                          const struct esp_course_chart_options *options,
                          struct esp_drawing *drawing, char *err, size_t errlen);

#endif
