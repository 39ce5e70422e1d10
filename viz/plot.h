/* plot.h - lines or bars as a drawing, for figures of experiments. */
#ifndef ESP_PLOT_H
#define ESP_PLOT_H

#include "viz/drawing.h"

struct esp_plot_series {
    const char *label;
    int count;
    /* (count) A point whose y is NaN is left out; one whose x is NaN holds for all x and is a
     * level line. */
    const double *x, *y;
    /* (count) how far values scatter around each y, as a bar up and down; 0 or NaN: no bar.
     * NULL: no bars. */
    const double *error;
    bool reference; /* what the others are compared with: drawn apart, without marks */
};

struct esp_plot {
    const char *title, *x_label, *y_label;
    /* With names, series are bars side by side over names[x]; without, lines over numbers. */
    const char *const *names; /* (name_count), or NULL */
    int name_count;
    const struct esp_plot_series *series; /* (series_count) */
    int series_count;
    const char *error_label; /* what error bars are */
};

/* Fills an empty drawing, dark on white. Texts may hold anything. */
void esp_plot_draw(const struct esp_plot *plot, struct esp_drawing *drawing);

#endif
