/* event_bytes.h - converts an iteration to a binary record and back.
 *
 * Kept sessions store iterations in this form, because it is written much faster than JSON. The
 * members are the rows of the tables of event_fields.h, in the same order: 32 bits say which
 * members are present; then these members follow. Therefore add a new row at the end of its
 * table, and increase the version of the library (library_parts.h). man/espalier-session.5
 * describes the form.
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
 * it is valid and there is enough memory. */
bool esp_event_from_bytes(struct esp_recorded_event *recorded, struct esp_texts *texts,
                          struct esp_from *from, int vocabulary);

#endif
