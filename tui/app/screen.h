/* screen.h - shows a canvas on a terminal. Only this module uses ncurses.
 *
 * ncurses sends as few bytes as possible and knows the colours of each terminal. It learns the
 * colours from terminfo, which hardly ever describes 24-bit colours. If COLORTERM says that the
 * terminal has 24-bit colours, tui/view/ansi.h writes the screen instead. decode.h, not
 * ncurses, reads the keyboard.
 */
#ifndef ESP_SCREEN_H
#define ESP_SCREEN_H

#include "viz/canvas.h"
#include "tui/app/terminal.h"
#include "tui/view/theme.h"

struct esp_screen;

/* Takes over the terminal. Returns 0, or a negative status with a message. The status is
 * ESP_E_UNSUPPORTED if the terminal's type is unknown or lacks a capability that we need. */
int esp_screen_open(struct esp_screen **screen, struct esp_terminal *terminal, char *err,
                    size_t errlen);
void esp_screen_close(struct esp_screen *screen);

/* Sets the theme. Replaces its colours by the nearest ones that the terminal has. If `colours`
 * is false, uses no colours. */
void esp_screen_theme(struct esp_screen *screen, const struct esp_theme *theme, bool colours);
/* Gets the size of the terminal, and passes it to ncurses. */
void esp_screen_size(struct esp_screen *screen, int *width, int *height);
/* Shows a canvas. It must have the size of the terminal. Sends only the cells that changed. */
void esp_screen_paint(struct esp_screen *screen, const struct esp_canvas *canvas);
/* Makes the next esp_screen_paint() send all cells. */
void esp_screen_redraw(struct esp_screen *screen);

/* Copies bytes to the terminal's clipboard (OSC 52). Returns false if this type of terminal
 * has no clipboard, or if there is no memory. */
bool esp_screen_copy(const char *bytes, size_t length);

/* Asks the terminal for its background colour (OSC 11). If this type of terminal does not
 * answer, sends nothing and returns false. */
bool esp_screen_ask_background(struct esp_screen *screen);

/* Switches mouse reports on or off. */
void esp_screen_mouse(struct esp_screen *screen, bool on);

/* esp_screen_leave() restores the modes of the terminal, so that another program can use it.
 * esp_screen_enter() takes the terminal over again. */
void esp_screen_leave(struct esp_screen *screen);
void esp_screen_enter(struct esp_screen *screen);

#endif
