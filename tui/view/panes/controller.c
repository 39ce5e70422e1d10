/* controller.c - the controller pane shows the values that a drafter adapts, before and after
 * this iteration, and their history.
 *
 *     upper confidence (tauh)   .90 → .87   .87 to .94   ▇▇▆▆▆▅▅▅▅▄
 *     accepted share            .71 → .74   .58 to .81   ▃▅▄▆▇▅▆▆▅▆
 *     lower confidence .40   stopping bound .10   goal .70
 *
 *     K 2, L1 3, L2 4     .41   3.12 tokens in 2.3 ms
 *
 * From top to bottom:
 *
 * - the tree shapes from which the drafter chose, with their probabilities and expected results
 *   (the chosen shape is the first);
 * - the values that change between iterations, one line each, with range and history;
 * - the values that are constant.
 *
 * A low pane shows all values in one row. A high pane (zoomed) shows a chart of each changing
 * value with its goal, and sentences that say what the value does and why it changed. For a
 * drafter without a controller, the pane shows which fraction of the drafted depth was
 * accepted.
 */
#include "tui/view/pane.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/gauges.h"
#include "viz/wrap.h"

enum { HIGH = 12 /* a pane with at least this many rows has charts */ };

/* Lists which fraction of the drafted depth each iteration accepted, from the oldest iteration
 * to the newest. Returns the number of values. */
static int path_shares(const struct esp_shown *s, float values[ESP_POINTS])
{
    int count = 0;
    for (int i = 0; i < s->state->trace.course.count; i++) {
        const struct esp_course_point *point = &s->state->trace.course.points[i];
        if (point->deepest > 0)
            values[count++] = (float)point->path / (float)point->deepest;
    }
    return count;
}

static int draw_change(struct esp_canvas *canvas, int x, int y, const struct esp_gauge *gauge)
{
    char before[16], after[16];
    esp_number(before, gauge->before, 2);
    esp_number(after, gauge->after, 2);
    if (strcmp(before, after) == 0)
        return esp_draw(canvas, x, y, ESP_STYLE_VALUE, after);
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, before) + 1;
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, canvas->glyphs->arrow) + 1;
    return esp_draw(canvas, x, y, ESP_STYLE_VALUE, after);
}

/* Returns the width of what draw_change() draws. */
static int change_width(const struct esp_gauge *gauge)
{
    char before[16], after[16];
    esp_number(before, gauge->before, 2);
    esp_number(after, gauge->after, 2);
    const int width = (int)strlen(after);
    return strcmp(before, after) == 0 ? width : width + (int)strlen(before) + 3;
}

static void draw_share(struct esp_canvas *canvas, int x, int y, double share)
{
    char text[8];
    esp_draw(canvas, x, y, ESP_STYLE_VALUE, esp_probability(text, share));
}

static bool moves(const struct esp_shown *s, int gauge)
{
    float values[ESP_POINTS];
    esp_trace_values(&s->state->trace, s->it, s->it->gauges[gauge].name, values);
    const struct esp_axis axis = esp_axis_of(values, s->state->trace.course.count);
    return axis.high > axis.low || s->it->gauges[gauge].before != s->it->gauges[gauge].after;
}

/* Draws as many of the last values as fit, and their range: ".0016 to .10 ▇▆▅". */
static void draw_spark(struct esp_canvas *canvas, int x, int y, const float *values, int count)
{
    enum { RANGE = 13, LEAST = 8 /* columns */ };
    int width = canvas->view.rect.width - x;
    if (width >= RANGE + LEAST)
        width -= RANGE;
    const int shown = count < width ? count : width;
    const struct esp_axis axis = esp_axis_of(values + count - shown, shown);
    char low[16], high[16];
    esp_axis_ends(&axis, low, high);
    if (width < canvas->view.rect.width - x) {
        esp_drawf(canvas, x, y, ESP_STYLE_LABEL, "%s to %s", low, high);
        x += RANGE;
    }
    esp_draw_spark(canvas, x, y, width, ESP_STYLE_SPARK, values, count, &axis);
}

