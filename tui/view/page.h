/* page.h - the interface of a page, which is a view that fills the screen, such as a race or a
 * lesson.
 *
 * A page draws itself and handles keys. The app shows it instead of the panes until it closes.
 * To add a page, write a command in commands/each that opens it.
 */
#ifndef ESP_PAGE_H
#define ESP_PAGE_H

#include <stdbool.h>

#include "viz/canvas.h"

struct esp_page_ops {
    void (*draw)(void *page, struct esp_canvas *canvas);
    /* Handles a key (keys.h). Returns false to close the page. */
    bool (*key)(void *page, int key);
    /* Returns the milliseconds until the page must be drawn again, or -1 if no redraw is
     * needed. */
    int (*due)(void *page);
    /* Returns whether the page stays as it is until a key is pressed. */
    bool (*settled)(void *page);
    void (*close)(void *page);
};

struct esp_page {
    const struct esp_page_ops *ops; /* NULL: no page is open */
    void *data;
};

#endif
