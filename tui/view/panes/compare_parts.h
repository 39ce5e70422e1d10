/* compare_parts.h - the lower parts of the compare pane: text ruler and totals. */
#ifndef ESP_COMPARE_PARTS_H
#define ESP_COMPARE_PARTS_H

#include "tui/view/pane.h"
#include "tui/model/comparison.h"
#include "viz/versus.h"

enum { ESP_RULER_ROWS = 3, ESP_COMPARE_NAME = 96 };

/* Writes the shortest names that tell the two sessions apart. */
void esp_compare_names(const struct esp_state *state, char names[2][ESP_COMPARE_NAME]);

/* Draws one row of text. Below it is one row for each session, which shows the iterations that
 * wrote the text. */
void esp_draw_ruler(struct esp_canvas *canvas, const struct esp_state *state,
                    const struct esp_comparison *both, bool held, int y);

/* The number of rows that the totals need at this width. */
int esp_compare_totals_height(const struct esp_state *state, int width);
/* Draws a table of both sessions' statistics, and a sentence that says which one is ahead. */
void esp_draw_compare_totals(struct esp_canvas *canvas, const struct esp_state *state, int y);

#endif
