/* export_chart.c - collects iterations for a chart; see export_chart.h. */
#include "tui/model/export_all.h"

#include "kernels/status.h"
#include "viz/export.h"

static int draw(struct esp_course *course, int status,
                const struct esp_course_chart_options *options, int format, char **bytes,
                size_t *length, char *err, size_t errlen)
{
    struct esp_drawing drawing = {.latex = format == ESP_EXPORT_TIKZ};
    *bytes = NULL;
    if (status == ESP_E_MEMORY)
        esp_fail(err, errlen, status, "no memory for the chart");
    if (status == ESP_OK)
        status = esp_course_chart_draw(course, options, &drawing, err, errlen);
    if (status == ESP_OK)
        status = esp_export_drawing(&drawing, format, bytes, length, err, errlen);
    esp_drawing_free(&drawing);
    esp_course_free(course);
    return status;
}

int esp_export_chart(struct esp_recording *recording, int first, int last,
                     const struct esp_course_chart_options *options, int format, char **bytes,
                     size_t *length, char *err, size_t errlen)
{
    struct esp_course course = {.count = 0};
    const struct esp_event *event;
    int status = ESP_OK;
    for (int i = first; status == ESP_OK && i <= last; i++) {
        const int number = esp_recording_iteration_event(recording, i);
        status = esp_recording_read(recording, number, &event, err, errlen);
        if (status == ESP_OK)
            status = esp_course_add(&course, event->iteration);
    }
    return draw(&course, status, options, format, bytes, length, err, errlen);
}

int esp_export_chart_of_state(const struct esp_state *state,
                              const struct esp_course_chart_options *options, int format,
                              char **bytes, size_t *length, char *err, size_t errlen)
{
    struct esp_course course = {.count = 0};
    int kept = 0, status = ESP_OK;
    while (esp_state_kept(state, kept))
        kept++;
    for (int back = kept - 1; status == ESP_OK && back >= 0; back--)
        status = esp_course_add(&course, esp_state_kept(state, back));
    return draw(&course, status, options, format, bytes, length, err, errlen);
}