/* Draws the constant values, beginning in row `y`. */
static void draw_still(struct esp_canvas *canvas, const struct esp_shown *s, int y)
{
    const int width = canvas->view.rect.width;
    int x = 0;
    for (int i = 0; i < s->it->gauge_count; i++) {
        const char *name = esp_gauge_name(s->it, s->it->gauges[i].name);
        if (moves(s, i))
            continue;
        if (x > 0 && x + (int)strlen(name) + 8 > width) {
            x = 0;
            y++;
        }
        x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, name) + 1;
        x = draw_change(canvas, x, y, &s->it->gauges[i]) + 3;
    }
}

/* Returns the column where the numbers start. It is after the widest name of a changing value.
 * Sets *full to whether there is room for the symbols after the names. */
static int name_column(const struct esp_canvas *canvas, const struct esp_shown *s, bool *full)
{
    enum { LEAST = 46 /* columns of numbers, range and history */ };
    int widest[2] = {0, 0};
    for (int i = 0; i < s->it->gauge_count; i++) {
        char text[64];
        if (!moves(s, i))
            continue;
        const int name = (int)strlen(esp_gauge_name(s->it, s->it->gauges[i].name)),
                  whole = (int)strlen(esp_gauge_full_name(text, s->it, s->it->gauges[i].name));
        widest[0] = name > widest[0] ? name : widest[0];
        widest[1] = whole > widest[1] ? whole : widest[1];
    }
    *full = widest[1] + LEAST <= canvas->view.rect.width;
    return widest[*full] + 2;
}

/* Draws the tree shapes from which the drafter chose. The chosen shape is the first. Returns
 * the number of lines. */
static int draw_choices(struct esp_canvas *canvas, const struct esp_iteration *it)
{
    enum { SHARE = 20, BRINGS = 26 };
    for (int i = 0; i < it->choice_count; i++) {
        const struct esp_shape_choice *choice = &it->choices[i];
        char shape[48], brings[64];
        snprintf(brings, sizeof brings, "%.2f tokens in %.2g ms", choice->tokens,
                 1e3 * choice->seconds);
        esp_draw(canvas, 0, i, i ? ESP_STYLE_LABEL : ESP_STYLE_VALUE,
                 esp_shape_text(shape, choice));
        draw_share(canvas, SHARE, i, choice->share);
        if (isfinite(choice->tokens) && isfinite(choice->seconds))
            esp_draw(canvas, BRINGS, i, i ? ESP_STYLE_LABEL : ESP_STYLE_VALUE, brings);
    }
    return it->choice_count;
}

/* Draws one value per line. */
static void draw_lines(struct esp_canvas *canvas, const struct esp_shown *s)
{
    enum { NUMBERS = 14 };
    bool full;
    float values[ESP_POINTS];
    const int column = name_column(canvas, s, &full);
    int y = draw_choices(canvas, s->it);
    for (int i = 0; i < s->it->gauge_count; i++) {
        const struct esp_gauge *gauge = &s->it->gauges[i];
        char name[64];
        if (!moves(s, i))
            continue;
        esp_draw(canvas, 0, y, ESP_STYLE_LABEL,
                 full ? esp_gauge_full_name(name, s->it, gauge->name)
                      : esp_gauge_name(s->it, gauge->name));
        draw_change(canvas, column, y, gauge);
        esp_trace_values(&s->state->trace, s->it, gauge->name, values);
        draw_spark(canvas, column + NUMBERS, y++, values, s->state->trace.course.count);
    }
    draw_still(canvas, s, y);
}

