/* scrolled.h - shows a drawing that is taller than its view: it is drawn into a separate
 * canvas, and a part of this canvas is copied into the view. */
#ifndef ESP_SCROLLED_H
#define ESP_SCROLLED_H

#include "viz/canvas.h"

/* Opens a canvas with the glyphs of the canvas `like`. Returns 0 or ESP_E_MEMORY;
 * esp_canvas_close() closes the new canvas. */
int esp_scrolled_open(struct esp_canvas *page, const struct esp_canvas *like, int width,
                      int height);
/* Returns the number of rows up to the last row that is not blank. */
int esp_scrolled_rows(const struct esp_canvas *page);
/* Fills the view of a canvas with rows of the page, starting at row `first`. The page has
 * `rows` rows. Marks at the right end say how many rows are hidden above and below. */
void esp_scrolled_show(struct esp_canvas *canvas, const struct esp_canvas *page, int rows,
                       int first);

#endif
