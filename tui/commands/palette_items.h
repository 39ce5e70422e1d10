/* palette_items.h - what the palette offers: every command, drafter, verifier, setting,
 * parameter, model, backend, theme and key that has a meaning now. */
#ifndef ESP_PALETTE_ITEMS_H
#define ESP_PALETTE_ITEMS_H

#include "tui/commands/control.h"

/* Opens the palette with all of them. */
void esp_palette_fill(struct esp_control *control);

/* Opens it with the drafters or the verifiers alone: the one in use is marked, and those that
 * do not go with the other settings are refused with the reason. */
void esp_palette_menu(struct esp_control *control, enum esp_list list);

#endif
