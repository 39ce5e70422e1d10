/* Tests plots of experiments. Any two of many series must look different, and the reference
 * line must look different from all of them. */
#include "viz/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { SERIES = 20, PLAIN = 5 /* the index of plain decoding */, POINTS = 3, SAMPLE = 600 };

/* Holds a plot as SVG text, with one shape per line. */
struct picture {
    char *svg;
    double width, height;
};

static struct picture picture_of(const struct esp_plot *plot)
{
    struct esp_drawing drawing = {.latex = false};
    struct picture picture;
    size_t length;
    esp_plot_draw(plot, &drawing);
    CHECK(!drawing.failed && esp_drawing_write(&drawing, &picture.svg, &length) == 0);
    picture.width = drawing.width;
    picture.height = drawing.height;
    esp_drawing_free(&drawing);
    return picture;
}

static struct picture draw(bool bars, bool level)
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
    return picture_of(&plot);
}

/* Returns the line of the SVG that contains a text, or NULL. */
static const char *find_text(const struct picture *p, const char *text)
{
    char end[160];
    snprintf(end, sizeof end, ">%s</text>", text);
    const char *at = strstr(p->svg, end);
    while (at && at > p->svg && at[-1] != '\n')
        at--;
    return at;
}

static int count_kind(const struct picture *p, const char *kind)
{
    char class[32];
    int count = 0;
    snprintf(class, sizeof class, "class=\"%s\"", kind);
    for (const char *at = p->svg; (at = strstr(at, class)); at++)
        count++;
    return count;
}

static double number(const char *line, const char *name)
{
    char begin[24];
    snprintf(begin, sizeof begin, " %s=\"", name);
    const char *at = strstr(line, begin);
    return at && at < strchr(line, '\n') ? atof(at + strlen(begin)) : NAN;
}

/* Stores the points of a path in `points`. Returns the number of points. */
static int points_of(const char *line, double points[64])
{
    int count = 0;
    for (const char *at = line + strlen("<path d=\""); strchr("ML", *at) && count < 32;
         count++) {
        char *end;
        points[2 * count] = strtod(at + 1, &end);
        points[2 * count + 1] = strtod(end, &end);
        at = end;
    }
    return count;
}

/* Appends a shape to the sample: its style, and its points relative to (left, top). `line` is
 * the line of the SVG that has the shape. */
static void add_shape(const char *line, double left, double top, char sample[SAMPLE])
{
    const char *looks = strstr(line, " fill=");
    double points[64];
    size_t used = strlen(sample);
    const int count = strncmp(line, "<path", 5) == 0 ? points_of(line, points) : 0;
    used += (size_t)snprintf(sample + used, SAMPLE - used, "%.5s %g %g%.*s;", line,
                             number(line, "width"), number(line, "height"),
                             (int)strcspn(looks, "\n"), looks);
    for (int i = 0; i < count && used < SAMPLE - 32; i++)
        used += (size_t)snprintf(sample + used, SAMPLE - used, " %.1f,%.1f",
                                 points[2 * i] - left, points[2 * i + 1] - top);
}

/* Stores in `sample` how the legend shows a series. The sample consists of all shapes on the
 * same line to the left of the label. Their positions are relative to the label. */
static void sample_of(const struct picture *p, int index, char sample[SAMPLE])
{
    char label[32];
    snprintf(label, sizeof label, index == PLAIN ? "plain decoding" : "series %d", index);
    const char *end = find_text(p, label), *at = end;
    CHECK(end, "%s", label);
    const double left = number(end, "x"), top = number(end, "y");
    sample[0] = '\0';
    do {
        at -= 2;
        while (at[-1] != '\n')
            at--;
    } while (strncmp(at, "<text", 5) != 0);
    for (at = strchr(at, '\n') + 1; at < end; at = strchr(at, '\n') + 1) {
        double points[64] = {number(at, "x"), number(at, "y")};
        if (strncmp(at, "<path", 5) == 0)
            points_of(at, points);
        if (strncmp(at, "<circle", 7) == 0) {
            points[0] = number(at, "cx");
            points[1] = number(at, "cy");
        }
        if (points[0] > left - 40 && fabs(points[1] - top) < 14)
            add_shape(at, left, top, sample);
    }
    CHECK(*sample, "%s has a sample", label);
}

