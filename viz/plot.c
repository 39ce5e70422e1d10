/* plot.c - lines or bars as SVG; see plot.h.
 *
 * Series are told apart by more than colour. The colours are those of Okabe and Ito, which
 * people who see few colours tell apart; each has a mark of its own. After as many series as
 * there are colours, marks are hollow and lines dashed, and bars have a pattern. What the
 * others are compared with is a dark line without marks, also among bars.
 *
 * Error bars lie over bars and below lines' marks. Those of the series of a line plot stand
 * beside each other, so that they can be told apart where points meet.
 */
#include "viz/plot.h"

#include <math.h>

#include "viz/safe.h"

enum {
    LEFT = 64,
    TOP = 40,
    WIDE = 480,
    HIGH = 300,
    BELOW = 56,
    LINE = 18,
    TICKS = 5,
    SAMPLE = 28
};

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#8a6d00", "#56b4e9", "#444444", "#7a3db8"};

enum { COLOURS = sizeof colours / sizeof *colours };

/* Of the first series of each colour, the second, and so on. */
static const char *const dashes[] = {"", "7 4", "2 3", "6 3 2 3"};
static const char *const patterns[] = {"", "stripes", "dots", "rows"};
enum { ROUNDS = sizeof dashes / sizeof *dashes };

/* Lines that others are compared with. */
static const char *const reference_dashes[] = {"9 5", "3 3", "12 3 3 3", "1 5"};

struct scale {
    double low, high, step;
};

/* ------------------------------------------------------------------ text */

static void label(FILE *file, double x, double y, const char *more, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, more);
    esp_safe_xml(file, text, 0);
    fputs("</text>\n", file);
}

/* ------------------------------------------------------------------ scales */

/* 0 if a point has no error bar, as where there is nothing but rounding. */
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

/* Steps of 1, 2 or 5 times a power of ten; the ends lie on steps. */
static void round_scale(struct scale *s)
{
    if (!(s->low <= s->high))
        s->low = 0, s->high = 1;
    if (s->low == s->high)
        s->high += s->high > 0 ? s->high : 1;
    const double raw = (s->high - s->low) / TICKS, power = pow(10, floor(log10(raw)));
    const double lead = raw / power;
    s->step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
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
    *y = (struct scale){0, -INFINITY, 0}; /* figures begin at 0, so that ratios can be seen */
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

/* ------------------------------------------------------------------ parts */

static void draw_axes(const struct esp_plot *p, const struct scale *x, const struct scale *y,
                      FILE *file)
{
    char text[32];
    for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
        const double value = y->low + i * y->step, at = up(y, value);
        fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, at, LEFT + WIDE);
        snprintf(text, sizeof text, "%.4g", fabs(value) < y->step / 2 ? 0 : value);
        label(file, LEFT - 8, at + 4, "text-anchor=\"end\"", text);
    }
    for (int i = 0; !p->names && x->low + i * x->step <= x->high + x->step / 2; i++) {
        const double value = x->low + i * x->step;
        snprintf(text, sizeof text, "%.4g", fabs(value) < x->step / 2 ? 0 : value);
        label(file, across(x, value), TOP + HIGH + 18, "text-anchor=\"middle\"", text);
    }
    for (int i = 0; p->names && i < p->name_count; i++)
        label(file, across(x, i), TOP + HIGH + 18, "text-anchor=\"middle\"", p->names[i]);
    fprintf(file, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#333\"/>\n", LEFT, TOP,
            TOP + HIGH, LEFT + WIDE);
    label(file, LEFT + WIDE / 2.0, TOP + HIGH + 42, "text-anchor=\"middle\"", p->x_label);
    label(file, LEFT, TOP - 10, "", p->y_label);
}

/* The style of a series: its place among those that are no reference, or among those that are.
 */
struct look {
    const char *colour, *dash, *pattern;
    int shape; /* of the mark; -1: none */
    bool hollow;
};

static struct look look_of(const struct esp_plot *p, int index)
{
    int place = 0;
    for (int i = 0; i < index; i++)
        place += p->series[i].reference == p->series[index].reference;
    if (p->series[index].reference)
        return (struct look){"#222222", reference_dashes[place % ROUNDS], "", -1, false};
    const int round = place / COLOURS % ROUNDS;
    return (struct look){colours[place % COLOURS], dashes[round], patterns[round],
                         place % COLOURS, round > 0};
}

