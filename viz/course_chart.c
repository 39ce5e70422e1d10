/* course_chart.c - draws a course as a chart; see course_chart.h.
 *
 * Lengths are in points. A chart of any shape has the area of a chart of 960 x 540, or more if
 * it has many panels. Texts are anchored at one end, and their widths are estimated generously,
 * because the program that shows the chart may use another font.
 */
#include "viz/course_chart.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "viz/chart.h"
#include "viz/colours.h"

enum {
    AREA = 960 * 540,
    EDGE = 30,
    TITLE = 20,
    LINE = 13,
    SMALL = 11,
    PANELS = 8 /* panels that fit into this area */
};
enum { MOST_POINTS = 1000, MOST_COLUMNS = 200 };

static const char *const names[] = {
#define X(name, text) text,
    ESP_COURSE_CHARTS(X)
#undef X
};

struct chart {
    struct esp_drawing *file;
    const struct esp_course *course;
    const struct esp_course_chart_options *options;
    const struct esp_colours *colours;
    double width, height;
    double top; /* y where the next part of the chart can begin */
};

struct box {
    double x, y, width, height;
};

int esp_course_chart_find(const char *name)
{
    for (int i = 0; i < ESP_COURSE_CHART_KINDS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *esp_course_chart_name(int kind)
{
    return names[kind];
}

/* ------------------------------------------------------------------ parts */

static void draw_text(struct chart *d, double x, double y, int size, int anchor,
                      const char *colour, bool bold, const char *text)
{
    esp_drawing_text(d->file, x, y, size, anchor, bold ? ESP_TEXT_BOLD : 0, colour, text);
}

/* Draws small text in the colour of labels. */
__attribute__((format(printf, 5, 6))) static void
draw_small(struct chart *d, double x, double y, int anchor, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    draw_text(d, x, y, SMALL, anchor, d->colours->label, false, text);
}

static void draw_line(struct chart *d, double x1, double y1, double x2, double y2,
                      const char *colour)
{
    esp_drawing_line(d->file, &(struct esp_pen){.stroke = colour}, x1, y1, x2, y2);
}

static void draw_rect(struct chart *d, struct box box, const char *fill)
{
    esp_drawing_rect(d->file, &(struct esp_pen){.fill = fill}, box.x, box.y, box.width,
                     box.height, 0);
}

/* Draws a ring, which marks a rate as a fraction of all iterations. */
static void draw_ring(struct chart *d, double x, double y)
{
    const struct esp_pen ring = {d->colours->background, d->colours->accepted, 2, NULL, NULL};
    esp_drawing_circle(d->file, &ring, x, y, 6);
}

static double width_of(const char *text, int size)
{
    return esp_drawing_width(text, size, 0);
}

/* Draws a legend entry: a swatch and a text. Returns the x where the next entry can begin. */
static double draw_entry(struct chart *d, double x, double y, const char *colour,
                         const char *text)
{
    draw_rect(d, (struct box){x, y - 10, 12, 12}, colour);
    draw_text(d, x + 18, y, LINE, ESP_ANCHOR_START, d->colours->label, false, text);
    return x + 18 + width_of(text, LINE) + 20;
}

__attribute__((format(printf, 3, 4))) static void
draw_caption(struct chart *d, const char *title, const char *format, ...)
{
    const struct esp_course *course = d->course;
    char text[768];
    va_list args;
    if (d->options->caption == ESP_CAPTION_NONE)
        return;
    d->top += TITLE;
    draw_text(d, EDGE, d->top, TITLE, ESP_ANCHOR_START, d->colours->text, true, title);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->top += LINE + 7;
    draw_text(d, EDGE, d->top, LINE, ESP_ANCHOR_START, d->colours->text, false, text);
    if (d->options->caption == ESP_CAPTION_FULL) {
        snprintf(text, sizeof text, "drafter %s, verifier %s%s%s", course->drafters,
                 course->verifiers, d->options->models && *d->options->models ? ", " : "",
                 d->options->models ? d->options->models : "");
        d->top += LINE + 5;
        draw_text(d, EDGE, d->top, LINE, ESP_ANCHOR_START, d->colours->label, false, text);
    }
    d->top += LINE;
}

/* Draws the indices of the first and the last iteration below a chart. */
static void draw_iterations(struct chart *d, struct box box)
{
    const struct esp_course_point *points = d->course->points;
    const double y = box.y + box.height + SMALL + 4;
    draw_small(d, box.x, y, ESP_ANCHOR_START, "%d", points[0].index);
    draw_small(d, box.x + box.width / 2, y, ESP_ANCHOR_MIDDLE, "iteration");
    draw_small(d, box.x + box.width, y, ESP_ANCHOR_END, "%d",
               points[d->course->count - 1].index);
}

/* ------------------------------------------------------------------ thresholds */

static void widen(const struct esp_course *course, int gauge, struct esp_axis *axis)
{
    for (int i = 0; gauge >= 0 && i < course->count; i++)
        esp_axis_include(axis, (double)course->gauges[gauge].values[i]);
}

/* Draws the values of a gauge as a line; a missing value leaves a gap. */
static void draw_course(struct chart *d, struct box box, int gauge, const struct esp_axis *axis,
                        const char *colour, const char *dashes)
{
    const struct esp_course *course = d->course;
    const struct esp_pen pen = {.stroke = colour, .width = 2, .dashes = dashes};
    const int step = 1 + (course->count - 1) / MOST_POINTS;
    double points[2 * MOST_POINTS + 2];
    int count = 0;
    for (int i = 0; i < course->count; i += step) {
        const double place = esp_axis_place(axis, (double)course->gauges[gauge].values[i]);
        if (isfinite(place)) {
            points[2 * count] = box.x + (course->count > 1 ? box.width * i / (course->count - 1)
                                                           : box.width / 2);
            points[2 * count++ + 1] = box.y + box.height * (1 - place);
        }
        if (!isfinite(place) || i + step >= course->count) {
            esp_drawing_path(d->file, &pen, points, count, false);
            count = 0;
        }
    }
}

static int goal_of(const struct esp_course *course, int gauge)
{
    const struct esp_course_gauge *g = &course->gauges[gauge];
    return esp_course_find(course, g->owner, g->goal);
}

/* Writes the last value: "at the end .83", or "last .83" if the drafter was changed before the
 * end. */
static const char *say_last(char text[32], const struct esp_course *course, int gauge)
{
    const float *values = course->gauges[gauge].values;
    char number[16];
    int i = course->count - 1;
    while (i > 0 && !isfinite(values[i]))
        i--;
    snprintf(text, 32, "%s %s", i == course->count - 1 ? "at the end" : "last",
             esp_number(number, (double)values[i], 3));
    return text;
}

/* Writes the name of a gauge, with the drafter's name if there were several drafters. */
static void say_name(char *text, size_t size, const struct esp_course *course, int gauge)
{
    const struct esp_course_gauge *g = &course->gauges[gauge];
    bool several = false;
    for (int i = 0; i < course->gauge_count; i++)
        several = several || (course->gauges[i].owner[0] &&
                              strcmp(course->gauges[i].owner, g->owner) != 0);
    snprintf(text, size, "%s%s%s", several ? g->owner : "", several && g->owner[0] ? ": " : "",
             g->name);
}

static void draw_panel(struct chart *d, struct box box, int gauge)
{
    enum { SCALE = 44 };
    const struct esp_course *course = d->course;
    const int goal = goal_of(course, gauge);
    struct esp_axis axis = {INFINITY, -INFINITY};
    char low[16], high[16], name[128], last[32];
    widen(course, gauge, &axis);
    widen(course, goal, &axis);
    esp_axis_ends(&axis, low, high);
    say_name(name, sizeof name, course, gauge);
    draw_text(d, box.x + SCALE, box.y + LINE, LINE, ESP_ANCHOR_START, d->colours->text, true,
              name);
    say_last(last, course, gauge);
    const bool fits = width_of(name, LINE) + width_of(last, LINE) + 10 < box.width - SCALE;
    draw_text(d, box.x + box.width, box.y + LINE, LINE, ESP_ANCHOR_END, d->colours->label,
              false, fits ? last : strrchr(last, ' ') + 1);
    const struct box plot = {box.x + SCALE, box.y + LINE + 9, box.width - SCALE,
                             box.height - LINE - 9 - SMALL - 10};
    draw_line(d, plot.x, plot.y, plot.x, plot.y + plot.height, d->colours->frame);
    draw_line(d, plot.x, plot.y + plot.height, plot.x + plot.width, plot.y + plot.height,
              d->colours->frame);
    draw_small(d, plot.x - 5, plot.y + SMALL - 1, ESP_ANCHOR_END, "%s", high);
    draw_small(d, plot.x - 5, plot.y + plot.height, ESP_ANCHOR_END, "%s", low);
    if (esp_axis_is_log(&axis))
        draw_small(d, plot.x - 5, plot.y + (plot.height + SMALL) / 2, ESP_ANCHOR_END, "log");
    if (goal >= 0)
        draw_course(d, plot, goal, &axis, d->colours->rejected, "6 4");
    draw_course(d, plot, gauge, &axis, d->colours->course, NULL);
    draw_iterations(d, plot);
}

/* Lists the gauges whose values change; returns how many there are. */
static int list_panels(const struct esp_course *course, int panels[ESP_COURSE_GAUGES])
{
    int count = 0;
    for (int i = 0; i < course->gauge_count; i++)
        if (esp_course_moves(course, i))
            panels[count++] = i;
    return count;
}

static int draw_thresholds(struct chart *d, char *err, size_t errlen)
{
    const struct esp_course *course = d->course;
    int shown[ESP_COURSE_GAUGES];
    const int count = list_panels(course, shown);
    bool goals = false;
    for (int i = 0; i < count; i++)
        goals = goals || goal_of(course, shown[i]) >= 0;
    if (count == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        course->gauge_count > 0 ? "no threshold moves in these iterations"
                                                : "this drafter has no thresholds");
    draw_caption(d, "Thresholds over the iterations", "%d iterations%s", course->count,
                 goals ? "; dashed: the goal of a value" : "");
    const int columns = count <= 2 || d->width < d->height ? 1
                        : count <= PANELS                  ? 2
                                                           : 3,
              rows = (count + columns - 1) / columns;
    const double wide = (d->width - 2 * EDGE - 30 * (columns - 1)) / columns,
                 high = (d->height - EDGE / 2.0 - d->top) / rows;
    for (int i = 0; i < count; i++)
        draw_panel(d,
                   (struct box){EDGE + (i % columns) * (wide + 30),
                                d->top + (i / columns) * high, wide, high - 8},
                   shown[i]);
    return ESP_OK;
}

/* Returns the area of the chart. A chart with many panels is larger. */
static double area_of(const struct esp_course *course, int kind)
{
    int panels[ESP_COURSE_GAUGES];
    const int count = kind == ESP_COURSE_CHART_THRESHOLDS ? list_panels(course, panels) : 0;
    return count > PANELS ? (double)AREA * count / PANELS : AREA;
}

/* ------------------------------------------------------------------ acceptance */

static void draw_scale(struct chart *d, struct box plot)
{
    for (int i = 0; i <= 4; i++) {
        const double y = plot.y + plot.height * (1 - i / 4.0);
        char number[16];
        draw_line(d, plot.x, y, plot.x + plot.width, y,
                  i ? d->colours->edge : d->colours->frame);
        draw_small(d, plot.x - 6, y + 4, ESP_ANCHOR_END, "%s",
                   i ? esp_number(number, i / 4.0, 2) : "0");
    }
}

static void draw_depth(struct chart *d, struct box plot, double wide, int depth)
{
    const struct esp_acceptance *a = &d->course->acceptance;
    const struct esp_accept_depth *at = &a->depth[depth];
    const double share = (double)at->accepted / (double)at->tried,
                 all = (double)at->accepted / a->iterations, x = plot.x + wide * (depth + 0.5);
    const double y = plot.y + plot.height * (1 - all);
    char text[32], number[8];
    draw_rect(d,
              (struct box){x - 0.3 * wide, plot.y + plot.height * (1 - share), 0.6 * wide,
                           plot.height * share},
              d->colours->course);
    draw_text(d, x, plot.y + plot.height * (1 - share) - 6, LINE, ESP_ANCHOR_MIDDLE,
              d->colours->text, true, esp_probability(number, share));
    draw_ring(d, x, y);
    snprintf(text, sizeof text, "%d", depth + 1);
    draw_text(d, x, plot.y + plot.height + LINE + 4, LINE, ESP_ANCHOR_MIDDLE, d->colours->text,
              true, text);
    if (wide > 60)
        draw_small(d, x, plot.y + plot.height + 2 * LINE + 7, ESP_ANCHOR_MIDDLE, "%lld tried",
                   (long long)at->tried);
}

static int draw_acceptance(struct chart *d, char *err, size_t errlen)
{
    const struct esp_acceptance *a = &d->course->acceptance;
    int deepest = 0;
    for (int i = 0; i < ESP_ACCEPT_DEPTHS; i++)
        if (a->depth[i].tried > 0)
            deepest = i + 1;
    if (deepest == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "nothing was drafted in these iterations");
    draw_caption(d, "Acceptance by depth",
                 "%d iterations; on average %.2f accepted tokens in each", a->iterations,
                 (double)a->accepted / a->iterations);
    const bool words = d->options->caption != ESP_CAPTION_NONE;
    const struct box plot = {EDGE + 30, d->top + 16, d->width - 2 * EDGE - 30,
                             d->height - d->top - 16 - (words ? 84 : 54)};
    draw_scale(d, plot);
    for (int i = 0; i < deepest; i++)
        if (a->depth[i].tried > 0)
            draw_depth(d, plot, plot.width / deepest, i);
    if (!words)
        return ESP_OK;
    const double y = d->height - EDGE / 2.0 - 4;
    double x = draw_entry(d, plot.x, y, d->colours->course,
                          "acceptance rate, if the verifier reached this depth");
    draw_ring(d, x + 6, y - 4);
    draw_text(d, x + 18, y, LINE, ESP_ANCHOR_START, d->colours->label, false,
              "in all iterations");
    return ESP_OK;
}

/* ------------------------------------------------------------------ stages */

/* A column of the chart: one iteration, or the mean of several. */
struct column {
    double seconds[ESP_STAGES], all, plain;
};

static int make_columns(const struct esp_course *course, struct column columns[MOST_COLUMNS])
{
    const int each = 1 + (course->count - 1) / MOST_COLUMNS;
    int made = 0;
    for (int first = 0; first < course->count; first += each, made++) {
        struct column *c = &columns[made];
        const int end = first + each < course->count ? first + each : course->count;
        *c = (struct column){.all = 0};
        for (int i = first; i < end; i++) {
            const struct esp_course_point *p = &course->points[i];
            for (int s = 0; s < ESP_STAGES; s++)
                c->seconds[s] += esp_measured(p->seconds[s]) / (end - first);
            c->plain += esp_measured(p->baseline) * p->committed / (end - first);
        }
        for (int s = 0; s < ESP_STAGES; s++)
            c->all += c->seconds[s];
    }
    return made;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the time in seconds at the top of the chart: the time of the highest column, unless
 * that column is an outlier. */
static double find_scale(const struct column *columns, int count, bool *cut)
{
    double sorted[MOST_COLUMNS];
    for (int i = 0; i < count; i++)
        sorted[i] = fmax(columns[i].all, columns[i].plain);
    qsort(sorted, (size_t)count, sizeof *sorted, rising);
    const double usual = 1.2 * sorted[(count - 1) * 95 / 100], most = sorted[count - 1];
    *cut = most > 2 * usual && usual > 0;
    return *cut ? usual : most;
}

static void draw_column(struct chart *d, struct box place, const struct column *c, double scale)
{
    double reached = 0;
    for (int s = 0; s < ESP_STAGES; s++) {
        const double from = fmin(reached / scale, 1),
                     to = fmin((reached + c->seconds[s]) / scale, 1);
        reached += c->seconds[s];
        if (to - from > 0.0005)
            draw_rect(d,
                      (struct box){place.x, place.y + place.height * (1 - to), place.width,
                                   place.height * (to - from)},
                      d->colours->stage[s]);
    }
    const double y = place.y + place.height * (1 - c->plain / scale);
    if (c->plain > 0 && c->plain <= scale)
        esp_drawing_line(d->file, &(struct esp_pen){.stroke = d->colours->text, .width = 2},
                         place.x, y, place.x + place.width, y);
}

/* Draws the legend of the stages, with the mean time of each stage. Returns the y below it. */
static double draw_stage_legend(struct chart *d, double x, double y)
{
    const struct esp_course *course = d->course;
    const double start = x;
    char text[64], number[16];
    for (int s = 0; s < ESP_STAGES; s++) {
        double all = 0;
        for (int i = 0; i < course->count; i++)
            all += esp_measured(course->points[i].seconds[s]) / course->count;
        snprintf(text, sizeof text, "%s %s ms", esp_stage_name(s),
                 esp_number(number, 1e3 * all, 2));
        if (x > start && x + 18 + width_of(text, LINE) > d->width - EDGE) {
            x = start;
            y += LINE + 6;
        }
        x = draw_entry(d, x, y, d->colours->stage[s], text);
    }
    return y + LINE + 6;
}

static int draw_stages(struct chart *d, char *err, size_t errlen)
{
    struct column columns[MOST_COLUMNS];
    const int count = make_columns(d->course, columns);
    const bool words = d->options->caption != ESP_CAPTION_NONE;
    bool cut;
    char number[16];
    const double scale = find_scale(columns, count, &cut);
    if (!(scale > 0))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "no times were measured in these iterations");
    draw_caption(d, "Time by stage", "%d iterations; line: plain decoding of as many tokens%s",
                 d->course->count, cut ? "; the highest columns are truncated" : "");
    if (words)
        d->top = draw_stage_legend(d, EDGE + 30, d->top + 8) - 6;
    const struct box plot = {EDGE + 30, d->top + 10, d->width - 2 * EDGE - 30,
                             d->height - d->top - 10 - EDGE};
    draw_line(d, plot.x, plot.y + plot.height, plot.x + plot.width, plot.y + plot.height,
              d->colours->frame);
    draw_line(d, plot.x, plot.y, plot.x, plot.y + plot.height, d->colours->frame);
    draw_small(d, plot.x - 6, plot.y + SMALL - 1, ESP_ANCHOR_END, "%s ms",
               esp_number(number, 1e3 * scale, 2));
    draw_small(d, plot.x - 6, plot.y + plot.height, ESP_ANCHOR_END, "0");
    const double each = plot.width / count;
    for (int i = 0; i < count; i++)
        draw_column(d, (struct box){plot.x + each * (i + 0.1), plot.y, 0.8 * each, plot.height},
                    &columns[i], scale);
    draw_iterations(d, plot);
    return ESP_OK;
}

/* ------------------------------------------------------------------ the whole chart */

int esp_course_chart_draw(const struct esp_course *course,
                          const struct esp_course_chart_options *options,
                          struct esp_drawing *drawing, char *err, size_t errlen)
{
    static int (*const draw[])(struct chart *, char *, size_t) = {
        draw_thresholds, draw_acceptance, draw_stages}; /* in the order of ESP_COURSE_CHARTS */
    const double aspect = options->aspect > 0 ? options->aspect : 16.0 / 9;
    struct chart d = {.file = drawing,
                      .course = course,
                      .options = options,
                      .colours = esp_colours_find(options->theme ? options->theme : "light"),
                      .width = sqrt(area_of(course, options->kind) * aspect),
                      .top = EDGE / 2.0};
    d.height = d.width / aspect;
    if (course->count == 0)
        return esp_fail(err, errlen, ESP_E_ARGUMENT, "there is no iteration yet");
    drawing->width = d.width;
    drawing->height = d.height;
    drawing->background = d.colours->background;
    snprintf(drawing->title, sizeof drawing->title, "%s of %d iterations", names[options->kind],
             course->count);
    int status = draw[options->kind](&d, err, errlen);
    if (status == ESP_OK && drawing->failed)
        status = esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the chart");
    return status;
}
