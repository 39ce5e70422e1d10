/* race_view.h - draws a race: two texts, their trees, and the verdict. */
#ifndef ESP_RACE_VIEW_H
#define ESP_RACE_VIEW_H

#include "tui/model/race.h"
#include "viz/canvas.h"

/* Draws the race at the current time of its clock. */
void esp_race_draw(struct esp_canvas *canvas, struct esp_race *race);

#endif