static void draw_mark(double x, double y, const struct look *look, FILE *file)
{
    static const char *const shapes[COLOURS] = {
        "m-4 -4h8v8h-8z",        "m0 -5l5 9h-10z",
        "m0 -5l5 5l-5 5l-5 -5z", "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "m0 5l5 -9h-10z",        "m-5 -2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
        "m5 0l-9 5v-10z",        "m0 -6l2 4l4 2l-4 2l-2 4l-2 -4l-4 -2l4 -2z",
    };
    if (look->shape < 0)
        return;
    fprintf(file, "<path d=\"M%.1f %.1f%s\" fill=\"%s\"", x, y, shapes[look->shape],
            look->hollow ? "#fff" : look->colour);
    if (look->hollow)
        fprintf(file, " stroke=\"%s\" stroke-width=\"1.5\"", look->colour);
    fputs("/>\n", file);
}

static void end_line(const struct look *look, FILE *file)
{
    fprintf(file, "\" stroke=\"%s\" stroke-width=\"2\"", look->colour);
    if (*look->dash)
        fprintf(file, " stroke-dasharray=\"%s\"", look->dash);
    fputs(look->shape < 0 ? " class=\"reference\"/>\n" : "/>\n", file);
}

/* Down to 0 at most, where the picture of positive values ends. */
static void draw_error(double x, double value, double error, const struct scale *y,
                       const char *colour, FILE *file)
{
    enum { CAP = 3 };
    const double top = up(y, value + error), bottom = up(y, fmax(value - error, y->low));
    if (error > 0)
        fprintf(file,
                "<path class=\"error\" fill=\"none\" d=\"M%.1f %.1fh%dm-%d 0V%.1fm-%d 0h%d\" "
                "stroke=\"%s\"/>\n",
                x - CAP, top, 2 * CAP, CAP, bottom, CAP, 2 * CAP, colour);
}

/* A value that holds for all x. */
static void draw_level(double at, const struct look *look, FILE *file)
{
    fprintf(file, "<path fill=\"none\" d=\"M%d %.1fH%d", LEFT, at, LEFT + WIDE);
    end_line(look, file);
    draw_mark(LEFT, at, look, file);
    draw_mark(LEFT + WIDE, at, look, file);
}

static void draw_line(const struct esp_plot_series *s, const struct look *look, double aside,
                      const struct scale *x, const struct scale *y, FILE *file)
{
    bool begun = false;
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->y[i]) || !isfinite(s->x[i]))
            continue;
        fprintf(file, "%s%.1f %.1f", begun ? "L" : "<path fill=\"none\" d=\"M",
                across(x, s->x[i]), up(y, s->y[i]));
        begun = true;
    }
    if (begun)
        end_line(look, file);
    for (int i = 0; i < s->count; i++)
        if (isfinite(s->y[i]) && isfinite(s->x[i]))
            draw_error(across(x, s->x[i]) + aside, s->y[i], error_of(s, i), y, look->colour,
                       file);
    for (int i = 0; i < s->count; i++)
        if (isfinite(s->y[i]) && isfinite(s->x[i]))
            draw_mark(across(x, s->x[i]), up(y, s->y[i]), look, file);
}

/* Patterns that are laid over bars. */
static void define_patterns(FILE *file)
{
    static const char *const paths[ROUNDS] = {"", "M0 0l6 6M-1 5l2 2M5 -1l2 2",
                                              "M2 3a1 1 0 1 0 2 0a1 1 0 1 0 -2 0", "M0 3h6"};
    fputs("<defs>\n", file);
    for (int i = 1; i < ROUNDS; i++)
        fprintf(file,
                "<pattern id=\"%s\" width=\"6\" height=\"6\" "
                "patternUnits=\"userSpaceOnUse\"><path d=\"%s\" stroke=\"#fff\" "
                "stroke-width=\"2\" fill=\"none\"/></pattern>\n",
                patterns[i], paths[i]);
    fputs("</defs>\n", file);
}

static void draw_bar(double x, double y, double wide, double high, const struct look *look,
                     FILE *file)
{
    static const char *const rect =
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s%s%s\"/>\n";
    fprintf(file, rect, x, y, wide, high, look->colour, "", "");
    if (*look->pattern)
        fprintf(file, rect, x, y, wide, high, "url(#", look->pattern, ")");
}

