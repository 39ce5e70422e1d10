/* controller.c - the controller pane: the values that adapt, before and after this iteration,
 * and their course.
 *
 *     tauh         .90 → .87     ▇▇▆▆▆▅▅▅▅▄
 *     acceptance   .71 → .74     ▃▅▄▆▇▅▆▆▅▆
 *     taul .40   rhostop .10   tau .05   target .70
 *
 * One line per value that moves, with its course over the last iterations, then those that
 * stand still. A low pane has all values in one row. Where a drafter has no
 * controller, the share of the drafted depth that was accepted is all there is to show.
 */
#include "tui/view/pane.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"

/* The course of one value, oldest first; returns how many there are. */
static int course(const struct esp_state *state, int gauge, float values[ESP_SUMMARIES])
{
    int count = 0;
    for (int i = 0; i < state->summary_count; i++) {
        const struct esp_iteration_summary *summary = &state->summaries[i];
        if (gauge >= 0 && gauge < summary->gauge_count)
            values[count++] = summary->gauges[gauge];
        else if (gauge < 0 && summary->deepest > 0)
            values[count++] = (float)summary->path / (float)summary->deepest;
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

static void draw_share(struct esp_canvas *canvas, int x, int y, double share)
{
    char text[8];
    esp_draw(canvas, x, y, ESP_STYLE_VALUE, esp_probability(text, share));
}

static bool moves(const struct esp_state *state, const struct esp_iteration *it, int gauge)
{
    float values[ESP_SUMMARIES];
    int count = course(state, gauge, values);
    for (int i = 1; i < count; i++)
        if (values[i] != values[0])
            return true;
    return it->gauges[gauge].before != it->gauges[gauge].after;
}

static void draw_course(struct esp_canvas *canvas, const struct esp_state *state, int gauge,
                        int y, double minimum, double maximum)
{
    enum { COLUMN = 28 };
    float values[ESP_SUMMARIES];
    int count = course(state, gauge, values);
    esp_draw_spark(canvas, COLUMN, y, canvas->view.rect.width - COLUMN, ESP_STYLE_SPARK, values,
                   count, minimum, maximum);
}

/* One value per line. */
static void draw_lines(struct esp_canvas *canvas, const struct esp_state *state,
                       const struct esp_iteration *it)
{
    enum { COLUMN = 13 };
    int y = 0, x = 0;
    for (int i = 0; i < it->gauge_count; i++) {
        const struct esp_gauge *gauge = &it->gauges[i];
        if (!moves(state, it, i))
            continue;
        esp_draw(canvas, 0, y, ESP_STYLE_LABEL, gauge->name);
        draw_change(canvas, COLUMN, y, gauge);
        draw_course(canvas, state, i, y++, gauge->minimum, gauge->maximum);
    }
    for (int i = 0; i < it->gauge_count; i++) {
        if (moves(state, it, i))
            continue;
        x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, it->gauges[i].name) + 1;
        x = draw_change(canvas, x, y, &it->gauges[i]) + 3;
    }
    if (it->gauge_count > 0)
        return;
    esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "path / depth");
    draw_share(canvas, COLUMN, 0, esp_state_figures(state).path_share);
    draw_course(canvas, state, -1, 0, 0, 1);
}

/* All values in one row, those that move first. */
static void draw_row(struct esp_canvas *canvas, const struct esp_state *state,
                     const struct esp_iteration *it)
{
    int x = 0, width = canvas->view.rect.width;
    for (int pass = 1; pass >= 0; pass--)
        for (int i = 0; i < it->gauge_count; i++) {
            const struct esp_gauge *gauge = &it->gauges[i];
            if (moves(state, it, i) != pass || x + (int)strlen(gauge->name) + 10 > width)
                continue;
            x = esp_draw(canvas, x, 0, ESP_STYLE_LABEL, gauge->name) + 1;
            x = draw_change(canvas, x, 0, gauge) + 3;
        }
    if (it->gauge_count > 0)
        return;
    x = esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "path / depth") + 1;
    draw_share(canvas, x, 0, esp_state_figures(state).path_share);
    draw_course(canvas, state, -1, 0, 0, 1);
}

static void draw(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    (void)view;
    if (!it)
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "Thresholds that adapt are shown here.");
    else if (canvas->view.rect.height > 1)
        draw_lines(canvas, state, it);
    else
        draw_row(canvas, state, it);
}

const struct esp_pane_ops esp_pane_controller = {
    .name = "controller",
    .summary = "thresholds of an adaptive drafter, and how well the draft does",
    .draw = draw,
};
