/* ansi.h - writes the changes of a canvas as ANSI escape sequences.
 *
 * This is for 24-bit terminals, which terminfo seldom describes, and for asciicast players,
 * which do not use terminfo. Only sequences that all of these support are used: cursor
 * position, 24-bit colours, bold, dim, italic, underline, reverse. A canvas contains only safe
 * text, so the output contains no other sequences.
 */
#ifndef ESP_ANSI_H
#define ESP_ANSI_H

#include "viz/canvas.h"
#include "tui/view/theme.h"

/* Writes the bytes that turn the first `rows` rows of `shown` into those of `canvas`, and
 * copies these rows to `shown`. If the sizes differ, the screen is cleared first. Returns 0 or
 * ESP_E_MEMORY. */
int esp_ansi_update(FILE *file, struct esp_canvas *shown, const struct esp_canvas *canvas,
                    int rows, const struct esp_theme *theme);

#endif
