/* plot.h - lines or bars as an SVG picture, for figures of experiments. */
#ifndef ESP_PLOT_H
#define ESP_PLOT_H

#include <stdbool.h>
#include <stdio.h>

struct esp_plot_series {
    const char *label;
    int count;
    const double *x, *y; /* (count) a point whose y is NaN is left out */
};

struct esp_plot {
    const char *title, *x_label, *y_label;
    /* With names, series are bars side by side over names[x]; without, lines over numbers. */
    const char *const *names; /* (name_count), or NULL */
    int name_count;
    const struct esp_plot_series *series; /* (series_count) */
    int series_count;
};

/* Writes one self-contained SVG document, dark on white. Texts may hold anything. */
void esp_plot_write(const struct esp_plot *plot, FILE *file);

#endif
