/* screen.h - a canvas on a real terminal: the only file that knows ncurses.
 *
 * ncurses puts characters on the screen in as few bytes as it can and knows how each terminal
 * wants its colours. A terminal that says in COLORTERM that it shows 24-bit colours gets them
 * (tui/view/ansi.h): terminfo describes hardly any terminal as one that does. Input does not go
 * through ncurses (decode.h).
 */
#ifndef ESP_SCREEN_H
#define ESP_SCREEN_H

#include "viz/canvas.h"
#include "tui/app/terminal.h"
#include "tui/view/theme.h"

struct esp_screen;

/* Takes the terminal over. ESP_E_UNSUPPORTED: its type is unknown or lacks what is needed. */
int esp_screen_open(struct esp_screen **screen, struct esp_terminal *terminal, char *err,
                    size_t errlen);
void esp_screen_close(struct esp_screen *screen);

/* Colours of the theme, as near as the terminal can show them (none if `colours` is false). */
void esp_screen_theme(struct esp_screen *screen, const struct esp_theme *theme, bool colours);
/* Size of the terminal now; ncurses is told. */
void esp_screen_size(struct esp_screen *screen, int *width, int *height);
/* Shows a canvas of that size: only what changed is sent. */
void esp_screen_paint(struct esp_screen *screen, const struct esp_canvas *canvas);
/* The next paint sends everything. */
void esp_screen_redraw(struct esp_screen *screen);

/* Hands bytes to the terminal's clipboard (OSC 52); false if it is of a type that has none. */
bool esp_screen_copy(const char *bytes, size_t length);

/* Asks the terminal for the colour of its background (OSC 11). False: it is of a type that
 * does not answer, and was not asked. */
bool esp_screen_ask_background(struct esp_screen *screen);

/* Asks the terminal to report the mouse, or not to. */
void esp_screen_mouse(struct esp_screen *screen, bool on);

/* Gives the terminal back for a while, and takes it again. */
void esp_screen_leave(struct esp_screen *screen);
void esp_screen_enter(struct esp_screen *screen);

#endif