/* Draws all values in one row. The changing values come first. */
static void draw_row(struct esp_canvas *canvas, const struct esp_shown *s)
{
    char after[16];
    int x = 0, width = canvas->view.rect.width;
    for (int pass = 1; pass >= 0; pass--)
        for (int i = 0; i < s->it->gauge_count; i++) {
            const struct esp_gauge *gauge = &s->it->gauges[i];
            const char *name = esp_gauge_name(s->it, gauge->name);
            const int room = width - x - (int)strlen(name) - 1;
            if (moves(s, i) != pass)
                continue;
            if (room >= change_width(gauge)) {
                x = esp_draw(canvas, x, 0, ESP_STYLE_LABEL, name) + 1;
                x = draw_change(canvas, x, 0, gauge) + 3;
            } else if (room >= (int)strlen(esp_number(after, gauge->after, 2))) {
                x = esp_draw(canvas, x, 0, ESP_STYLE_LABEL, name) + 1;
                x = esp_draw(canvas, x, 0, ESP_STYLE_VALUE, after) + 3;
            }
        }
}

/* ------------------------------------------------------------------ charts */

/* Draws the heading of a chart: the name of the value, its change, its effect and the reason
 * for the change. Returns the number of rows. */
static int draw_heading(struct esp_canvas *canvas, const struct esp_iteration *it, int gauge,
                        int y)
{
    const struct esp_gauge *g = &it->gauges[gauge];
    char name[64], why[200], text[400];
    int x = esp_draw(canvas, 0, y, ESP_STYLE_TITLE, esp_gauge_full_name(name, it, g->name));
    draw_change(canvas, x + 2, y, g);
    esp_gauge_why(why, sizeof why, it, gauge);
    snprintf(text, sizeof text, "%s%s%s", esp_gauge_meaning(it, g->name), *why ? " " : "", why);
    return *text ? esp_draw_paragraph(canvas, y + 1, ESP_STYLE_LABEL, text) - y : 1;
}

/* Draws a chart of `rows` rows, with the scale on the left and the goal of the value, if it has
 * one. The scale includes all values that are shown, and the goal. */
static void draw_chart(struct esp_canvas *canvas, const struct esp_shown *s, int gauge, int y,
                       int rows)
{
    enum { SCALE = 7, GOAL = 10 /* columns for "goal .70" */ };
    const struct esp_gauge *g = &s->it->gauges[gauge];
    const struct esp_gauge *goal = esp_gauge_goal(s->it, g->name);
    const int width = canvas->view.rect.width - SCALE - GOAL,
              count = s->state->trace.course.count;
    float values[ESP_POINTS];
    char low[16], high[16], text[32];
    esp_trace_values(&s->state->trace, s->it, g->name, values);
    const int last = count < width ? count : width;
    struct esp_axis axis = esp_axis_of(values + count - last, last);
    if (goal)
        esp_axis_include(&axis, goal->after);
    esp_axis_ends(&axis, low, high);
    esp_draw(canvas, 0, y, ESP_STYLE_LABEL, high);
    if (rows > 1)
        esp_draw(canvas, 0, y + rows - 1, ESP_STYLE_LABEL, low);
    if (rows > 2 && esp_axis_is_log(&axis))
        esp_draw(canvas, 0, y + rows / 2, ESP_STYLE_LABEL, "log");
    const int shown = esp_draw_columns(canvas, (struct esp_rect){SCALE, y, width, rows},
                                       ESP_STYLE_SPARK, values, count, &axis);
    const double place = goal ? esp_axis_place(&axis, goal->after) : NAN;
    if (!isfinite(place))
        return;
    const int row = y + rows - 1 - (int)(place * rows < rows ? place * rows : rows - 1);
    esp_draw_repeat(canvas, SCALE + shown, row, width - shown, ESP_STYLE_WARN,
                    canvas->glyphs->dash);
    for (int x = 0; x < shown; x += 2)
        esp_draw_repeat(canvas, SCALE + x, row, 1, ESP_STYLE_WARN, canvas->glyphs->dash);
    snprintf(text, sizeof text, "goal %s", esp_number(low, goal->after, 2));
    esp_draw_right(canvas, canvas->view.rect.width, row, ESP_STYLE_WARN, text);
}

