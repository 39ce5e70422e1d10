/* run_text.h - the text of a run (tui/model/run.h), each token in the style of who chose it. */
#ifndef ESP_RUN_TEXT_H
#define ESP_RUN_TEXT_H

#include "tui/model/run.h"
#include "viz/canvas.h"

/* Draws the first `tokens` tokens into rows y to y + height - 1 of the view, the last lines if
 * there are more, and returns the row after them. */
int esp_run_text_draw(struct esp_canvas *canvas, int y, int height, struct esp_run *run,
                      int tokens);

#endif
