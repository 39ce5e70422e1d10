/* plot.c - draws lines or bars; see plot.h. Lengths are in points.
 *
 * Series differ in more than colour. The colours are based on the palette of Okabe and Ito,
 * which colour-blind people can tell apart, and each series has its own mark. When all colours
 * have been used, the next series get hollow marks and dashed lines, or ruled bars. A
 * reference series is a dark line without marks, even in a bar plot.
 *
 * Error bars are drawn over bars, and below the marks of lines. In a line plot, the error bars
 * of different series are shifted sideways, so that they can be told apart where points meet.
 */
#include "viz/plot.h"

#include <math.h>
#include <stdio.h>

#include "viz/chart.h"

enum {
    LEFT = 64,
    TOP = 40,
    WIDE = 480,
    HIGH = 300,
    BELOW = 56,
    LINE = 18,
    TICKS = 5,
    SAMPLE = 28,
    TEXT = 12,
    TITLE = 14,
    RULES = 4 /* distance between the lines of a ruled bar */
};

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#8a6d00", "#56b4e9", "#444444", "#7a3db8"};

enum { COLOURS = sizeof colours / sizeof *colours };

/* If several series have the same colour, the i-th of them, counted from 0, has dashes[i]. */
static const char *const dashes[] = {NULL, "7 4", "2 3", "6 3 2 3"};
enum { ROUNDS = sizeof dashes / sizeof *dashes };
enum { ROWS = 1, COLUMNS = 2 }; /* lines that fill a ruled bar: 0, one of these, or their sum */

/* The dashes of reference series. */
static const char *const reference_dashes[ROUNDS] = {"9 5", "3 3", "12 3 3 3", "1 5"};

static const char dark[] = "#222222", paper[] = "#ffffff", grid[] = "#dddddd";

struct scale {
    double low, high, step;
};

struct plot {
    const struct esp_plot *p;
    struct esp_drawing *d;
    struct scale x, y;
};

/* ------------------------------------------------------------------ text */

static void label(const struct plot *plot, double x, double y, int anchor, const char *text)
{
    esp_drawing_text(plot->d, x, y, TEXT, anchor, 0, dark, text);
}

static double width_of(const char *text)
{
    return esp_drawing_width(text, TEXT, 0);
}

/* Returns the width of the widest name below the plot. */
static double widest_name(const struct esp_plot *p)
{
    double wide = 0;
    for (int i = 0; i < p->name_count; i++)
        wide = fmax(wide, width_of(p->names[i]));
    return wide;
}

/* Returns whether names are written upwards, because they would overlap otherwise. */
static bool names_upwards(const struct esp_plot *p)
{
    return p->names && widest_name(p) + 8 > (double)WIDE / p->name_count;
}

/* ------------------------------------------------------------------ scales */

/* Returns the length of a point's error bar. It is 0 if the point has no error, or only a
 * rounding error. */
static double error_of(const struct esp_plot_series *s, int point)
{
    const double error = s->error ? s->error[point] : 0;
    return isfinite(error) && error > 1e-6 * fabs(s->y[point]) ? error : 0;
}

static void include(struct scale *s, double value)
{
    if (!isfinite(value))
        return;
    s->low = value < s->low ? value : s->low;
    s->high = value > s->high ? value : s->high;
}

/* Moves the ends of a scale to multiples of its step. */
static void round_scale(struct scale *s)
{
    if (!(s->low <= s->high))
        s->low = 0, s->high = 1;
    if (s->low == s->high)
        s->high += s->high > 0 ? s->high : 1;
    s->step = esp_axis_step((s->high - s->low) / TICKS);
    s->low = floor(s->low / s->step + 1e-9) * s->step;
    s->high = ceil(s->high / s->step - 1e-9) * s->step;
}

static double across(const struct scale *s, double x)
{
    return LEFT + WIDE * (x - s->low) / (s->high - s->low);
}

static double up(const struct scale *s, double y)
{
    return TOP + HIGH - HIGH * (y - s->low) / (s->high - s->low);
}