/* How many series have bars, and how many of those come before one. */
static int count_bars(const struct esp_plot *p, int before)
{
    int count = 0;
    for (int i = 0; i < before; i++)
        count += !p->series[i].reference;
    return count;
}

/* A bar over each name; of what others are compared with, a line over the whole group. */
static void draw_bars(const struct esp_plot *p, int index, const struct scale *x,
                      const struct scale *y, FILE *file)
{
    const struct esp_plot_series *s = &p->series[index];
    const struct look look = look_of(p, index);
    const double group = 0.8 * (across(x, 1) - across(x, 0)),
                 wide = group / fmax(count_bars(p, p->series_count), 1);
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->y[i]) || !isfinite(s->x[i]))
            continue;
        const double from = across(x, s->x[i]) - group / 2;
        const double top = up(y, s->y[i] > 0 ? s->y[i] : 0),
                     foot = up(y, s->y[i] > 0 ? 0 : s->y[i]);
        if (s->reference) {
            fprintf(file, "<path fill=\"none\" d=\"M%.1f %.1fh%.1f", from, up(y, s->y[i]),
                    group);
            end_line(&look, file);
        } else {
            const double x_bar = from + count_bars(p, index) * wide;
            draw_bar(x_bar, top, wide * 0.9, foot - top, &look, file);
            draw_error(x_bar + wide * 0.45, s->y[i], error_of(s, i), y, "#222222", file);
        }
    }
}

static void draw_series(const struct esp_plot *p, int index, const struct scale *x,
                        const struct scale *y, FILE *file)
{
    const struct esp_plot_series *s = &p->series[index];
    const struct look look = look_of(p, index);
    for (int i = 0; i < s->count; i++)
        if (isfinite(s->y[i]) && !isfinite(s->x[i])) {
            draw_level(up(y, s->y[i]), &look, file);
            draw_error(LEFT + WIDE + 4 + 2 * (index % 5), s->y[i], error_of(s, i), y,
                       look.colour, file);
        }
    if (p->names)
        draw_bars(p, index, x, y, file);
    else
        draw_line(s, &look, 2.0 * (index % 5 - 2), x, y, file);
}

static void draw_entry(const struct esp_plot *p, int index, double x, double y, FILE *file)
{
    const struct look look = look_of(p, index);
    if (p->names && !p->series[index].reference) {
        draw_bar(x + SAMPLE / 2.0 - 6, y - 6, 12, 12, &look, file);
    } else {
        fprintf(file, "<path fill=\"none\" d=\"M%.1f %.1fh%d", x, y, SAMPLE);
        end_line(&look, file);
        draw_mark(x + SAMPLE / 2.0, y, &look, file);
    }
    label(file, x + SAMPLE + 6, y + 4, "", p->series[index].label);
}

static bool has_errors(const struct esp_plot *p)
{
    for (int i = 0; i < p->series_count; i++)
        for (int j = 0; j < p->series[i].count; j++)
            if (error_of(&p->series[i], j) > 0)
                return true;
    return false;
}

void esp_plot_write(const struct esp_plot *p, FILE *file)
{
    struct scale x, y;
    const int right = LEFT + WIDE + 24, wide = right + 320;
    const bool errors = has_errors(p) && p->error_label;
    const int legend = TOP + (p->series_count + 1 + errors) * LINE, plain = TOP + HIGH + BELOW;
    find_scales(p, &x, &y);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            wide, legend > plain ? legend : plain);
    label(file, wide / 2.0, 20, "text-anchor=\"middle\" font-size=\"14\" font-weight=\"bold\"",
          p->title);
    if (p->names)
        define_patterns(file);
    draw_axes(p, &x, &y, file);
    for (int i = 0; i < p->series_count; i++) {
        draw_series(p, i, &x, &y, file);
        draw_entry(p, i, right, TOP + 6 + i * LINE, file);
    }
    if (errors) {
        const double at = TOP + 6 + p->series_count * LINE;
        const struct scale points = {0, HIGH, 1}; /* one unit is one point */
        draw_error(right + SAMPLE / 2.0, TOP + HIGH - at, 6, &points, "#222222", file);
        label(file, right + SAMPLE + 6, at + 4, "", p->error_label);
    }
    fputs("</svg>\n", file);
}
