/* timeline.c - the timeline pane has a column for each iteration, with the newest on the right.
 *
 *     tokens   committed tokens: accepted drafts, and the target's own token
 *     nodes    drafted nodes: accepted, verified but not accepted, cut before verification
 *     ms       time: drafting, verifying, all other stages
 *
 * Each of the three series is a stacked bar, one or more rows high. Left and Right select an
 * iteration. The selected iteration is marked, and its numbers are shown on the right.
 */
#include "tui/view/pane.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"

enum { PARTS = 3, SERIES = 3, LABEL = 8, NUMBER = 11 };

struct part {
    int style;
    double value;
};

static void parts_of(const struct esp_course_point *point, int series, struct part parts[PARTS])
{
    static const double none[ESP_STAGES];
    const double *seconds = point->seconds;
    switch (series) {
    case 0:
        parts[0] = (struct part){ESP_STYLE_ACCEPTED, point->path};
        parts[1] = (struct part){ESP_STYLE_BONUS, point->committed - point->path};
        parts[2] = (struct part){ESP_STYLE_BONUS, 0};
        break;
    case 1:
        parts[0] = (struct part){ESP_STYLE_ACCEPTED, point->path};
        parts[1] = (struct part){ESP_STYLE_UNVISITED, point->drafted - point->path};
        parts[2] = (struct part){ESP_STYLE_CUT, point->cut};
        break;
    default:
        if (point->stepped) /* times in step mode mean nothing */
            seconds = none;
        parts[0] = (struct part){ESP_STYLE_BAR_DRAFT, 1e3 * seconds[ESP_STAGE_DRAFT]};
        parts[1] = (struct part){ESP_STYLE_BAR_VERIFY, 1e3 * seconds[ESP_STAGE_VERIFY]};
        parts[2] = (struct part){ESP_STYLE_BAR_REST,
                                 1e3 * (seconds[ESP_STAGE_FLATTEN] + seconds[ESP_STAGE_SELECT] +
                                        seconds[ESP_STAGE_COMMIT] + seconds[ESP_STAGE_ADAPT])};
        break;
    }
    for (int i = 0; i < PARTS; i++)
        parts[i].value = parts[i].value > 0 ? parts[i].value : 0;
}

static double total_of(const struct esp_course_point *point, int series)
{
    struct part parts[PARTS];
    parts_of(point, series, parts);
    return parts[0].value + parts[1].value + parts[2].value;
}

