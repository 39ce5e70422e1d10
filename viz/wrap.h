/* wrap.h - breaks text into lines at words. */
#ifndef ESP_WRAP_H
#define ESP_WRAP_H

#include "viz/canvas.h"
#include "viz/safe.h"

struct esp_wrap {
    const char *bytes;
    size_t count;
    int width; /* at least 1 */
    int flags; /* ESP_SAFE_* of safe.h */
};

/* Reads the next unit (safe.h) and returns how many bytes it takes. A tab extends to the next
 * multiple of 4 columns. */
size_t esp_wrap_unit(const struct esp_wrap *wrap, size_t at, size_t end, int column,
                     struct esp_safe_unit *shown);
/* Returns the end of the line that starts at byte `at`, but at most `end`. A line ends after
 * the last space before the edge or, without a space, after the last unit that fits. A newline
 * belongs to the line that it ends. Spaces at the end of a line can extend beyond the edge. */
size_t esp_wrap_line(const struct esp_wrap *wrap, size_t at, size_t end);

/* Returns the number of lines that a text has at this width. */
int esp_paragraph_height(const char *text, int width);
/* Draws a text over the width of the view, beginning in row y. Returns the row after it. */
int esp_draw_paragraph(struct esp_canvas *canvas, int y, int style, const char *text);

#endif
