/* page.h - something that takes the whole screen for a while: a race, a lesson.
 *
 * A page draws itself and obeys keys; the app shows it in place of the panes and takes it away
 * when it is left. To add one: a file in commands/each that opens it.
 */
#ifndef ESP_PAGE_H
#define ESP_PAGE_H

#include <stdbool.h>

#include "viz/canvas.h"

struct esp_page_ops {
    void (*draw)(void *page, struct esp_canvas *canvas);
    /* Obeys a key (keys.h). False: the page is to be left. */
    bool (*key)(void *page, int key);
    /* Milliseconds until it looks different by itself; -1: never. */
    int (*due)(void *page);
    /* Will nothing more happen without a key? */
    bool (*settled)(void *page);
    void (*close)(void *page);
};

struct esp_page {
    const struct esp_page_ops *ops; /* NULL: there is none */
    void *data;
};

#endif
