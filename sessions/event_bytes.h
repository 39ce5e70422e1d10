/* event_bytes.h - converts an iteration to a binary record and back.
 *
 * A kept session has its iterations in this form, which is written much faster than a line of
 * JSON. The members are those of the tables of event_fields.h, in their order: 32 bits say which
 * rows follow, then these follow. So a new row goes to the end of its table, and the version of
 * the library grows (library_parts.h). man/espalier-session.5 describes the form.
 */
#ifndef ESP_EVENT_BYTES_H
#define ESP_EVENT_BYTES_H

#include "sessions/pack.h"
#include "sessions/event_json.h"

/* Writes an iteration event without scores and without texts of tokens. `layers` as in
 * esp_event_to_json(). */
void esp_event_to_bytes(struct esp_pack *to, const struct esp_event *event,
                        const struct esp_layers *layers);
/* Reads an iteration, and checks it. The names of gauges are added to `texts`. Returns whether
 * it is valid; an error of memory counts as invalid. */
bool esp_event_from_bytes(struct esp_recorded_event *recorded, struct esp_texts *texts,
                          struct esp_from *from, int vocabulary);

#endif
