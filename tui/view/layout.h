/* layout.h - which pane goes where, for every size of terminal from 1x1 up.
 *
 *     below 20 x 5      nothing fits: one line says so
 *     below 60 x 14     one pane at a time under a strip of tabs
 *     below 100 x 28    text and tree beside (or above) each other, one line each for the rest
 *     from there on     controller and node below them, several lines each
 *     from 44 rows on   the timeline too
 *
 * While two choices are compared, their pane is below the text where that is wide, else alone.
 *
 * Panes have frames, and neighbours share the line between them: their rectangles overlap by
 * one. Under tabs the single pane has no frame.
 */
#ifndef ESP_LAYOUT_H
#define ESP_LAYOUT_H

#include "viz/canvas.h"

enum esp_pane {
#define X(name) ESP_PANE_##name,
#include "tui/view/panes.def"
#undef X
    ESP_PANES
};

enum esp_layout_kind { ESP_LAYOUT_TINY, ESP_LAYOUT_TABS, ESP_LAYOUT_NORMAL, ESP_LAYOUT_WIDE };

struct esp_layout_options {
    int width, height;
    int current;    /* pane that has the focus or had it last: the one shown under tabs */
    bool focused;   /* the current pane has the focus: it must be seen */
    bool zoomed;    /* only the current pane */
    bool stacked;   /* tree below the text instead of beside it */
    bool comparing; /* the compare pane takes the place of all but the text */
    int input_rows; /* of the input line; 0: one */
    bool hidden[ESP_PANES];
};

struct esp_layout {
    int kind;
    bool framed;
    struct esp_rect header, tabs, input, footer; /* one line each, but for the input; width 0 if
                                                    not shown */
    struct esp_rect pane[ESP_PANES];             /* frame included; width 0 if not shown */
};

struct esp_layout esp_layout_of(const struct esp_layout_options *options);

/* The part of a pane's rectangle that it draws in: inside its frame, a blank column at each
 * side. */
struct esp_rect esp_layout_inside(const struct esp_layout *layout, int pane);

#endif
