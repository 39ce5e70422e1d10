/* layout.h - places the panes on a terminal of any size, even 1 x 1.
 *
 *     below 20 x 5      one line: the terminal is too small
 *     below 60 x 14     one pane at a time, below a row of tabs
 *     below 100 x 28    text and tree side by side or stacked; one line for each other pane
 *     larger            controller and node below them, several lines each
 *     44 rows or more   the timeline, too
 *
 * During a comparison, the compare pane is below the text if the terminal is wide enough.
 * Otherwise it is shown alone.
 *
 * Panes have frames. Neighbours share a line of their frames, so their rectangles overlap by
 * one row or column. A pane below tabs has no frame.
 */
#ifndef ESP_LAYOUT_H
#define ESP_LAYOUT_H

#include "viz/canvas.h"

enum esp_pane {
#define X(name) ESP_PANE_##name,
#include "tui/view/panes.def"
    ESP_PANES
};

enum esp_layout_kind { ESP_LAYOUT_TINY, ESP_LAYOUT_TABS, ESP_LAYOUT_NORMAL, ESP_LAYOUT_WIDE };

struct esp_layout_options {
    int width, height;
    int current;    /* the pane that has the focus, or that had it last */
    bool focused;   /* the current pane has the focus, and must be visible */
    bool zoomed;    /* only the current pane is shown */
    bool stacked;   /* the tree is below the text instead of beside it */
    bool comparing; /* the compare pane replaces all panes except the text */
    int input_rows; /* number of rows of the input line; 0 means one */
    bool hidden[ESP_PANES];
};

struct esp_layout {
    int kind;
    bool framed;
    /* A part with width 0 is not shown. Each part except the input line is one row high. */
    struct esp_rect header, tabs, input, footer;
    struct esp_rect pane[ESP_PANES]; /* with the frame; width 0: not shown */
};

struct esp_layout esp_layout_of(const struct esp_layout_options *options);

/* Returns the area in which a pane draws. It is inside the frame, with a blank column on each
 * side. */
struct esp_rect esp_layout_inside(const struct esp_layout *layout, int pane);

#endif
