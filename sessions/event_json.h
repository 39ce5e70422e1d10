/* event_json.h - converts an event to one line of JSON and back.
 *
 * The line contains every field of the event, and reading it gives identical values. For this,
 * floats have up to 9 digits, doubles have up to 17, and NaN is left out. A token is written as
 * {"id", "text"}. If the text is not valid UTF-8, a member "bytes" has its bytes in hexadecimal
 * digits. "text" is then only meant for human readers. man/espalier-session.5 lists the fields.
 */
#ifndef ESP_EVENT_JSON_H
#define ESP_EVENT_JSON_H

#include "sessions/iteration_copy.h"
#include "sessions/json_line.h"
#include "sessions/layers.h"
#include "sessions/recording.h"
#include "sessions/texts.h"

/* ------------------------------------------------------------------ writing */

/* Writes the header, with a newline. Returns 0 or ESP_E_MEMORY. */
int esp_header_to_json(struct esp_line *line, const struct esp_recording_header *header);

/* Writes an event, with a newline. Writes nothing for types of events that are not recorded.
 * `layers` says how the iteration's tree grew; it may be NULL. A prompt that is too long for a
 * line is divided into several lines. If an iteration with thousands of nodes is too long, its
 * layers are left out. If that is not enough, the texts of its tokens and then the values of
 * the verifier's formulas are left out, too. Returns 0 or ESP_E_MEMORY. */
int esp_event_to_json(struct esp_line *line, const struct esp_event *event,
                      const struct esp_layers *layers, const struct esp_tokens *tokens);

/* ------------------------------------------------------------------ reading */

/* Stores an event that was read, and everything that the event points to. A zero-initialised
 * struct is empty. Reading the next event into the struct reuses its memory. */
struct esp_recorded_event {
    struct esp_event event;
    /* event.iteration points into this member. For a prompt, event.tokens points to its ids. */
    struct esp_iteration_copy iteration;
    struct esp_layers layers;
    char *texts[2]; /* texts that the event points to */
};

/* Reads one line and checks it. The line has no newline, and at most ESP_RECORDING_LINE bytes.
 * Adds the texts of its tokens and the names of its gauges to `texts`. If `vocabulary` is
 * not 0, token ids must be below it. Returns 1 for an event, and 0 for an event of an unknown
 * type. Otherwise returns a negative status, with a sentence that does not name the file. */
int esp_event_from_json(struct esp_recorded_event *recorded, struct esp_texts *texts,
                        const char *line, size_t length, int vocabulary, char *err,
                        size_t errlen);
/* Checks the order, the path and the committed tokens of an iteration. The caller must already
 * have checked the range of each value. Returns 0, or ESP_E_FORMAT with a sentence in err. */
int esp_event_check(struct esp_recorded_event *recorded, char *err, size_t errlen);
void esp_recorded_event_free(struct esp_recorded_event *recorded);

int esp_header_from_json(struct esp_recording_header *header, const char *line, size_t length,
                         char *err, size_t errlen);

#endif
