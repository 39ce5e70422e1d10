/* mouse.h - handles clicks and the wheel of the mouse. */
#ifndef ESP_MOUSE_H
#define ESP_MOUSE_H

#include "tui/view/ui.h"

struct esp_mouse {
    int button; /* 0: left button; 64: wheel up; 65: wheel down */
    int x, y;   /* the cell of the screen, from 0 */
};

/* Handles a mouse event. A click on a pane focuses the pane. The pane can also select the item
 * at the pointer. A click on a tab shows its pane. A click elsewhere focuses the input line.
 * The wheel scrolls the pane under the pointer or, if that pane cannot scroll, the text. The
 * wheel does not move the focus. */
void esp_ui_mouse(struct esp_ui *ui, const struct esp_state *state, struct esp_mouse mouse,
                  int width, int height);

#endif
