/* replay_line.h - draws the line that shows the position in a recording. In a replay, it
 * replaces the input line. */
#ifndef ESP_REPLAY_LINE_H
#define ESP_REPLAY_LINE_H

#include "viz/canvas.h"
#include "tui/model/player.h"

/* Fills the view, which has one row. `typed` has the digits that the user has typed, or "". */
void esp_replay_line_draw(struct esp_canvas *canvas, const struct esp_player *player,
                          const char *typed);

#endif
