/* beside.c - draws two panels of bars; see beside.h. Lengths are in points. */
#include "viz/beside.h"

#include <math.h>
#include <stdio.h>

enum {
    EDGE = 16,
    TITLE = 15,
    TEXT = 11,
    SMALL = 10,
    PANEL = 210,
    NUMBER = 34, /* room for a value after a bar */
    BETWEEN = 22,
    BAR = 11,
    GAP = 9, /* distance between rows */
};

struct panel {
    const struct esp_beside *b;
    const struct esp_colours *colours;
    struct esp_drawing *d;
    double x, top, bottom, scale; /* scale: points per unit of a value */
};

static double row_height(const struct esp_beside *b)
{
    return BAR * (b->here_count > 1 ? b->here_count : 1) + GAP;
}

/* Returns the pen for a bar. If `ways` is 0, the bar is for a value of the paper. Otherwise it
 * is for a measured value, and `way` says in which of `ways` ways it was measured. If there are
 * several ways, the bars of the first way are outlines. */
static struct esp_pen pen_of(const struct panel *p, int way, int ways)
{
    const char *colour = ways == 0  ? p->colours->stage[0]
                         : way == 0 ? p->colours->course
                                    : p->colours->accepted;
    if (ways > 1 && way == 0)
        return (struct esp_pen){p->colours->background, colour, 1.4, NULL, NULL};
    return (struct esp_pen){colour, colour, 1, NULL, NULL};
}

static void draw_bar(const struct panel *p, double y, double value, const struct esp_pen *pen)
{
    char number[32] = "-";
    const double wide = isfinite(value) && value > 0 ? value * p->scale : 0;
    if (wide > 0) {
        esp_drawing_rect(p->d, pen, p->x, y + 1, wide, BAR - 2, 0);
        snprintf(number, sizeof number, "%.2f", value);
    }
    esp_drawing_text(p->d, p->x + wide + 4, y + BAR - 2, SMALL, ESP_ANCHOR_START, 0,
                     p->colours->text, number);
}

static void draw_frame(const struct panel *p, const char *name)
{
    const double level = p->x + p->b->reference * p->scale;
    esp_drawing_text(p->d, p->x, p->top - 8, TEXT, ESP_ANCHOR_START, ESP_TEXT_BOLD,
                     p->colours->text, name);
    esp_drawing_line(p->d, &(struct esp_pen){.stroke = p->colours->frame}, p->x, p->top, p->x,
                     p->bottom);
    if (p->b->reference > 0)
        esp_drawing_line(p->d, &(struct esp_pen){.stroke = p->colours->label, .dashes = "3 3"},
                         level, p->top, level, p->bottom);
}

static double largest(const struct esp_beside *b)
{
    double most = b->reference;
    for (int i = 0; i < b->rows; i++) {
        most = fmax(most, b->row[i].paper); /* fmax() ignores NaN */
        for (int j = 0; j < b->here_count; j++)
            most = fmax(most, b->row[i].here[j]);
    }
    return most > 0 ? most : 1;
}

/* Returns the width of the widest row label. */
static double names_width(const struct esp_beside *b)
{
    double wide = 0;
    for (int i = 0; i < b->rows; i++)
        wide = fmax(wide, esp_drawing_width(b->row[i].label, TEXT, 0));
    return wide;
}

static void draw_rows(const struct panel *paper, const struct panel *here)
{
    const struct esp_beside *b = paper->b;
    const double high = row_height(b);
    for (int i = 0; i < b->rows; i++) {
        const double y = paper->top + GAP / 2.0 + i * high, middle = y + (high - GAP) / 2;
        const struct esp_pen pen = pen_of(paper, 0, 0);
        esp_drawing_text(paper->d, paper->x - 8, middle + TEXT / 2.0 - 2, TEXT, ESP_ANCHOR_END,
                         0, paper->colours->text, b->row[i].label);
        draw_bar(paper, middle - BAR / 2.0, b->row[i].paper, &pen);
        for (int j = 0; j < b->here_count; j++) {
            const struct esp_pen way = pen_of(here, j, b->here_count);
            draw_bar(here, y + j * BAR, b->row[i].here[j], &way);
        }
    }
}

/* Draws a line of text; returns the y of the next line. */
static double say(const struct panel *p, double y, const char *text)
{
    esp_drawing_text(p->d, EDGE, y, SMALL, ESP_ANCHOR_START, 0, p->colours->label, text);
    p->d->width = fmax(p->d->width, 2 * EDGE + esp_drawing_width(text, SMALL, 0));
    return y + SMALL + 5;
}

/* Draws the legend. It explains the bars and the dashed line, and names the sources of the
 * numbers. Returns the y of the next line. */
static double draw_legend(const struct panel *here, double y)
{
    const struct esp_beside *b = here->b;
    char text[3 * ESP_BESIDE_TEXT];
    for (int j = 0; j < b->here_count; j++) {
        const struct esp_pen pen = pen_of(here, j, b->here_count);
        esp_drawing_rect(here->d, &pen, here->x, y - BAR + 3, 22, BAR - 2, 0);
        esp_drawing_text(here->d, here->x + 30, y, SMALL, ESP_ANCHOR_START, 0,
                         here->colours->text, b->here[j]);
        here->d->width =
            fmax(here->d->width, here->x + 30 + EDGE + esp_drawing_width(b->here[j], SMALL, 0));
        y += SMALL + 6;
    }
    y += 4;
    if (b->reference > 0) {
        snprintf(text, sizeof text, "dashed: %s", b->reference_label);
        y = say(here, y, text);
    }
    snprintf(text, sizeof text, "paper: %s", b->paper);
    y = say(here, y, text);
    snprintf(text, sizeof text, "here: %s", b->source);
    return say(here, y, text);
}

void esp_beside_draw(const struct esp_beside *b, const struct esp_colours *colours,
                     struct esp_drawing *d)
{
    const double names = names_width(b), top = EDGE + TITLE + TEXT + 38;
    struct panel paper = {b,
                          colours,
                          d,
                          EDGE + names + 8,
                          top,
                          top + GAP / 2.0 + b->rows * row_height(b),
                          (PANEL - NUMBER) / largest(b)};
    struct panel here = paper;
    here.x += PANEL + BETWEEN;
    d->background = colours->background;
    snprintf(d->title, sizeof d->title, "%s", b->title);
    esp_drawing_text(d, EDGE, EDGE + TITLE - 3, TITLE, ESP_ANCHOR_START, ESP_TEXT_BOLD,
                     colours->text, b->title);
    esp_drawing_text(d, EDGE, EDGE + TITLE + TEXT + 4, TEXT, ESP_ANCHOR_START, 0,
                     colours->label, b->measure);
    d->width =
        fmax(here.x + PANEL + EDGE, 2 * EDGE + 1.1 * esp_drawing_width(b->title, TITLE, 0));
    draw_frame(&paper, "the paper");
    draw_frame(&here, "here");
    draw_rows(&paper, &here);
    d->height = draw_legend(&here, paper.bottom + SMALL + 12) - SMALL + EDGE - 5;
}
