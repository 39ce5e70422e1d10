/* palette_items.h - what the palette offers: every command, drafter, verifier, setting,
 * parameter, model, backend, theme and key that has a meaning now. */
#ifndef ESP_PALETTE_ITEMS_H
#define ESP_PALETTE_ITEMS_H

#include "tui/commands/control.h"

/* Opens the palette with all of them. */
void esp_palette_fill(struct esp_control *control);

#endif
