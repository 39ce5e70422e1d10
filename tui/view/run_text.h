/* run_text.h - draws the text of a run (tui/model/run.h). Tokens of the prompt, drafted
 * tokens and tokens of the target have different styles. */
#ifndef ESP_RUN_TEXT_H
#define ESP_RUN_TEXT_H

#include "tui/model/run.h"
#include "viz/canvas.h"

/* The style for each kind of token (enum esp_text_kind). */
extern const int esp_text_styles[];

/* Draws the first `tokens` tokens into rows y to y + height - 1 of the view. If they need more
 * than `height` rows, draws only the last rows of the text. Returns the row below the text. */
int esp_run_text_draw(struct esp_canvas *canvas, int y, int height, struct esp_run *run,
                      int tokens);

#endif
