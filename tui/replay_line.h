/* replay_line.h - the line that says where in a recording one is. */
#ifndef ESP_REPLAY_LINE_H
#define ESP_REPLAY_LINE_H

#include "canvas.h"
#include "player.h"

/* Fills the view, which is one line. `typed`: digits of a number that is being typed, or "". */
void esp_replay_line_draw(struct esp_canvas *canvas, const struct esp_player *player,
                          const char *typed);

#endif
