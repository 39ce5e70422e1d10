/* Plots of experiments: any two of many series can be told apart, and what they are compared
 * with stands apart from them. */
#include "viz/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { SERIES = 20, PLAIN = 5 /* one of them */, POINTS = 3, SAMPLE = 600 };

static void draw(struct esp_drawing *drawing, bool bars, bool level)
{
    static const char *const names[POINTS] = {"a", "b", "c"};
    static double x[SERIES][POINTS], y[SERIES][POINTS];
    static char labels[SERIES][32];
    struct esp_plot_series series[SERIES];
    for (int i = 0; i < SERIES; i++) {
        snprintf(labels[i], sizeof labels[i], i == PLAIN ? "plain decoding" : "series %d", i);
        for (int j = 0; j < POINTS; j++) {
            x[i][j] = i == PLAIN && level ? NAN : j;
            y[i][j] = i + 1;
        }
        series[i] = (struct esp_plot_series){labels[i], POINTS, x[i], y[i], NULL, i == PLAIN};
    }
    const struct esp_plot plot = {"Title", "x",    "y",    bars ? names : NULL,
                                  POINTS,  series, SERIES, NULL};
    memset(drawing, 0, sizeof *drawing);
    esp_plot_draw(&plot, drawing);
    CHECK(!drawing->failed);
}

static int find_text(const struct esp_drawing *d, const char *text)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->shapes[i].type == ESP_SHAPE_TEXT &&
            strcmp(d->bytes + d->shapes[i].start, text) == 0)
            return (int)i;
    return -1;
}

static int count_kind(const struct esp_drawing *d, const char *kind)
{
    int count = 0;
    for (size_t i = 0; i < d->count; i++)
        count += d->shapes[i].kind && strcmp(d->shapes[i].kind, kind) == 0;
    return count;
}

static void add_shape(const struct esp_drawing *d, const struct esp_drawing_shape *shape,
                      double left, double top, char sample[SAMPLE])
{
    size_t used = strlen(sample);
    used += (size_t)snprintf(sample + used, SAMPLE - used, "%d %s %s %s %s %g %g;", shape->type,
                             shape->fill, shape->stroke, shape->dashes ? shape->dashes : "",
                             shape->kind ? shape->kind : "", shape->width, shape->height);
    for (size_t i = 0; i < shape->count && used < SAMPLE - 32; i++) {
        const double *at = d->points + 2 * (shape->start + i);
        used += (size_t)snprintf(sample + used, SAMPLE - used, " %.1f,%.1f", at[0] - left,
                                 at[1] - top);
    }
}

/* The sample of a series in the legend, which is drawn before its label: all shapes left of it
 * on its line, relative to it. */
static void sample_of(const struct esp_drawing *d, int index, char sample[SAMPLE])
{
    char label[32];
    snprintf(label, sizeof label, index == PLAIN ? "plain decoding" : "series %d", index);
    const int end = find_text(d, label);
    CHECK(end > 0, "%s", label);
    int from = end;
    while (d->shapes[from - 1].type != ESP_SHAPE_TEXT && from > end - 6)
        from--;
    const double left = d->shapes[end].x, top = d->shapes[end].y;
    sample[0] = '\0';
    for (int i = from; i < end; i++) {
        const struct esp_drawing_shape *s = &d->shapes[i];
        const double y = s->type == ESP_SHAPE_PATH ? d->points[2 * s->start + 1] : s->y;
        const double x = s->type == ESP_SHAPE_PATH ? d->points[2 * s->start] : s->x;
        if (x > left - 40 && fabs(y - top) < 14)
            add_shape(d, s, left, top, sample);
    }
    CHECK(*sample, "%s has a sample", label);
}

static void check_apart(const struct esp_drawing *d)
{
    char a[SAMPLE], b[SAMPLE];
    for (int i = 0; i < SERIES; i++) {
        sample_of(d, i, a);
        CHECK((strstr(a, "reference") != NULL) == (i == PLAIN), "%d: %s", i, a);
        for (int j = 0; j < i; j++) {
            sample_of(d, j, b);
            CHECK(strcmp(a, b) != 0, "%d and %d look alike: %s", i, j, a);
        }
    }
}

