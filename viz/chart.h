/* chart.h - numbers, bars and sparklines in a few cells. */
#ifndef ESP_CHART_H
#define ESP_CHART_H

#include "viz/canvas.h"

/* Writes a probability in three columns: ".81", "1.0", "  -" if it is not known; a small one in
 * four: "<.01". */
const char *esp_probability(char text[8], double p);
/* The same in two significant digits, however many columns that takes: ".0048". */
const char *esp_probability_exact(char text[16], double p);
/* Writes a number in about `digits` significant digits without an exponent: "1240", "31.4",
 * ".40", ".004". */
const char *esp_number(char text[16], double value, int digits);

/* A bar that fills `fraction` (0..1) of `width` cells, to an eighth of a cell. Something above
 * 0 always shows. Returns the column after the cells that are not blank. */
int esp_draw_bar(struct esp_canvas *canvas, int x, int y, int width, int style,
                 double fraction);

/* Draws a probability with its point in column x, so that a small one begins in the column
 * before; returns the column after three. */
int esp_draw_probability(struct esp_canvas *canvas, int x, int y, int style, double p);

/* The last `rect.width` of `count` values, oldest first, as columns over the rows of `rect`; of
 * few values each is wider. Returns the columns that were drawn. */
int esp_draw_columns(struct esp_canvas *canvas, struct esp_rect rect, int style,
                     const float *values, int count, double minimum, double maximum);

/* The last `width` of `count` values, oldest first, drawn between minimum and maximum. */
void esp_draw_spark(struct esp_canvas *canvas, int x, int y, int width, int style,
                    const float *values, int count, double minimum, double maximum);

#endif
