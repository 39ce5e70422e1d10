/* event_json.h - converts an event to one line of JSON and back.
 *
 * The line holds every field of the event, and reading it gives the same bits: floats have 9
 * digits, doubles up to 17, NaN is left out. A token is {"id", "text"}. If the text is not
 * valid UTF-8, "bytes" has its bytes in hexadecimal digits, and "text" is only for people.
 * man/espalier-session.5 lists the fields.
 */
#ifndef ESP_EVENT_JSON_H
#define ESP_EVENT_JSON_H

#include "sessions/iteration_copy.h"
#include "sessions/json_line.h"
#include "sessions/layers.h"
#include "sessions/recording.h"
#include "sessions/texts.h"

/* ------------------------------------------------------------------ writing */

/* The header, newline included. Returns 0 or ESP_E_MEMORY; the same holds below. */
int esp_header_to_json(struct esp_line *line, const struct esp_recording_header *header);

/* An event of one of the types in a recording, newline included. `layers` (may be NULL) is the
 * growth of the iteration's tree. A prompt that is too long for a line becomes several lines.
 * An iteration that is too long (a tree of thousands of nodes) loses first its layers, then the
 * texts of its tokens, then the values of the verifier's formulas. */
int esp_event_to_json(struct esp_line *line, const struct esp_event *event,
                      const struct esp_layers *layers, const struct esp_tokens *tokens);

/* ------------------------------------------------------------------ reading */

/* An event and all it points to. Zeroed: empty. Its memory is reused. */
struct esp_recorded_event {
    struct esp_event event;
    struct esp_iteration_copy iteration; /* event.iteration points here; a prompt to its ids */
    struct esp_layers layers;
    char *texts[2]; /* of the event */
};

/* Reads one line (no newline, at most ESP_RECORDING_LINE bytes) and checks it. Adds token texts
 * to `texts`; gauges point to names in it. `vocabulary`: ids must be below it; 0: no limit.
 * Returns 1, 0 for an event of an unknown type, or a negative status with a sentence that does
 * not name the file. */
int esp_event_from_json(struct esp_recorded_event *recorded, struct esp_texts *texts,
                        const char *line, size_t length, int vocabulary, char *err,
                        size_t errlen);
void esp_recorded_event_free(struct esp_recorded_event *recorded);

int esp_header_from_json(struct esp_recording_header *header, const char *line, size_t length,
                         char *err, size_t errlen);

#endif