static void find_scales(const struct esp_plot *p, struct scale *x, struct scale *y)
{
    *x = (struct scale){INFINITY, -INFINITY, 0};
    *y = (struct scale){0, -INFINITY, 0}; /* y begins at 0, so that ratios can be seen */
    for (int i = 0; i < p->series_count; i++)
        for (int j = 0; j < p->series[i].count; j++) {
            include(x, p->series[i].x[j]);
            include(y, p->series[i].y[j] + error_of(&p->series[i], j));
        }
    round_scale(x);
    round_scale(y);
    if (p->names)
        *x = (struct scale){-0.5, (p->name_count > 0 ? p->name_count : 1) - 0.5, 1};
}

/* ------------------------------------------------------------------ axes */

static void number_at(const struct plot *plot, const struct scale *s, double value, double x,
                      double y, int anchor)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", fabs(value) < s->step / 2 ? 0 : value);
    label(plot, x, y, anchor, text);
}

static void draw_names(const struct plot *plot)
{
    const struct esp_plot *p = plot->p;
    const bool upwards = names_upwards(p);
    for (int i = 0; i < p->name_count; i++) {
        const double x = across(&plot->x, i);
        if (upwards)
            esp_drawing_text(plot->d, x + 4, TOP + HIGH + 8, TEXT, ESP_ANCHOR_END,
                             ESP_TEXT_UPWARDS, dark, p->names[i]);
        else
            label(plot, x, TOP + HIGH + 18, ESP_ANCHOR_MIDDLE, p->names[i]);
    }
}

static void draw_axes(const struct plot *plot)
{
    const struct scale *x = &plot->x, *y = &plot->y;
    const struct esp_pen line = {.stroke = grid}, frame = {.stroke = dark};
    const double foot = TOP + HIGH, end = LEFT + WIDE;
    for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
        const double value = y->low + i * y->step, at = up(y, value);
        esp_drawing_line(plot->d, &line, LEFT, at, end, at);
        number_at(plot, y, value, LEFT - 8, at + 4, ESP_ANCHOR_END);
    }
    for (int i = 0; !plot->p->names && x->low + i * x->step <= x->high + x->step / 2; i++) {
        const double value = x->low + i * x->step;
        number_at(plot, x, value, across(x, value), foot + 18, ESP_ANCHOR_MIDDLE);
    }
    if (plot->p->names)
        draw_names(plot);
    esp_drawing_path(plot->d, &frame, (const double[]){LEFT, TOP, LEFT, foot, end, foot}, 3,
                     false);
    label(plot, LEFT, TOP - 10, ESP_ANCHOR_START, plot->p->y_label);
}

/* ------------------------------------------------------------------ series */

/* Describes how a series is drawn. For a reference series this depends on its index among the
 * reference series. For any other series it depends on its index among the series that are not
 * references. */
struct look {
    const char *colour, *dash;
    int ruled; /* lines that fill a bar: 0, ROWS, COLUMNS or their sum */
    int shape; /* shape of the mark; -1 means no mark */
    bool hollow;
};

static struct look look_of(const struct esp_plot *p, int index)
{
    int place = 0;
    for (int i = 0; i < index; i++)
        place += p->series[i].reference == p->series[index].reference;
    if (p->series[index].reference)
        return (struct look){dark, reference_dashes[place % ROUNDS], 0, -1, false};
    const int round = place / COLOURS % ROUNDS;
    return (struct look){colours[place % COLOURS], dashes[round], round, place % COLOURS,
                         round > 0};
}

static struct esp_pen line_pen(const struct look *look)
{
    return (struct esp_pen){NULL, look->colour, 2, look->dash,
                            look->shape < 0 ? "reference" : NULL};
}

