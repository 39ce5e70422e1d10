/* chart.h - draws numbers, bars and sparklines in a few cells. */
#ifndef ESP_CHART_H
#define ESP_CHART_H

#include "viz/canvas.h"

/* Writes a probability in three columns: ".81", "1.0", or "  -" if it is not finite. A very
 * small probability takes four columns: "<.01". Returns `text`, as do esp_probability_exact()
 * and esp_number(). */
const char *esp_probability(char text[8], double p);
/* Writes a probability with two significant digits, in any number of columns: ".0048". */
const char *esp_probability_exact(char text[16], double p);
/* Writes two probabilities with enough digits to tell them apart. */
void esp_probabilities_apart(char a_text[16], double a, char b_text[16], double b);
/* Writes a number with about `digits` significant digits and without an exponent: "1240",
 * "31.4", ".40", ".004". */
const char *esp_number(char text[16], double value, int digits);

/* Draws a bar that fills `fraction` (0..1) of `width` cells, with a resolution of an eighth of
 * a cell. A fraction above 0 is always visible. Returns the column after the last non-blank
 * cell. */
int esp_draw_bar(struct esp_canvas *canvas, int x, int y, int width, int style,
                 double fraction);

/* Draws a probability with its decimal point in column x; "<.01" begins in column x - 1.
 * Returns x + 3. */
int esp_draw_probability(struct esp_canvas *canvas, int x, int y, int style, double p);

/* Describes the vertical axis of a chart. The axis is logarithmic if all values are above 0 and
 * the largest is more than eight times the smallest. */
struct esp_axis {
    double low, high;
};

/* Returns an axis that covers all finite values of the `count` values. */
struct esp_axis esp_axis_of(const float *values, int count);
void esp_axis_include(struct esp_axis *axis, double value);
/* Returns the position of a value on the axis: 0 is the low end, 1 the high end. Returns NaN
 * if the value is not finite. */
double esp_axis_place(const struct esp_axis *axis, double value);
bool esp_axis_is_log(const struct esp_axis *axis);
/* Writes both ends of the axis as numbers, with enough digits to tell them apart. */
void esp_axis_ends(const struct esp_axis *axis, char low[16], char high[16]);

/* Returns the smallest of the numbers 1, 2, 5, 10, 20, 50, ... (and 0.5, 0.2, 0.1, ...) that is
 * at least `raw`. */
double esp_axis_step(double raw);
/* Returns `seconds` if it is a valid time. Otherwise returns 0, which means not measured. */
double esp_measured(double seconds);

/* Draws the last `rect.width` of the `count` values, oldest first, as a bar chart that fills
 * `rect`. If there are few values, the bars are several cells wide; a value that is not finite
 * leaves a gap. Returns the width of all bars in cells. */
int esp_draw_columns(struct esp_canvas *canvas, struct esp_rect rect, int style,
                     const float *values, int count, const struct esp_axis *axis);

/* Draws the last `width` of the `count` values, oldest first, as a sparkline in one row. A
 * value that is not finite leaves a gap. */
void esp_draw_spark(struct esp_canvas *canvas, int x, int y, int width, int style,
                    const float *values, int count, const struct esp_axis *axis);

#endif
