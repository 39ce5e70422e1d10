/* plot.c - lines or bars as SVG; see plot.h.
 *
 * Colours are those of Okabe and Ito, which people who see few colours tell apart; every line
 * has a mark of its own as well.
 */
#include "viz/plot.h"

#include <math.h>

#include "viz/safe.h"

enum { LEFT = 64, TOP = 40, WIDE = 480, HIGH = 300, BELOW = 56, LINE = 18, TICKS = 5 };

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#8a6d00", "#56b4e9", "#444444", "#7a3db8"};

enum { COLOURS = sizeof colours / sizeof *colours };

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
            include(y, p->series[i].y[j]);
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

static void draw_mark(double x, double y, int kind, const char *colour, FILE *file)
{
    static const char *const shapes[] = {"m-4 -4h8v8h-8z", "m0 -5l5 9h-10z",
                                         "m0 -5l5 5l-5 5l-5 -5z",
                                         "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"};
    fprintf(file, "<path d=\"M%.1f %.1f%s\" fill=\"%s\"/>\n", x, y, shapes[kind % 4], colour);
}

static void draw_line(const struct esp_plot_series *s, int index, const struct scale *x,
                      const struct scale *y, FILE *file)
{
    const char *colour = colours[index % COLOURS];
    bool begun = false;
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->y[i]) || !isfinite(s->x[i]))
            continue;
        fprintf(file, "%s%.1f %.1f", begun ? "L" : "<path fill=\"none\" d=\"M",
                across(x, s->x[i]), up(y, s->y[i]));
        begun = true;
    }
    if (begun)
        fprintf(file, "\" stroke=\"%s\" stroke-width=\"2\"/>\n", colour);
    for (int i = 0; i < s->count; i++)
        if (isfinite(s->y[i]) && isfinite(s->x[i]))
            draw_mark(across(x, s->x[i]), up(y, s->y[i]), index, colour, file);
}

static void draw_bars(const struct esp_plot *p, int index, const struct scale *x,
                      const struct scale *y, FILE *file)
{
    const struct esp_plot_series *s = &p->series[index];
    const double group = 0.8 * (across(x, 1) - across(x, 0)), wide = group / p->series_count;
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->y[i]))
            continue;
        const double left = across(x, s->x[i]) - group / 2 + index * wide;
        const double top = up(y, s->y[i] > 0 ? s->y[i] : 0),
                     foot = up(y, s->y[i] > 0 ? 0 : s->y[i]);
        fprintf(file,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                left, top, wide * 0.9, foot - top, colours[index % COLOURS]);
    }
}

void esp_plot_write(const struct esp_plot *p, FILE *file)
{
    struct scale x, y;
    const int right = LEFT + WIDE + 24, wide = right + 300;
    const int legend = TOP + (p->series_count + 1) * LINE, plain = TOP + HIGH + BELOW;
    find_scales(p, &x, &y);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            wide, legend > plain ? legend : plain);
    label(file, wide / 2.0, 20, "text-anchor=\"middle\" font-size=\"14\" font-weight=\"bold\"",
          p->title);
    draw_axes(p, &x, &y, file);
    for (int i = 0; i < p->series_count; i++) {
        const double at = TOP + 10 + i * LINE;
        if (p->names)
            draw_bars(p, i, &x, &y, file);
        else
            draw_line(&p->series[i], i, &x, &y, file);
        draw_mark(right, at - 4, p->names ? 0 : i, colours[i % COLOURS], file);
        label(file, right + 12, at, "", p->series[i].label);
    }
    fputs("</svg>\n", file);
}