static void draw_mark(const struct plot *plot, double x, double y, const struct look *look)
{
    enum { CORNERS = 12 };
    /* The corners of the marks, as x and y relative to the middle. The first mark is a
     * circle. */
    static const struct {
        int count;
        signed char at[2 * CORNERS];
    } shapes[COLOURS] = {
        {0, {0}},
        {4, {-4, -4, 4, -4, 4, 4, -4, 4}},
        {3, {0, -5, 5, 4, -5, 4}},
        {4, {0, -5, 5, 0, 0, 5, -5, 0}},
        {3, {0, 5, 5, -4, -5, -4}},
        {12,
         {-5, -2, -2, -2, -2, -5, 2, -5, 2, -2, 5, -2, 5, 2, 2, 2, 2, 5, -2, 5, -2, 2, -5, 2}},
        {3, {5, 0, -4, 5, -4, -5}},
        {8, {0, -6, 2, -2, 6, 0, 2, 2, 0, 6, -2, 2, -6, 0, -2, -2}},
    };
    const struct esp_pen pen = {look->hollow ? paper : look->colour, look->colour, 1.5, NULL,
                                NULL};
    double points[2 * CORNERS];
    if (look->shape < 0)
        return;
    const int count = shapes[look->shape].count;
    for (int i = 0; i < count; i++) {
        points[2 * i] = x + shapes[look->shape].at[2 * i];
        points[2 * i + 1] = y + shapes[look->shape].at[2 * i + 1];
    }
    if (count > 0)
        esp_drawing_path(plot->d, &pen, points, count, true);
    else
        esp_drawing_circle(plot->d, &pen, x, y, 4);
}

/* Draws an error bar, clipped at the lower end of the y scale. */
static void draw_error(const struct plot *plot, double x, double value, double error,
                       const char *colour)
{
    enum { CAP = 3 };
    const struct esp_pen pen = {.stroke = colour, .kind = "error"};
    const double top = up(&plot->y, value + error),
                 bottom = up(&plot->y, fmax(value - error, plot->y.low));
    if (error > 0)
        esp_drawing_path(plot->d, &pen,
                         (const double[]){x - CAP, top, x + CAP, top, x, top, x, bottom,
                                          x - CAP, bottom, x + CAP, bottom},
                         6, false);
}

/* Draws a line with marks at its points. */
static void draw_marked(const struct plot *plot, const double *points, int count,
                        const struct look *look)
{
    const struct esp_pen pen = line_pen(look);
    esp_drawing_path(plot->d, &pen, points, count, false);
    for (int i = 0; i < count; i++)
        draw_mark(plot, points[2 * i], points[2 * i + 1], look);
}

/* Draws a series as a line. Draws at most POINTS points; no suite has more. */
static void draw_line(const struct plot *plot, int index, const struct look *look)
{
    enum { POINTS = 256 };
    const struct esp_plot_series *s = &plot->p->series[index];
    const double aside = 2.0 * (index % 5 - 2);
    double points[2 * POINTS] = {0};
    int count = 0;
    for (int i = 0; i < s->count && count < POINTS; i++) {
        if (!isfinite(s->y[i]) || !isfinite(s->x[i]))
            continue;
        const double x = across(&plot->x, s->x[i]);
        draw_error(plot, x + aside, s->y[i], error_of(s, i), look->colour);
        points[2 * count] = x;
        points[2 * count++ + 1] = up(&plot->y, s->y[i]);
    }
    draw_marked(plot, points, count, look);
}

static void draw_bar(const struct plot *plot, double x, double y, double wide, double high,
                     const struct look *look)
{
    const struct esp_pen fill = {.fill = look->colour}, rule = {.stroke = paper};
    esp_drawing_rect(plot->d, &fill, x, y, wide, high, 0);
    for (double at = y + RULES; look->ruled & ROWS && at < y + high; at += RULES)
        esp_drawing_line(plot->d, &rule, x, at, x + wide, at);
    for (double at = x + RULES; look->ruled & COLUMNS && at < x + wide; at += RULES)
        esp_drawing_line(plot->d, &rule, at, y, at, y + high);
}

/* Returns how many of the first `before` series are drawn as bars. */
static int count_bars(const struct esp_plot *p, int before)
{
    int count = 0;
    for (int i = 0; i < before; i++)
        count += !p->series[i].reference;
    return count;
}

/* Draws the bar of a series above each name. A reference series gets a line across the group of
 * bars instead. */
