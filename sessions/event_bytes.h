/* event_bytes.h - converts an iteration to a binary record and back.
 *
 * Kept sessions store iterations as binary records, because writing JSON would take much
 * longer. A record has the members that the tables of event_fields.h list, in the order of the
 * tables' rows. Each struct begins with 32 bits that say which members are present, and these
 * members follow. Because of this, a new row must be added at the end of its table, and the
 * version of the library must be increased (library_parts.h). man/espalier-session.5 describes
 * the records.
 */
#ifndef ESP_EVENT_BYTES_H
#define ESP_EVENT_BYTES_H

#include "sessions/pack.h"
#include "sessions/event_json.h"

/* Writes an iteration event, without the scores and the texts of its tokens. The comment on
 * esp_event_to_json() describes `layers`. */
void esp_event_to_bytes(struct esp_pack *to, const struct esp_event *event,
                        const struct esp_layers *layers);
/* Reads an iteration and checks it. Adds the names of its gauges to `texts`. Returns false if
 * the iteration is invalid or there is not enough memory. */
bool esp_event_from_bytes(struct esp_recorded_event *recorded, struct esp_texts *texts,
                          struct esp_from *from, int vocabulary);

#endif
