/* export_chart.h - exports charts (viz/course_chart.h) of a recording or a live session. */
#ifndef ESP_EXPORT_CHART_H
#define ESP_EXPORT_CHART_H

#include "sessions/recording.h"
#include "tui/model/state.h"
#include "viz/course_chart.h"

/* Charts iterations first..last of a recording, counted from 0 over the whole recording. The
 * format must be one of drawings (export.h). The caller frees *bytes. Returns 0 or a negative
 * status with a message. */
int esp_export_chart(struct esp_recording *recording, int first, int last,
                     const struct esp_course_chart_options *options, int format, char **bytes,
                     size_t *length, char *err, size_t errlen);

/* The same for the iterations that a live session keeps. */
int esp_export_chart_of_state(const struct esp_state *state,
                              const struct esp_course_chart_options *options, int format,
                              char **bytes, size_t *length, char *err, size_t errlen);

#endif
