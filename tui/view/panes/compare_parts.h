/* compare_parts.h - draws the lower parts of the compare pane: the text with its ruler, and the
 * totals. */
#ifndef ESP_COMPARE_PARTS_H
#define ESP_COMPARE_PARTS_H

#include "tui/view/pane.h"
#include "tui/model/comparison.h"
#include "viz/versus.h"

enum { ESP_RULER_ROWS = 3, ESP_COMPARE_NAME = 96 };

/* Writes a name for each of the two sessions. The two names are different, and as short as
 * possible. */
void esp_compare_names(const struct esp_state *state, char names[2][ESP_COMPARE_NAME]);

/* Draws a row of text. Below it, draws a row for each session, which shows the iterations that
 * generated the text. */
void esp_draw_ruler(struct esp_canvas *canvas, const struct esp_state *state,
                    const struct esp_comparison *both, bool held, int y);

/* Returns the number of rows that the totals need at this width. */
int esp_compare_totals_height(const struct esp_state *state, int width);
/* Draws a table of both sessions' statistics, and a sentence that says which one is ahead. */
void esp_draw_compare_totals(struct esp_canvas *canvas, const struct esp_state *state, int y);

#endif
