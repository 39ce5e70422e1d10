/* event_names.h - the words that stand for enumerators in a recording. */
#ifndef ESP_EVENT_NAMES_H
#define ESP_EVENT_NAMES_H

#include <stdbool.h>

/* Each list is NULL-terminated and indexed by its enumerator. */
extern const char *const esp_verdict_names[]; /* enum esp_verdict */
extern const char *const esp_reason_names[];  /* enum esp_reason; "" for none */

/* The word for the type of an event that a recording has; NULL for others. */
const char *esp_event_type_name(int type);
/* The type, or -1. */
int esp_event_type_of(const char *name);

/* Has this setting (of espalier_settings.h) a place of its own in a header? Those of the first
 * recordings have, and texts, which stand in the prompts; all others are members of `settings`.
 */
bool esp_has_own_place(int setting);

#endif