/* Returns the number of rows of a value's heading. */
static int heading_rows(const struct esp_iteration *it, int gauge, int width)
{
    char why[200], text[400];
    esp_gauge_why(why, sizeof why, it, gauge);
    snprintf(text, sizeof text, "%s%s%s", esp_gauge_meaning(it, it->gauges[gauge].name),
             *why ? " " : "", why);
    return 1 + (*text ? esp_paragraph_height(text, width) : 0);
}

/* Draws a value and its effect on one line. */
static void draw_short(struct esp_canvas *canvas, const struct esp_iteration *it, int gauge,
                       int y)
{
    const struct esp_gauge *g = &it->gauges[gauge];
    const int width = canvas->view.rect.width;
    char name[64];
    int x = esp_draw(canvas, 0, y, ESP_STYLE_LABEL, esp_gauge_full_name(name, it, g->name)) + 1;
    x = draw_change(canvas, x, y, g) + 2;
    const char *meaning = esp_gauge_meaning(it, g->name);
    if (x < width)
        esp_draw_bytes(canvas, x, y, width - x, ESP_STYLE_LABEL, 0, meaning, strlen(meaning));
}

/* Returns how many of the `moving` (changing) values get a chart. The first values in `order`
 * get the charts. Each other value gets a line; `count` is the number of all values. Sets the
 * number of rows of each chart and of the gap between charts. */
static int share_rows(const struct esp_iteration *it, const int *order, int moving, int count,
                      const struct esp_rect *room, int *rows, int *gap)
{
    enum { LEAST = 2, MOST = 8 };
    int charts = moving;
    *rows = 0;
    for (*gap = 1; charts > 0; *gap ? *gap = 0 : charts--) {
        /* Constant values can be left out, but changing values cannot. */
        int needed = *gap ? count - charts : moving - charts;
        for (int i = 0; i < charts; i++)
            needed += heading_rows(it, order[i], room->width) + *gap;
        *rows = (room->height - needed) / charts;
        *rows = *rows > MOST ? MOST : *rows;
        if (*rows >= LEAST)
            break;
    }
    return charts;
}

/* Draws charts of the changing values, as large as possible. Below them, draws a line for each
 * other value. */
static void draw_charts(struct esp_canvas *canvas, const struct esp_shown *s)
{
    int order[ESP_MAX_GAUGES], moving = 0, count = 0, rows, gap, y = 0;
    for (int pass = 1; pass >= 0; pass--)
        for (int i = 0; i < s->it->gauge_count && count < ESP_MAX_GAUGES; i++)
            if (moves(s, i) == pass) {
                order[count++] = i;
                moving += pass;
            }
    const int charts = share_rows(s->it, order, moving, count, &canvas->view.rect, &rows, &gap);
    for (int i = 0; i < charts; i++) {
        y += draw_heading(canvas, s->it, order[i], y);
        draw_chart(canvas, s, order[i], y, rows);
        y += rows + gap;
    }
    for (int i = charts; i < count && y < canvas->view.rect.height; i++)
        draw_short(canvas, s->it, order[i], y++);
}

/* Draws the pane for a drafter without a controller. */
static void draw_path_share(struct esp_canvas *canvas, const struct esp_shown *s)
{
    static const char label[] = "accepted path / drafted depth";
    float values[ESP_POINTS];
    int x = esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, label) + 1;
    draw_share(canvas, x, 0, esp_state_figures(s->state).path_share);
    x += 6;
    const int count = path_shares(s, values);
    esp_draw_spark(canvas, x, 0, canvas->view.rect.width - x, ESP_STYLE_SPARK, values, count,
                   &(struct esp_axis){0, 1});
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    if (!s->it)
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "Thresholds that adapt are shown here.");
    else if (s->it->gauge_count == 0)
        draw_path_share(canvas, s);
    else if (canvas->view.rect.height >= HIGH)
        draw_charts(canvas, s);
    else if (canvas->view.rect.height > 1)
        draw_lines(canvas, s);
    else
        draw_row(canvas, s);
}

const struct esp_pane_ops esp_pane_controller = {
    .name = "controller",
    .summary = "thresholds of an adaptive drafter, and the acceptance of the draft",
    .draw = draw,
};
