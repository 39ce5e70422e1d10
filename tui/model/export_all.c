/* export_all.c - collects iterations for charts and pages; see export_all.h. */
#include "tui/model/export_all.h"

#include <stdlib.h>

#include "kernels/status.h"
#include "kernels/version.h"
#include "viz/export.h"
#include "viz/page/page_writer.h"

/* ------------------------------------------------------------------ charts */

static int draw(struct esp_course *course, int status,
                const struct esp_course_chart_options *options, int format, char **bytes,
                size_t *length, char *err, size_t errlen)
{
    struct esp_drawing drawing = {.latex = format == ESP_EXPORT_TIKZ};
    *bytes = NULL;
    if (status == ESP_E_MEMORY)
        esp_fail(err, errlen, status, "not enough memory for the chart");
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

/* ------------------------------------------------------------------ the page of a
 * recording */

/* Adds to the page what an event does to the text: how many tokens stay, and which tokens are
 * added. Updates *length, the length of the text. */
static int add_event_text(struct esp_page_writer *page, struct esp_recording *recording,
                          int event, int *length)
{
    const struct esp_recording_entry entry = esp_recording_entry(recording, event);
    const struct esp_text_token *tokens;
    const int added = esp_recording_added(recording, event, &tokens);
    int after = *length + added;
    if (entry.type != ESP_EVENT_PROMPT && entry.type != ESP_EVENT_ITERATION) {
        const struct esp_text_token *all;
        after = esp_recording_text(recording, event, &all);
        if (after < 0)
            return after;
        esp_recording_added(recording, event, &tokens);
    }
    const int keep = after - added;
    if (added > 0 || keep != *length)
        esp_page_add_text(page, keep == *length ? -1 : keep, tokens, added);
    *length = after;
    return ESP_OK;
}

static void add_event_note(struct esp_page_writer *page, const struct esp_event *event)
{
    const char *text = event->text ? event->text : "";
    switch (event->type) {
    case ESP_EVENT_SETTING:
        esp_page_add_note(page, "%s %s", event->key ? event->key : "", text);
        break;
    case ESP_EVENT_MARKER:
        esp_page_add_note(page, *text ? "marked: %s" : "marked%s", text);
        break;
    case ESP_EVENT_CLEAR:
        esp_page_add_note(page, "a new text");
        break;
    case ESP_EVENT_REWIND:
        esp_page_add_note(page, "part of the text was removed");
        break;
    case ESP_EVENT_DROP:
        esp_page_add_note(page, "the oldest turns were dropped");
        break;
    case ESP_EVENT_NOTE:
        esp_page_add_note(page, "%s", text);
        break;
    default:
        break;
    }
}

static int add_event(struct esp_page_writer *page, struct esp_recording *recording, int number,
                     int *length, char *err, size_t errlen)
{
    const struct esp_event *event;
    const struct esp_text_token *tokens;
    int status = esp_recording_read(recording, number, &event, err, errlen);
    if (status == ESP_OK && event->type == ESP_EVENT_ITERATION) {
        const int added = esp_recording_added(recording, number, &tokens);
        *length += added;
        return esp_page_add(page, event->iteration, event->time,
                            esp_recording_baseline(recording, number), tokens, added);
    }
    if (status == ESP_OK)
        add_event_note(page, event);
    return status == ESP_OK ? add_event_text(page, recording, number, length) : status;
}

static int add_events(struct esp_page_writer *page, struct esp_recording *recording, int first,
                      int last, char *err, size_t errlen)
{
    const int start = first > 0 ? esp_recording_iteration_event(recording, first - 1) : -1,
              end = esp_recording_iteration_event(recording, last);
    int length = 0, status = ESP_OK;
    if (start >= 0) {
        const struct esp_text_token *tokens;
        length = esp_recording_text(recording, start, &tokens);
        if (length < 0)
            return length;
        esp_page_add_text(page, -1, tokens, length);
    }
    for (int i = start + 1; status == ESP_OK && i <= end; i++)
        status = add_event(page, recording, i, &length, err, errlen);
    return status;
}

int esp_export_page(struct esp_recording *recording, int first, int last, char **bytes,
                    size_t *length, char *err, size_t errlen)
{
    const struct esp_recording_header *header = esp_recording_header(recording);
    const struct esp_page_head head = {header->program, header->target.name, header->draft.name,
                                       header->device,  header->started,     first};
    struct esp_page_writer *page =
        esp_page_open((struct esp_tokens){esp_recording_token_text, recording}, &head);
    *err = '\0';
    int status = page ? add_events(page, recording, first, last, err, errlen) : ESP_E_MEMORY;
    return esp_page_close(page, status, bytes, length, err, errlen);
}

/* ------------------------------------------------------------------ the page of a live
 * session */

/* Returns whether the tokens that an iteration committed are in the text at its position. */
static bool is_in_text(const struct esp_state *state, const struct esp_iteration *it)
{
    if (it->position < 0 || it->committed_count > state->span_count - it->position)
        return false;
    for (int i = 0; i < it->committed_count; i++)
        if (state->spans[it->position + i].token != it->committed[i])
            return false;
    return true;
}

/* Returns the number of iterations on the page. Counts backward from the newest iteration, and
 * stops before the first iteration with a token that is no longer in the text. */
static int count_kept(const struct esp_state *state)
{
    int count = 0, end = state->span_count;
    const struct esp_iteration *it;
    while ((it = esp_state_kept(state, count)) && is_in_text(state, it) &&
           it->position + it->committed_count <= end) {
        end = it->position;
        count++;
    }
    return count;
}

/* Copies the tokens [start, end) of the text. The caller frees them. Returns NULL if there is
 * no memory. */
static struct esp_text_token *copy_spans(const struct esp_state *state, int start, int end)
{
    struct esp_text_token *tokens = malloc((size_t)(end - start + 1) * sizeof *tokens);
    for (int i = start; tokens && i < end; i++)
        tokens[i - start] =
            (struct esp_text_token){state->spans[i].token, state->spans[i].kind};
    return tokens;
}

static int add_kept(struct esp_page_writer *page, const struct esp_state *state, int back,
                    int *end, double *time)
{
    const struct esp_iteration *it = esp_state_kept(state, back);
    const int stop = it->position + it->committed_count;
    struct esp_text_token *text = copy_spans(state, *end, stop);
    if (!text)
        return ESP_E_MEMORY;
    if (it->position > *end)
        esp_page_add_text(page, -1, text, it->position - *end);
    int status = esp_page_add(page, it, *time, it->baseline, text + (it->position - *end),
                              it->committed_count);
    for (int i = 0; i < ESP_STAGES; i++)
        *time += it->seconds[i];
    *end = stop;
    free(text);
    return status;
}

int esp_export_page_of_state(const struct esp_state *state, char **bytes, size_t *length,
                             int *iterations, char *err, size_t errlen)
{
    const struct esp_setup *loaded = &state->loaded;
    const int count = *iterations = count_kept(state);
    struct esp_page_head head = {.program = "espalier " ESP_VERSION,
                                 .target = loaded->target,
                                 .draft = loaded->draft,
                                 .device = loaded->device};
    int end = 0, status = ESP_OK;
    double time = 0;
    *bytes = NULL;
    *err = '\0';
    if (count == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no tree yet");
    head.earlier = esp_state_kept(state, count - 1)->index;
    struct esp_page_writer *page = esp_page_open(state->tokens, &head);
    for (int back = count - 1; page && status == ESP_OK && back >= 0; back--)
        status = add_kept(page, state, back, &end, &time);
    return esp_page_close(page, status, bytes, length, err, errlen);
}
