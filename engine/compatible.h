/* compatible.h - decides which verifier is exact with which drafter. No other file decides
 * this. */
#ifndef ESP_COMPATIBLE_H
#define ESP_COMPATIBLE_H

#include "engine/session_parts.h"

/* Returns how the drafter draws children with these settings: a value of enum esp_draws. */
unsigned esp_draws_of(const struct esp_settings *settings);

/* Chooses the verifier if the user did not, and sets `lossy`. Refuses a verifier that would
 * change the output distribution (ESP_E_ARGUMENT and one sentence in err), unless the user
 * allowed that with lossy=allow. */
int esp_choose_verifier(struct esp_settings *settings, char *err, size_t errlen);

#endif
