/* race_view.h - a race on the screen: two texts, the trees that wrote them, and the verdict. */
#ifndef ESP_RACE_VIEW_H
#define ESP_RACE_VIEW_H

#include "tui/model/race.h"
#include "viz/canvas.h"

/* Draws the race as its clock stands now. */
void esp_race_draw(struct esp_canvas *canvas, struct esp_race *race);

#endif
