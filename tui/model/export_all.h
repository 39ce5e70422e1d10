/* export_all.h - exports many iterations of a recording or of a live session, as a chart
 * (viz/course_chart.h) or as a page (viz/page/page_writer.h).
 *
 * Iterations of a recording are counted from 0 over the whole recording. A live session exports
 * the iterations in memory. The caller frees *bytes. The functions return 0, or a negative
 * status with a message.
 */
#ifndef ESP_EXPORT_ALL_H
#define ESP_EXPORT_ALL_H

#include "sessions/recording.h"
#include "tui/model/state.h"
#include "viz/course_chart.h"

/* Exports a chart. The format must be a format for drawings (viz/export.h). */
int esp_export_chart(struct esp_recording *recording, int first, int last,
                     const struct esp_course_chart_options *options, int format, char **bytes,
                     size_t *length, char *err, size_t errlen);
int esp_export_chart_of_state(const struct esp_state *state,
                              const struct esp_course_chart_options *options, int format,
                              char **bytes, size_t *length, char *err, size_t errlen);

/* Exports a page. Returns ESP_E_ARGUMENT if it would be larger than ESP_PAGE_BYTES. */
int esp_export_page(struct esp_recording *recording, int first, int last, char **bytes,
                    size_t *length, char *err, size_t errlen);
/* Exports a page of a live session. Exports only iterations that still have their tokens in the
 * text, and sets *iterations to their number. Returns ESP_E_ARGUMENT if there are none. */
int esp_export_page_of_state(const struct esp_state *state, char **bytes, size_t *length,
                             int *iterations, char *err, size_t errlen);

#endif
