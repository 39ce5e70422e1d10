/* ansi.h - writes the changes of a canvas as ANSI escape sequences.
 *
 * Terminals with 24-bit colours need this, because terminfo seldom describes such colours.
 * Players of asciicasts need it, because they do not use terminfo. The output has only
 * sequences that all these terminals and players support: cursor position, 24-bit colours,
 * bold, dim, italic, underline, reverse. A canvas contains only safe text, so the text adds no
 * other sequences.
 */
#ifndef ESP_ANSI_H
#define ESP_ANSI_H

#include "viz/canvas.h"
#include "tui/view/theme.h"

/* Updates the screen, which shows `shown`. Writes the bytes that make its first `rows` rows
 * look like the same rows of `canvas`, and copies these rows to `shown`. If the sizes differ,
 * clears the screen first. Returns 0 or ESP_E_MEMORY. */
int esp_ansi_update(FILE *file, struct esp_canvas *shown, const struct esp_canvas *canvas,
                    int rows, const struct esp_theme *theme);

#endif
