/* input_box.h - the input line as rows of the screen: it grows with what is typed.
 *
 * A newline, or the edge of the screen, begins another row; rows after the first are indented.
 */
#ifndef ESP_INPUT_BOX_H
#define ESP_INPUT_BOX_H

#include "viz/canvas.h"

struct esp_input_line {
    const char *prompt, *line; /* line: (length) bytes */
    size_t length, point;      /* point: byte where the cursor is */
};

/* Rows that the line takes at this width, as far as the screen has room for them. */
int esp_input_box_rows(const struct esp_input_line *line, int width, int height);
/* Fills the view with the rows around the cursor; `active`: puts the cursor there, too. */
void esp_input_box_draw(struct esp_canvas *canvas, const struct esp_input_line *line,
                        bool active);
/* The byte above (step -1) or below (1) the cursor, in the same column; -1: there is no such
 * row. */
long esp_input_box_move(const struct esp_input_line *line, int width, int step);

#endif
