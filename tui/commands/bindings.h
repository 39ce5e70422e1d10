/* bindings.h - the user's key bindings: ":bind F12 :theme light", also in the configuration
 * file. */
#ifndef ESP_BINDINGS_H
#define ESP_BINDINGS_H

#include <stddef.h>

#include "tui/view/keys.h"

/* Binds a key. `text` is "KEY ACTION", "KEY :COMMAND", "KEY none" (the input line gets the key)
 * or "KEY default". The binding of a printable character works only while the input line is
 * empty. Returns 0, or ESP_E_ARGUMENT with a message. */
int esp_bindings_set(struct esp_own_keys *own, const char *text, char *err, size_t errlen);
void esp_bindings_free(struct esp_own_keys *own);
/* Writes what a key is bound to, in the form that ":bind" reads after the key. Returns
 * `text`. */
const char *esp_bindings_text(const struct esp_binding *binding, char *text, size_t size);

#endif
