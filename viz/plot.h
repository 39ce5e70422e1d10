/* plot.h - draws a plot with lines or bars, for figures of experiments. */
#ifndef ESP_PLOT_H
#define ESP_PLOT_H

#include "viz/drawing.h"

struct esp_plot_series {
    const char *label;
    int count;
    /* (count) A point whose y is NaN is left out. A point whose x is NaN has this y for all x:
     * it is drawn as a horizontal line. */
    const double *x, *y;
    /* (count) length of the error bar above and below each y; 0 or NaN: no bar. NULL means that
     * no point has an error bar. */
    const double *error;
    bool reference; /* other series are compared with this dark line without marks */
};

struct esp_plot {
    const char *title, *x_label, *y_label;
    /* If there are names, series are drawn as bars side by side, and x is an index in `names`.
     * Otherwise series are drawn as lines, and x is a number. */
    const char *const *names; /* (name_count), or NULL */
    int name_count;
    const struct esp_plot_series *series; /* (series_count) */
    int series_count;
    const char *error_label; /* what error bars show */
};

/* Fills an empty drawing, dark on white. Texts may contain any bytes. */
void esp_plot_draw(const struct esp_plot *plot, struct esp_drawing *drawing);

#endif
