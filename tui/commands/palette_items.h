/* palette_items.h - fills the palette with all commands, drafters, verifiers, settings,
 * parameters, models, backends, themes and keys that are allowed now. */
#ifndef ESP_PALETTE_ITEMS_H
#define ESP_PALETTE_ITEMS_H

#include "tui/commands/control.h"

/* Opens the palette with all of these items. */
void esp_palette_fill(struct esp_control *control);

/* Opens the palette with only the drafters or only the verifiers. Marks the current item. Items
 * that do not work with the other settings cannot be chosen, and show the reason. */
void esp_palette_menu(struct esp_control *control, enum esp_list list);

#endif
