/* compare_totals.c - draws the statistics of two sessions that decode one text. There is a row
 * for each session, and a sentence that says which one is ahead.
 *
 * The statistics begin when the comparison begins or a setting changes. Counts include all
 * iterations. Times include only iterations outside step mode. The better of two numbers is
 * highlighted.
 */
#include <math.h>
#include <string.h>

#include "tui/view/panes/compare_parts.h"
#include "viz/wrap.h"

struct figures {
    double tokens, iterations, accepted, draft, verify, speed, plain;
};

/* The columns from left to right. If there is no room for all of them, the columns with the
 * highest rank are left out first. */
static const struct {
    const char *label, *wide; /* `wide` is the label in a wide pane */
    int width, wide_width, rank, decimals;
    const char *unit;
    int better; /* 1: larger is better; -1: smaller is better; 0: neither */
    size_t offset;
} columns[] = {
    {"tok/iter", "tokens/iteration", 9, 18, 0, 2, "", 1, offsetof(struct figures, tokens)},
    {"iters", "iterations", 7, 13, 4, 0, "", -1, offsetof(struct figures, iterations)},
    {"accepted", "accepted", 10, 11, 3, 0, " %", 0, offsetof(struct figures, accepted)},
    {"draft ms", "draft ms", 10, 11, 5, 2, "", 0, offsetof(struct figures, draft)},
    {"verify ms", "verify ms", 11, 12, 6, 2, "", 0, offsetof(struct figures, verify)},
    {"tok/s", "tokens/s", 8, 11, 1, 0, "", 1, offsetof(struct figures, speed)},
    {"plain", "plain decoding", 8, 17, 2, 2, "x", 1, offsetof(struct figures, plain)},
};

enum { COLUMNS = sizeof columns / sizeof *columns, LEAST_NAME = 12, WIDE = 112 };

static int width_of(int column, int width)
{
    return width >= WIDE ? columns[column].wide_width : columns[column].width;
}

static struct figures figures_of(const struct esp_state *state, double baseline, double pace)
{
    const struct esp_totals *all = &state->trace.since, *timed = &state->trace.timed;
    const double n = timed->iterations;
    struct figures f = {.tokens = (double)all->committed / all->iterations,
                        .iterations = all->iterations,
                        .accepted = 100 * (double)all->accepted / (double)all->drafted,
                        .draft = 1e3 * timed->seconds[ESP_STAGE_DRAFT] / n,
                        .verify = 1e3 * timed->seconds[ESP_STAGE_VERIFY] / n,
                        .speed = pace > 0 ? 1 / pace : NAN,
                        .plain = NAN};
    if (baseline > 0 && pace > 0)
        f.plain = baseline / pace;
    return f; /* without data, a number is 0/0, which is NaN */
}

/* Returns the statistics of a session since the comparison began, in the form that viz/versus.h
 * needs. */
static struct esp_contender contender(const struct esp_state *state)
{
    const struct esp_totals *all = &state->trace.since;
    return (struct esp_contender){.drafter = state->loaded.drafter,
                                  .verifier = state->loaded.verifier,
                                  .iterations = all->iterations,
                                  .tokens = all->committed,
                                  .pace = esp_trace_pace(&state->trace, all->iterations)};
}

void esp_compare_names(const struct esp_state *state, char names[2][ESP_COMPARE_NAME])
{
    const struct esp_contender one = contender(state), other = contender(state->compared);
    esp_contender_name(names[0], ESP_COMPARE_NAME, &one, &other);
    esp_contender_name(names[1], ESP_COMPARE_NAME, &other, &one);
}

/* Chooses the columns, and returns the width that is left for the names of the sessions. */
static int choose(bool shown[COLUMNS], int width)
{
    int room = width - LEAST_NAME;
    memset(shown, 0, COLUMNS * sizeof *shown);
    for (int rank = 0; rank < COLUMNS; rank++)
        for (int i = 0; i < COLUMNS; i++)
            if (columns[i].rank == rank && room >= width_of(i, width)) {
                shown[i] = true;
                room -= width_of(i, width);
            }
    return room + LEAST_NAME;
}

static double value_of(const struct figures *figures, int column)
{
    return *(const double *)((const char *)figures + columns[column].offset);
}

static void draw_value(struct esp_canvas *canvas, int end, int y, int column,
                       const struct figures *own, const struct figures *other)
{
    char text[24] = "-";
    double value = value_of(own, column), against = value_of(other, column);
    bool better = columns[column].better * (value - against) > 1e-9;
    if (isfinite(value))
        snprintf(text, sizeof text, "%.*f%s", columns[column].decimals, value,
                 columns[column].unit);
    esp_draw_right(canvas, end, y, better ? ESP_STYLE_GOOD : ESP_STYLE_VALUE, text);
}

int esp_compare_totals_height(const struct esp_state *state, int width)
{
    char text[512];
    const struct esp_contender one = contender(state), other = contender(state->compared);
    esp_versus(text, sizeof text, &one, &other);
    return 3 + (*text ? esp_paragraph_height(text, width) : 0);
}

void esp_draw_compare_totals(struct esp_canvas *canvas, const struct esp_state *state, int y)
{
    char names[2][ESP_COMPARE_NAME], text[512];
    bool shown[COLUMNS];
    int width = canvas->view.rect.width, room = choose(shown, width), longest = 0;
    const struct esp_contender one = contender(state), other = contender(state->compared);
    const double baseline = esp_state_baseline(state);
    const struct figures figures[2] = {figures_of(state, baseline, one.pace),
                                       figures_of(state->compared, baseline, other.pace)};
    esp_compare_names(state, names);
    for (int i = 0; i < 2; i++)
        longest = (int)strlen(names[i]) > longest ? (int)strlen(names[i]) : longest;
    room = longest < room ? (longest < LEAST_NAME ? LEAST_NAME : longest) : room;
    for (int i = 0, end = room; i < COLUMNS; i++) {
        if (!shown[i])
            continue;
        end += width_of(i, width);
        esp_draw_right(canvas, end, y, ESP_STYLE_LABEL,
                       width >= WIDE ? columns[i].wide : columns[i].label);
        for (int side = 0; side < 2; side++)
            draw_value(canvas, end, y + 1 + side, i, &figures[side], &figures[!side]);
    }
    for (int side = 0; side < 2; side++)
        esp_draw_bytes(canvas, 0, y + 1 + side, room, ESP_STYLE_TITLE, 0, names[side],
                       strlen(names[side]));
    esp_versus(text, sizeof text, &one, &other);
    esp_draw_paragraph(canvas, y + 3, ESP_STYLE_TEXT, text);
}