static void check_apart(const struct picture *p)
{
    char a[SAMPLE], b[SAMPLE];
    for (int i = 0; i < SERIES; i++) {
        sample_of(p, i, a);
        CHECK((strstr(a, "reference") != NULL) == (i == PLAIN), "%d: %s", i, a);
        for (int j = 0; j < i; j++) {
            sample_of(p, j, b);
            CHECK(strcmp(a, b) != 0, "%d and %d look alike: %s", i, j, a);
        }
    }
}

TEST(twenty_lines_can_be_distinguished)
{
    struct picture p = draw(false, false);
    check_apart(&p);
    CHECK(count_kind(&p, "reference") == 2,
          "the reference is a line, and has a sample in the legend");
    free(p.svg);
}

TEST(twenty_kinds_of_bars_can_be_distinguished)
{
    struct picture p = draw(true, false);
    check_apart(&p);
    CHECK(count_kind(&p, "reference") == POINTS + 1,
          "the reference has a line over each group of bars, and a sample in the legend");
    free(p.svg);
}

/* Stores the points of the first path of this kind in `svg`. Returns the text after the start
 * of this path, so that the caller can find the next one. Returns NULL if there is no such
 * path. */
static const char *next_of(const char *svg, const char *kind, double points[64])
{
    char class[32];
    snprintf(class, sizeof class, "class=\"%s\"", kind);
    const char *at = strstr(svg, class), *line = at;
    while (line && line[-1] != '\n')
        line--;
    if (line)
        points_of(line, points);
    return at ? at + 1 : NULL;
}

/* A value that is the same for all x is drawn as a horizontal line across the plot. */
TEST(a_value_for_all_x_is_a_level_line)
{
    for (int bars = 0; bars < 2; bars++) {
        struct picture p = draw(bars, true);
        double at[64];
        CHECK(next_of(p.svg, "reference", at));
        CHECK(at[2] - at[0] > 400 && at[1] == at[3], "%g, %g to %g, %g", at[0], at[1], at[2],
              at[3]);
        free(p.svg);
    }
}

/* Error bars go from the value minus its deviation to the value plus its deviation, but not
 * below the axis. */
TEST(deviations_are_error_bars)
{
    static const char *const names[] = {"a", "b", "c"};
    const double x[] = {0, 1, 2}, y[] = {4, 4, 1}, error[] = {1, 0, 3};
    const struct esp_plot_series series = {"s", 3, x, y, error, false};
    for (int bars = 0; bars < 2; bars++) {
        const struct esp_plot plot = {"Title", "x",     "y", bars ? names : NULL,
                                      3,       &series, 1,   "deviation"};
        struct picture p = picture_of(&plot);
        double first[64], second[64];
        CHECK(count_kind(&p, "error") == 3,
              "there are two error bars, and a sample in the legend");
        CHECK(find_text(&p, "deviation") != NULL);
        next_of(next_of(p.svg, "error", first), "error", second);
        CHECK(first[7] - first[1] > 119 && first[7] - first[1] < 121,
              "an error bar of 2 units, on an axis of 5 units and 300 points");
        CHECK(second[7] > 339 && second[7] < 341,
              "an error bar ends at %g, not at the bottom of the plot", second[7]);
        free(p.svg);
    }
}

/* Long names are rotated, and nothing may go beyond the edges. */
TEST(long_names_do_not_run_into_each_other)
{
    static const char *const names[] = {"a name that is longer than its place",
                                        "another name that is longer than its place", "c"};
    static const char *const label = "a label of more than a hundred characters, which is "
                                     "longer than there used to be room for, and then some";
    const double x[] = {0, 1, 2}, y[] = {4, 4, 1};
    const struct esp_plot_series series = {label, 3, x, y, NULL, false};
    const struct esp_plot plot = {"Title", "x", "y", names, 3, &series, 1, NULL};
    struct picture p = picture_of(&plot);
    const char *name = find_text(&p, names[1]), *axis = find_text(&p, "x"),
               *entry = find_text(&p, label);
    CHECK(name && axis && entry);
    const double size = number(name, "font-size"),
                 end = number(name, "y") + esp_drawing_width(names[1], (int)size, 0);
    CHECK(strncmp(strstr(name, "transform="), "transform=\"rotate(-90 ", 22) == 0);
    CHECK(end < p.height);
    CHECK(number(axis, "y") > end, "the axis label is not below the names");
    CHECK(number(entry, "x") + esp_drawing_width(label, (int)number(entry, "font-size"), 0) <
          p.width);
    free(p.svg);
}