static void draw_bars(const struct plot *plot, int index, const struct look *look)
{
    const struct esp_plot_series *s = &plot->p->series[index];
    const struct scale *x = &plot->x, *y = &plot->y;
    const struct esp_pen pen = line_pen(look);
    const double group = 0.8 * (across(x, 1) - across(x, 0)),
                 wide = group / fmax(count_bars(plot->p, plot->p->series_count), 1);
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->y[i]) || !isfinite(s->x[i]))
            continue;
        const double from = across(x, s->x[i]) - group / 2, at = up(y, s->y[i]);
        const double top = fmin(at, up(y, 0)), foot = fmax(at, up(y, 0));
        if (s->reference) {
            esp_drawing_line(plot->d, &pen, from, at, from + group, at);
        } else {
            const double x_bar = from + count_bars(plot->p, index) * wide;
            draw_bar(plot, x_bar, top, wide * 0.9, foot - top, look);
            draw_error(plot, x_bar + wide * 0.45, s->y[i], error_of(s, i), dark);
        }
    }
}

static void draw_series(const struct plot *plot, int index)
{
    const struct esp_plot_series *s = &plot->p->series[index];
    const struct look look = look_of(plot->p, index);
    for (int i = 0; i < s->count; i++)
        if (isfinite(s->y[i]) && !isfinite(s->x[i])) { /* the value is the same for all x */
            const double at = up(&plot->y, s->y[i]);
            draw_marked(plot, (const double[]){LEFT, at, LEFT + WIDE, at}, 2, &look);
            draw_error(plot, LEFT + WIDE + 4 + 2 * (index % 5), s->y[i], error_of(s, i),
                       look.colour);
        }
    if (plot->p->names)
        draw_bars(plot, index, &look);
    else
        draw_line(plot, index, &look);
}

/* ------------------------------------------------------------------ legend */

static void draw_entry(const struct plot *plot, int index, double x, double y)
{
    const struct look look = look_of(plot->p, index);
    const struct esp_pen pen = line_pen(&look);
    if (plot->p->names && !plot->p->series[index].reference) {
        draw_bar(plot, x + SAMPLE / 2.0 - 6, y - 6, 12, 12, &look);
    } else {
        esp_drawing_line(plot->d, &pen, x, y, x + SAMPLE, y);
        draw_mark(plot, x + SAMPLE / 2.0, y, &look);
    }
    label(plot, x + SAMPLE + 6, y + 4, ESP_ANCHOR_START, plot->p->series[index].label);
}

static bool has_errors(const struct esp_plot *p)
{
    for (int i = 0; i < p->series_count; i++)
        for (int j = 0; j < p->series[i].count; j++)
            if (error_of(&p->series[i], j) > 0)
                return true;
    return false;
}

/* Draws the legend to the right of the plot; returns the y of its lower end. */
static double draw_legend(const struct plot *plot)
{
    const struct esp_plot *p = plot->p;
    const double right = LEFT + WIDE + 24;
    double at = TOP + 6, wide = 0;
    for (int i = 0; i < p->series_count; i++, at += LINE) {
        draw_entry(plot, i, right, at);
        wide = fmax(wide, width_of(p->series[i].label));
    }
    if (has_errors(p) && p->error_label) {
        const struct plot points = {p, plot->d, plot->x, {0, HIGH, 1}}; /* y in points */
        draw_error(&points, right + SAMPLE / 2.0, TOP + HIGH - at, 6, dark);
        label(plot, right + SAMPLE + 6, at + 4, ESP_ANCHOR_START, p->error_label);
        wide = fmax(wide, width_of(p->error_label));
        at += LINE;
    }
    plot->d->width =
        fmax(right + SAMPLE + 6 + wide + 16, 1.1 * esp_drawing_width(p->title, TITLE, 0) + 32);
    return at;
}

void esp_plot_draw(const struct esp_plot *p, struct esp_drawing *d)
{
    struct plot plot = {.p = p, .d = d};
    const double names = names_upwards(p) ? widest_name(p) : 0;
    find_scales(p, &plot.x, &plot.y);
    d->background = paper;
    snprintf(d->title, sizeof d->title, "%s", p->title);
    draw_axes(&plot);
    label(&plot, LEFT + WIDE / 2.0, TOP + HIGH + 42 + names, ESP_ANCHOR_MIDDLE, p->x_label);
    for (int i = 0; i < p->series_count; i++)
        draw_series(&plot, i);
    d->height = fmax(draw_legend(&plot), TOP + HIGH + BELOW + names);
    esp_drawing_text(d, d->width / 2, 16, TITLE, ESP_ANCHOR_MIDDLE, ESP_TEXT_BOLD, dark,
                     p->title);
}
