/* compare_parts.h - the two lower parts of the compare pane. */
#ifndef ESP_COMPARE_PARTS_H
#define ESP_COMPARE_PARTS_H

#include "tui/view/pane.h"
#include "tui/model/comparison.h"
#include "viz/versus.h"

enum { ESP_RULER_ROWS = 3, ESP_COMPARE_NAME = 96 };

/* The names of the two, as short as tells them apart. */
void esp_compare_names(const struct esp_state *state, char names[2][ESP_COMPARE_NAME]);

/* One row of text and under it, for each of the two, the iterations it was written in. */
void esp_draw_ruler(struct esp_canvas *canvas, const struct esp_state *state,
                    const struct esp_comparison *both, bool held, int y);

/* Rows that the totals take at this width. */
int esp_compare_totals_height(const struct esp_state *state, int width);
/* A table of the figures of both, and who is ahead in words. */
void esp_draw_compare_totals(struct esp_canvas *canvas, const struct esp_state *state, int y);

#endif
