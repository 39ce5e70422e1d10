/* bindings.h - keys that the user binds: ":bind F12 :theme light", and so in the configuration
 * file. */
#ifndef ESP_BINDINGS_H
#define ESP_BINDINGS_H

#include "tui/commands/control.h"

/* Binds a key: "KEY ACTION", "KEY :COMMAND", "KEY none" (the input line gets the key) or "KEY
 * default". A character that can be typed is bound only while the input line is empty. Returns
 * 0, or ESP_E_ARGUMENT with a sentence. */
int esp_bindings_set(struct esp_control *control, const char *text, char *err, size_t errlen);
void esp_bindings_free(struct esp_control *control);
/* What a binding of the user's does, as it could be set, behind its key. */
const char *esp_bindings_text(const struct esp_binding *binding, char *text, size_t size);

#endif
