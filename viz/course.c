/* course.c - collects values of iterations; see course.h. */
#include "viz/course.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/status.h"
#include "viz/gauges.h"
#include "viz/say.h"

static bool grow(struct esp_course *course)
{
    if (course->count < course->capacity)
        return true;
    const int capacity = course->capacity ? 2 * course->capacity : 256;
    struct esp_course_point *points =
        realloc(course->points, (size_t)capacity * sizeof *points);
    if (!points)
        return false;
    course->points = points;
    for (int i = 0; i < course->gauge_count; i++) {
        float *values = realloc(course->gauges[i].values, (size_t)capacity * sizeof *values);
        if (!values)
            return false;
        course->gauges[i].values = values;
    }
    course->capacity = capacity;
    return true;
}

/* Drops the older half of the points. */
static void forget(struct esp_course *course)
{
    const int kept = course->count / 2, gone = course->count - kept;
    memmove(course->points, course->points + gone, (size_t)kept * sizeof *course->points);
    for (int i = 0; i < course->gauge_count; i++) {
        float *values = course->gauges[i].values;
        memmove(values, values + gone, (size_t)kept * sizeof *values);
    }
    course->count = kept;
}

int esp_course_find(const struct esp_course *course, const char *owner, const char *symbol)
{
    for (int i = 0; *symbol && i < course->gauge_count; i++)
        if (strcmp(course->gauges[i].symbol, symbol) == 0 &&
            strcmp(course->gauges[i].owner, owner) == 0)
            return i;
    return -1;
}

/* Returns the gauge with this symbol, or adds one without values. Returns NULL if there is no
 * memory or there are too many gauges. */
static struct esp_course_gauge *find(struct esp_course *course, const struct esp_iteration *it,
                                     const char *symbol)
{
    const char *owner = esp_gauge_owner(it, symbol);
    const int found = esp_course_find(course, owner, symbol);
    if (found >= 0)
        return &course->gauges[found];
    if (course->gauge_count == ESP_COURSE_GAUGES ||
        strlen(symbol) >= sizeof course->gauges->symbol ||
        strlen(owner) >= sizeof course->gauges->owner)
        return NULL;
    struct esp_course_gauge *new = &course->gauges[course->gauge_count];
    const struct esp_gauge *goal = esp_gauge_goal(it, symbol);
    new->values = malloc((size_t)course->capacity * sizeof *new->values);
    if (!new->values)
        return NULL;
    for (int i = 0; i < course->count; i++)
        new->values[i] = NAN;
    snprintf(new->owner, sizeof new->owner, "%s", owner);
    snprintf(new->symbol, sizeof new->symbol, "%s", symbol);
    esp_gauge_full_name(new->name, it, symbol);
    snprintf(new->goal, sizeof new->goal, "%s", goal ? goal->name : "");
    course->gauge_count++;
    return new;
}

/* Adds a name to a list, unless the list has this name already. */
static void add_name(char list[256], const char *name)
{
    const size_t length = name ? strlen(name) : 0;
    for (const char *at = list; *at;) {
        const size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, name, length) == 0)
            return;
        at += word;
        at += strspn(at, ", ");
    }
    if (length > 0)
        esp_say(list, 256, "%s%s", *list ? ", " : "", name);
}

/* Writes the next point into the array, but does not increase the count of points. */
static void add_point(struct esp_course *course, const struct esp_iteration *it)
{
    struct esp_course_point *point = &course->points[course->count];
    const struct esp_course_point *last = course->count > 0 ? point - 1 : NULL;
    const int drafted = it->tree.verified > 0 ? it->tree.verified - 1 : 0;
    *point = (struct esp_course_point){.index = it->index,
                                       .committed = it->committed_count,
                                       .path = it->path_length,
                                       .deepest = it->deepest,
                                       .drafted = drafted,
                                       .cut = it->tree.count - 1 - drafted,
                                       .passes = it->draft_passes,
                                       .exchange = it->exchange_seconds,
                                       .baseline = it->baseline,
                                       .at = last ? last->at : 0,
                                       .written = it->committed_count};
    for (int i = 0; i < ESP_STAGES; i++)
        point->at += point->seconds[i] = it->seconds[i];
    point->written += last ? last->written : 0;
}

int esp_course_add(struct esp_course *course, const struct esp_iteration *it)
{
    if (course->most > 0 && course->count == course->most)
        forget(course);
    if (!grow(course))
        return ESP_E_MEMORY;
    add_point(course, it);
    for (int i = 0; i < course->gauge_count; i++)
        course->gauges[i].values[course->count] = NAN;
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++) {
        struct esp_course_gauge *gauge = find(course, it, it->gauges[i].name);
        if (gauge)
            gauge->values[course->count] = (float)it->gauges[i].after;
    }
    course->count++;
    esp_acceptance_add(&course->acceptance, it);
    add_name(course->drafters, it->drafter);
    add_name(course->verifiers, it->verifier);
    return ESP_OK;
}

void esp_course_free(struct esp_course *course)
{
    for (int i = 0; i < course->gauge_count; i++)
        free(course->gauges[i].values);
    free(course->points);
    *course = (struct esp_course){.count = 0};
}

bool esp_course_moves(const struct esp_course *course, int gauge)
{
    float first = NAN;
    for (int i = 0; i < course->count; i++) {
        const float value = course->gauges[gauge].values[i];
        if (isfinite(value) && isfinite(first) && value != first)
            return true;
        if (!isfinite(first))
            first = value;
    }
    return false;
}

struct esp_totals esp_totals_of(const struct esp_iteration *it)
{
    struct esp_totals totals = {
        .iterations = 1,
        .committed = it->committed_count,
        .drafted = it->tree.verified > 0 ? it->tree.verified - 1 : 0,
        .accepted = it->path_length,
    };
    memcpy(totals.seconds, it->seconds, sizeof totals.seconds);
    return totals;
}

void esp_totals_add(struct esp_totals *totals, const struct esp_totals *more)
{
    totals->iterations += more->iterations;
    totals->committed += more->committed;
    totals->drafted += more->drafted;
    totals->accepted += more->accepted;
    for (int i = 0; i < ESP_STAGES; i++)
        totals->seconds[i] += more->seconds[i];
}
