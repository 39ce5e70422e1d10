/* event_names.h - the names of enumerators in a recording. */
#ifndef ESP_EVENT_NAMES_H
#define ESP_EVENT_NAMES_H

#include <stdbool.h>

/* Each list is NULL-terminated and indexed by its enumerator. */
extern const char *const esp_verdict_names[]; /* enum esp_verdict */
extern const char *const esp_reason_names[];  /* enum esp_reason; "" for none */

/* The name of a recorded event type; NULL for others. */
const char *esp_event_type_name(int type);
/* The type, or -1. */
int esp_event_type_of(const char *name);

/* Is this setting (of espalier_settings.h) a member of the header itself? The oldest ones are;
 * texts are in the prompts; all others are members of `settings`. */
bool esp_has_own_place(int setting);

#endif
