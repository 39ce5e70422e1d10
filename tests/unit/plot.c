/* Plots of experiments: any two of many series can be told apart, and what they are compared
 * with stands apart from them. */
#include "viz/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { SERIES = 20, PLAIN = 5 /* one of them */, POINTS = 3 };

static char *draw(bool bars, bool level)
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
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    CHECK(file);
    esp_plot_write(&plot, file);
    CHECK(fclose(file) == 0);
    return text;
}

static const char *line_before(const char *svg, const char *line)
{
    for (line--; line > svg && line[-1] != '\n';)
        line--;
    return line;
}

static bool has(const char *line, const char *text)
{
    const char *at = strstr(line, text);
    return at && at < strchr(line, '\n');
}

/* The sample of a series in the legend, without places: the bars of 12 by 12 points before its
 * label, or the line of 28 points with its mark. */
static void sample_of(const char *svg, int index, char sample[400])
{
    char label[32];
    size_t used = 0;
    snprintf(label, sizeof label, index == PLAIN ? ">plain decoding<" : ">series %d<", index);
    const char *end = strstr(svg, label);
    CHECK(end && !strstr(end + 1, label), "%s", label);
    while (end[-1] != '\n')
        end--;
    const char *from = line_before(svg, end);
    if (has(from, "width=\"12.0\""))
        while (has(line_before(svg, from), "width=\"12.0\""))
            from = line_before(svg, from);
    else if (!has(from, "h28"))
        from = line_before(svg, from);
    CHECK(has(from, "h28") || has(from, "width=\"12.0\""), "%.80s", from);
    for (bool place = false; from < end && used < 399; from++) {
        place = place
                    ? *from != '"' && *from != 'h' && *from != 'm'
                    : strncmp(from - 1, "\"M", 2) == 0 || strncmp(from - 3, " x=\"", 4) == 0 ||
                          strncmp(from - 3, " y=\"", 4) == 0;
        if (!place)
            sample[used++] = *from;
    }
    sample[used] = '\0';
}

static void check_apart(const char *svg)
{
    char a[400], b[400];
    for (int i = 0; i < SERIES; i++) {
        sample_of(svg, i, a);
        CHECK((strstr(a, "class=\"reference\"") != NULL) == (i == PLAIN), "%d: %s", i, a);
        for (int j = 0; j < i; j++) {
            sample_of(svg, j, b);
            CHECK(strcmp(a, b) != 0, "%d and %d look alike: %s", i, j, a);
        }
    }
}

static int count(const char *svg, const char *what)
{
    int n = 0;
    for (const char *at = svg; (at = strstr(at, what)); at++)
        n++;
    return n;
}

TEST(twenty_lines_can_be_told_apart)
{
    char *svg = draw(false, false);
    check_apart(svg);
    CHECK(count(svg, "class=\"reference\"") == 2, "a line and its sample");
    free(svg);
}

TEST(twenty_kinds_of_bars_can_be_told_apart)
{
    char *svg = draw(true, false);
    check_apart(svg);
    CHECK(count(svg, "class=\"reference\"") == POINTS + 1, "a line over each group");
    free(svg);
}

/* What holds for all x is a level line from one end to the other. */
TEST(a_value_for_all_x_is_a_level_line)
{
    for (int bars = 0; bars < 2; bars++) {
        char *svg = draw(bars, true);
        const char *at = strstr(svg, "class=\"reference\"");
        while (at > svg && *at != '<')
            at--;
        double x, y, to;
        CHECK(sscanf(at, "<path fill=\"none\" d=\"M%lf %lfH%lf\"", &x, &y, &to) == 3, "%.60s",
              at);
        CHECK(to - x > 400);
        free(svg);
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
        char *svg = NULL;
        size_t size;
        FILE *file = open_memstream(&svg, &size);
        double at, top, bottom[2];
        CHECK(file);
        esp_plot_write(&plot, file);
        CHECK(fclose(file) == 0);
        CHECK(count(svg, "class=\"error\"") == 3, "two bars and their sample");
        CHECK(count(svg, ">deviation<") == 1);
        const char *first = strstr(svg, "class=\"error\""),
                   *second = strstr(first + 1, "class=");
        static const char form[] = "class=\"error\" fill=\"none\" d=\"M%lf %lfh6m-3 0V%lf";
        CHECK(sscanf(first, form, &at, &top, &bottom[0]) == 3);
        CHECK(bottom[0] - top > 119 && bottom[0] - top < 121, "2 of 5 units in 300 points");
        CHECK(sscanf(second, form, &at, &top, &bottom[1]) == 3);
        CHECK(bottom[1] > 339 && bottom[1] < 341, "%g: the foot of the picture", bottom[1]);
        free(svg);
    }
}