/* Rounds a value up to 1, 2, 5, 10, 20, ... With such values, the scale seldom changes. */
static double round_up(double value)
{
    double scale = pow(10, floor(log10(value)));
    double digits = value / scale;
    return scale * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

/* Draws a stacked bar in the `rows` rows above row `bottom`. A total of `most` fills all of
 * these rows. */
static void draw_stack(struct esp_canvas *canvas, int x, int bottom, int rows,
                       const struct part parts[PARTS], double most)
{
    double total = parts[0].value + parts[1].value + parts[2].value, scale = rows / most;
    for (int row = 0; row < rows; row++) {
        double filled = fmin(total * scale - row, 1), reached = 0;
        int level = (int)ceil(filled * 8) - 1, part = 0;
        if (level < 0)
            return;
        for (int i = 0; i < PARTS; i++) {
            if (reached * scale <= row + filled / 2 && parts[i].value > 0)
                part = i;
            reached += parts[i].value;
        }
        esp_draw_repeat(canvas, x, bottom - 1 - row, 1, parts[part].style,
                        level >= 7 ? canvas->glyphs->shades[part]
                                   : canvas->glyphs->sparks[level]);
    }
}

static int find_point(const struct esp_course *course, int iteration)
{
    for (int i = course->count - 1; iteration >= 0 && i >= 0; i--)
        if (course->points[i].index == iteration)
            return i;
    return -1;
}

/* Draws a series in rows top .. top + rows - 1, beginning with point `first`. */
static void draw_series(struct esp_canvas *canvas, const struct esp_course *course, int series,
                        int first, int count, int marked, int top, int rows)
{
    static const char *const names[SERIES] = {"tokens", "nodes", "ms"};
    char number[16];
    double most = 0;
    for (int i = first; i < first + count; i++)
        most = fmax(most, total_of(&course->points[i], series));
    most = most > 0 ? round_up(most) : 1;
    esp_draw(canvas, 0, top + rows - 1, ESP_STYLE_LABEL, names[series]);
    if (rows > 1)
        esp_draw(canvas, 0, top, ESP_STYLE_LABEL, esp_number(number, most, 1));
    for (int i = 0; i < count; i++) {
        struct part parts[PARTS];
        parts_of(&course->points[first + i], series, parts);
        draw_stack(canvas, LABEL + i, top + rows, rows, parts, most);
    }
    double value = total_of(&course->points[marked], series);
    if (series == 2 && course->points[marked].stepped)
        snprintf(number, sizeof number, "-");
    else if (series == 2)
        snprintf(number, sizeof number, "%.2f", value);
    else
        snprintf(number, sizeof number, "%.0f", value);
    esp_draw_right(canvas, canvas->view.rect.width, top + rows - 1, ESP_STYLE_VALUE, number);
}

static void title(const struct esp_shown *s, char *text, size_t size)
{
    (void)s;
    snprintf(text, size, "timeline   one column per iteration");
}

/* Draws the legend of the bars, with a cell of each colour and shade. If a series has enough
 * rows, its legend is next to it. Otherwise there is a single legend for all series in row
 * `y`. */
static void draw_legend(struct esp_canvas *canvas, int rows, int gap, int y, int end)
{
    static const struct {
        int style;
        const char *name;
    } legend[SERIES][PARTS] = {
        {{ESP_STYLE_ACCEPTED, "accepted"}, {ESP_STYLE_BONUS, "target's"}, {0, NULL}},
        {{ESP_STYLE_ACCEPTED, "accepted"},
         {ESP_STYLE_UNVISITED, "seen"},
         {ESP_STYLE_CUT, "cut"}},
        {{ESP_STYLE_BAR_DRAFT, "draft"},
         {ESP_STYLE_BAR_VERIFY, "verify"},
         {ESP_STYLE_BAR_REST, "rest"}}};
    const bool beside = rows > PARTS;
    const int width = canvas->view.rect.width;
    for (int i = 0, x = LABEL; i < SERIES; i++, x += 3)
        for (int part = 0; part < PARTS && legend[i][part].name; part++) {
            const char *name = legend[i][part].name;
            const int wide = 2 + (int)strlen(name);
            const int at = beside ? width - NUMBER + 1 : x;
            const int row = beside ? i * (rows + gap) + rows - 2 - part : y;
            if (!beside && x + wide > end)
                return;
            esp_draw_repeat(canvas, at, row, 1, legend[i][part].style,
                            canvas->glyphs->shades[part]);
            esp_draw(canvas, at + 2, row, ESP_STYLE_LABEL, name);
            x += wide + 2;
        }
}

/* Returns the index of the leftmost shown point. The pane shows the newest of the `count`
 * points. If the held iteration is older than these points, the pane begins with it. */
static int first_point(const struct esp_shown *s, int count)
{
    const struct esp_course *course = &s->state->trace.course;
    int first = course->count - count, held = find_point(course, s->look->iteration);
    return held >= 0 && held < first ? held : first;
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    const struct esp_course *course = &s->state->trace.course;
    int width = canvas->view.rect.width - LABEL - NUMBER, height = canvas->view.rect.height;
    int count = course->count < width ? course->count : width;
    int first = first_point(s, count), held = find_point(course, s->look->iteration);
    int gap = height >= 3 * SERIES + 1 ? 1 : 0,
        rows = (height - 1 - gap * (SERIES - 1)) / SERIES;
    if (count < 1) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "Every iteration becomes a column here.");
        return;
    }
    int marked = held >= 0 ? held : course->count - 1;
    rows = rows < 1 ? 1 : rows > 8 ? 8 : rows;
    for (int i = 0; i < SERIES && i * (rows + gap) < height; i++)
        draw_series(canvas, course, i, first, count, marked, i * (rows + gap), rows);
    int y = SERIES * (rows + gap) - gap;
    draw_legend(canvas, rows, gap, y, canvas->view.rect.width - NUMBER);
    if (held >= 0)
        esp_draw(canvas, LABEL + marked - first, y, ESP_STYLE_KEY, "^");
    esp_drawf(canvas, 0, y, ESP_STYLE_LABEL, "%d", course->points[first].index);
    char number[16];
    snprintf(number, sizeof number, "iter %d", course->points[marked].index);
    esp_draw_right(canvas, canvas->view.rect.width, y, ESP_STYLE_LABEL, number);
}

static bool request(const struct esp_shown *s, int action)
{
    int page = s->width > 2 * (LABEL + NUMBER) ? (s->width - LABEL - NUMBER) / 2 : 1;
    switch (action) {
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
        esp_look_step(s->look, s->state, action == ESP_ACTION_LEFT ? -1 : 1);
        return true;
    case ESP_ACTION_PAGE_UP:
    case ESP_ACTION_PAGE_DOWN:
        for (int i = 0; i < page; i++)
            esp_look_step(s->look, s->state, action == ESP_ACTION_PAGE_UP ? -1 : 1);
        return true;
    case ESP_ACTION_LAST:
        esp_look_hold(s->look, s->state, -1);
        return true;
    case ESP_ACTION_LEAVE_PANE:
        if (s->look->iteration < 0)
            return false;
        esp_look_hold(s->look, s->state, -1);
        return true;
    default:
        return false;
    }
}

/* Holds the iteration of the clicked column. */
static bool click(const struct esp_shown *s, int x, int y)
{
    (void)y;
    int width = s->width - LABEL - NUMBER, count = s->state->trace.course.count;
    count = count < width ? count : width;
    if (x < LABEL || x - LABEL >= count)
        return false;
    int point = first_point(s, count) + x - LABEL;
    esp_look_hold(s->look, s->state, s->state->trace.course.points[point].index);
    return true;
}

const struct esp_pane_ops esp_pane_timeline = {
    .name = "timeline",
    .summary = "one column per iteration: tokens, nodes, time",
    .title = title,
    .draw = draw,
    .request = request,
    .click = click,
};
