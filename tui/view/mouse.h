/* mouse.h - what a click and a turn of the wheel do to the screen (ui.h). */
#ifndef ESP_MOUSE_H
#define ESP_MOUSE_H

#include "tui/view/ui.h"

struct esp_mouse {
    int button; /* 0: the left one is pressed; 64, 65: the wheel turns up, down */
    int x, y;   /* of the screen, from 0 */
};

/* A click on a pane focuses it, and the pane may select what is there. A click on a tab shows
 * its pane. A click elsewhere focuses the input line. The wheel scrolls the pane under the
 * pointer, or the text where that cannot be scrolled, and leaves the focus where it is. */
void esp_ui_mouse(struct esp_ui *ui, const struct esp_state *state, struct esp_mouse mouse,
                  int width, int height);

#endif
