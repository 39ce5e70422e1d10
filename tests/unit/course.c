/* Tests the chart of thresholds in a session that changes its drafter. Each value of a drafter
 * must have a curve that covers the iterations with this drafter. The curve must stay between
 * the ends of its axis. */
#include "viz/course_chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/drafting.h"

enum { EACH = 25 };

static struct esp_course course;

static void add(void *user, const struct esp_event *event)
{
    (void)user;
    if (event->type == ESP_EVENT_ITERATION)
        CHECK(esp_course_add(&course, event->iteration) == 0);
}

static void run(const char *const *drafters, int count)
{
    struct drafting d;
    esp_course_free(&course);
    drafting_open(
        &d, &(struct drafting_setup){
                .drafter = drafters[0], .context = 2000, .temperature = 0.5, .observer = add});
    for (int i = 0; i < count; i++) {
        drafting_set(&d, "drafter", drafters[i]);
        esp_session_allow(d.session, 1000);
        for (int j = 0; j < EACH; j++)
            CHECK(drafting_step(&d), "%s", d.err);
    }
    drafting_close(&d);
    CHECK(course.count == count * EACH);
}

static char *draw(void)
{
    const struct esp_course_chart_options options = {
        .kind = ESP_COURSE_CHART_THRESHOLDS, .theme = "light", .caption = ESP_CAPTION_FULL};
    char *svg, err[256] = "";
    size_t length;
    struct esp_drawing drawing = {.latex = false};
    CHECK(esp_course_chart_draw(&course, &options, &drawing, err, sizeof err) == 0, "%s", err);
    CHECK(esp_drawing_write(&drawing, &svg, &length) == 0);
    esp_drawing_free(&drawing);
    return svg;
}

static const float *values_of(const char *owner, const char *symbol)
{
    const int gauge = esp_course_find(&course, owner, symbol);
    CHECK(gauge >= 0, "%s of %s is missing", symbol, owner);
    return course.gauges[gauge].values;
}

TEST(values_with_the_same_name_in_two_drafters_stay_separate)
{
    static const char *const drafters[] = {"dynatree:history=price", "goodput", "sequoia"};
    run(drafters, 3);
    const float *goal = values_of("dynatree", "price"), *price = values_of("goodput", "price"),
                *hope = values_of("goodput", "expected"),
                *hoped = values_of("sequoia", "expected"),
                *temperature = values_of("", "draft_temp");
    for (int i = 0; i < course.count; i++) {
        CHECK(i < EACH ? goal[i] == 0.4f : isnan(goal[i]), "%d: %g", i, (double)goal[i]);
        CHECK(i / EACH == 1 ? price[i] != 0.4f : isnan(price[i]), "%d: %g", i,
              (double)price[i]);
        CHECK(isfinite(hope[i]) == (i / EACH == 1) && isfinite(hoped[i]) == (i / EACH == 2));
        CHECK(isfinite(temperature[i]),
              "the curve of a session's value continues when the drafter changes");
    }
    CHECK(strcmp(course.drafters, "dynatree, goodput, sequoia") == 0, "%s", course.drafters);
    esp_course_free(&course);
}

/* Reads the panel of one value, starting at its title. Checks that the curve is between the
 * ends of the axis.
 */
static void check_panel(const char *svg, int gauge, const char *title)
{
    const struct esp_course_gauge *g = &course.gauges[gauge];
    int first = 0, points = 0;
    double x0, y0, y1, x1, x, y;
    char name[160];
    snprintf(name, sizeof name, ">%s</text>", title);
    const char *at = strstr(svg, name);
    CHECK(at, "%s has no panel", title);
    CHECK(!strstr(at + 1, name), "%s has two panels", title);
    at = strstr(at, "<path d=\"M");
    CHECK(at && sscanf(at, "<path d=\"M%lf %lfL%*f %lf", &x0, &y0, &y1) == 3);
    at = strstr(at + 1, "<path d=\"M");
    CHECK(at && sscanf(at, "<path d=\"M%*f %*fL%lf", &x1) == 1);
    do /* skips dashed curves, which show goals */
        at = strstr(at + 1, "<path d=\"M");
    while (at && strstr(at, "/>") > strstr(at, "dasharray") && strstr(at, "dasharray"));
    CHECK(at, "%s has no curve", title);
    while (!isfinite(g->values[first]))
        first++;
    for (at += 9; *at == 'M' || *at == 'L'; points++) {
        int used;
        CHECK(sscanf(at + 1, "%lf %lf%n", &x, &y, &used) == 2, "%.40s", at);
        CHECK(y >= y0 - 0.1 && y <= y1 + 0.1, "%s: %g is not between %g and %g", title, y, y0,
              y1);
        CHECK(points > 0 || fabs(x - (x0 + (x1 - x0) * first / (course.count - 1))) < 0.2,
              "%s begins at %g", title, x);
        at += 1 + used;
    }
    for (int i = 0; i < course.count; i++)
        points -= isfinite(g->values[i]);
    CHECK(points == 0, "%s: %d points too many", title, points);
}

TEST(every_value_that_moves_has_its_own_panel)
{
    static const char *const drafters[] = {"dynatree:history=price", "goodput"};
    char title[128];
    int panels = 0;
    run(drafters, 2);
    char *svg = draw();
    for (int i = 0; i < course.gauge_count; i++) {
        const struct esp_course_gauge *g = &course.gauges[i];
        snprintf(title, sizeof title, "%s%s%s", g->owner, *g->owner ? ": " : "", g->name);
        if (!esp_course_moves(&course, i)) {
            CHECK(!strstr(svg, title), "%s does not change, but has a panel", title);
            continue;
        }
        check_panel(svg, i, title);
        panels++;
    }
    CHECK(panels > 7, "only %d", panels);
    CHECK(strstr(svg, "drafter dynatree, goodput, verifier "), "the chart names both drafters");
    CHECK(strstr(svg, "goodput: expected tokens (expected)"));
    free(svg);
    esp_course_free(&course);
}

TEST(one_drafter_needs_no_name)
{
    static const char *const drafters[] = {"dynatree:history=price"};
    run(drafters, 1);
    char *svg = draw();
    CHECK(strstr(svg, ">base depth (D0)<") && !strstr(svg, "dynatree: "));
    free(svg);
    esp_course_free(&course);
}
