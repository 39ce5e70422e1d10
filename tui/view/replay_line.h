/* replay_line.h - draws the position in a recording. */
#ifndef ESP_REPLAY_LINE_H
#define ESP_REPLAY_LINE_H

#include "viz/canvas.h"
#include "tui/model/player.h"

/* Fills the view, which is one row. `typed` has the digits that were typed so far, or "". */
void esp_replay_line_draw(struct esp_canvas *canvas, const struct esp_player *player,
                          const char *typed);

#endif
