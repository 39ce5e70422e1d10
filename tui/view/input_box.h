/* input_box.h - draws the input line in as many rows as it needs.
 *
 * A newline or the edge of the screen starts a row. Rows after the first are indented.
 */
#ifndef ESP_INPUT_BOX_H
#define ESP_INPUT_BOX_H

#include "viz/canvas.h"

struct esp_input_line {
    const char *prompt, *line; /* `line` has (length) bytes */
    size_t length, point;      /* `point` is the byte at the cursor */
};

/* Returns the number of rows that the line needs at this width. Returns at most the height of
 * the screen. */
int esp_input_box_rows(const struct esp_input_line *line, int width, int height);
/* Fills the view with the rows around the cursor. If `active` is true, also places the
 * cursor. */
void esp_input_box_draw(struct esp_canvas *canvas, const struct esp_input_line *line,
                        bool active);
/* Returns the byte above (step -1) or below (1) the cursor, in the same column, or -1 if there
 * is no row there. */
long esp_input_box_move(const struct esp_input_line *line, int width, int step);

#endif