TEST(twenty_lines_can_be_told_apart)
{
    struct esp_drawing d;
    draw(&d, false, false);
    check_apart(&d);
    CHECK(count_kind(&d, "reference") == 2, "a line and its sample");
    esp_drawing_free(&d);
}

TEST(twenty_kinds_of_bars_can_be_told_apart)
{
    struct esp_drawing d;
    draw(&d, true, false);
    check_apart(&d);
    CHECK(count_kind(&d, "reference") == POINTS + 1, "a line over each group");
    esp_drawing_free(&d);
}

/* What holds for all x is a level line from one end to the other. */
TEST(a_value_for_all_x_is_a_level_line)
{
    for (int bars = 0; bars < 2; bars++) {
        struct esp_drawing d;
        size_t i = 0;
        draw(&d, bars, true);
        while (!d.shapes[i].kind || strcmp(d.shapes[i].kind, "reference") != 0)
            CHECK(++i < d.count);
        const double *at = d.points + 2 * d.shapes[i].start;
        CHECK(at[2] - at[0] > 400 && at[1] == at[3], "%g, %g to %g, %g", at[0], at[1], at[2],
              at[3]);
        esp_drawing_free(&d);
    }
}

/* From the value less its deviation up to the value with it, and not below the picture. */
TEST(deviations_are_error_bars)
{
    static const char *const names[] = {"a", "b", "c"};
    const double x[] = {0, 1, 2}, y[] = {4, 4, 1}, error[] = {1, 0, 3};
    const struct esp_plot_series series = {"s", 3, x, y, error, false};
    for (int bars = 0; bars < 2; bars++) {
        const struct esp_plot plot = {"Title", "x",     "y", bars ? names : NULL,
                                      3,       &series, 1,   "deviation"};
        struct esp_drawing d = {.count = 0};
        double top[3], bottom[3];
        int count = 0;
        esp_plot_draw(&plot, &d);
        CHECK(count_kind(&d, "error") == 3, "two bars and their sample");
        CHECK(find_text(&d, "deviation") > 0);
        for (size_t i = 0; i < d.count && count < 3; i++)
            if (d.shapes[i].kind && strcmp(d.shapes[i].kind, "error") == 0) {
                top[count] = d.points[2 * d.shapes[i].start + 1];
                bottom[count++] = d.points[2 * d.shapes[i].start + 7];
            }
        CHECK(bottom[0] - top[0] > 119 && bottom[0] - top[0] < 121,
              "2 of 5 units in 300 points");
        CHECK(bottom[1] > 339 && bottom[1] < 341, "%g: the foot of the picture", bottom[1]);
        esp_drawing_free(&d);
    }
}

/* Long names stand upright, and nothing is beyond the edges. */
TEST(long_names_do_not_run_into_each_other)
{
    static const char *const names[] = {"a name that is longer than its place",
                                        "another name that is longer than its place", "c"};
    static const char *const label = "a label of more than a hundred characters, which is "
                                     "longer than there used to be room for, and then some";
    const double x[] = {0, 1, 2}, y[] = {4, 4, 1};
    const struct esp_plot_series series = {label, 3, x, y, NULL, false};
    const struct esp_plot plot = {"Title", "x", "y", names, 3, &series, 1, NULL};
    struct esp_drawing d = {.count = 0};
    esp_plot_draw(&plot, &d);
    const struct esp_drawing_shape *name = &d.shapes[find_text(&d, names[1])];
    CHECK(name->flags & ESP_TEXT_UPWARDS && name->y + name->width < d.height);
    const struct esp_drawing_shape *axis = &d.shapes[find_text(&d, "x")];
    CHECK(axis->y > name->y + name->width, "the axis is named below");
    const struct esp_drawing_shape *entry = &d.shapes[find_text(&d, label)];
    CHECK(entry->x + entry->width < d.width);
    esp_drawing_free(&d);
}
