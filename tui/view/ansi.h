/* ansi.h - what changed on a canvas, as the bytes that make a terminal show it.
 *
 * For terminals with 24-bit colours, which terminfo seldom describes, and for players of
 * recorded terminals, which do not use terminfo. The sequences are those that all of them take
 * (cursor position, colours of 24 bits, bold, dim, italic, underline, reverse). The canvas
 * holds safe text only, so what comes out is exactly these sequences and text.
 */
#ifndef ESP_ANSI_H
#define ESP_ANSI_H

#include "viz/canvas.h"
#include "tui/view/theme.h"

/* Writes what makes a screen that shows the first `rows` rows of `shown` show those of
 * `canvas`, and copies them to `shown`. If the sizes differ, the screen is cleared first.
 * Returns 0 or ESP_E_MEMORY. */
int esp_ansi_update(FILE *file, struct esp_canvas *shown, const struct esp_canvas *canvas,
                    int rows, const struct esp_theme *theme);

#endif
