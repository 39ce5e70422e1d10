/* figure_timeline.c - draws the stages of one iteration on a time axis; see figure.h. */
#include "viz/figure_parts.h"

#include <math.h>

#include "kernels/status.h"
#include "viz/chart.h"
#include "viz/laps.h"
#include "viz/say.h"

enum { LANE = 20, BAR = 12, NAMES = 86, TIME = 330, NUMBERS = 96, MOST_RANKS = 16 };

struct line {
    const struct esp_figure *f;
    struct esp_drawing *d;
    double x, y, scale; /* scale: points per second */
};

/* Draws a bar and writes the time next to it. Even a bar for a very short time is visible. */
static void draw_bar(const struct line *l, const char *name, double from, double seconds,
                     const char *colour)
{
    const struct esp_colours *colours = l->f->colours;
    const double x = l->x + from * l->scale, wide = fmax(seconds * l->scale, 0.8);
    char text[48], number[16];
    esp_drawing_text(l->d, l->x - 8, l->y + BAR - 3, FIGURE_LINE, ESP_ANCHOR_END, 0,
                     colours->text, name);
    esp_drawing_rect(l->d, &(struct esp_pen){.fill = colour}, x, l->y, wide, BAR, 0);
    snprintf(text, sizeof text, "%s ms", esp_number(number, 1e3 * seconds, 3));
    esp_drawing_text(l->d, l->x + TIME + 8, l->y + BAR - 3, FIGURE_LINE, ESP_ANCHOR_START, 0,
                     colours->text, text);
}

/* Draws a gap in a bar where a draft pass or a step of plain decoding ends. */
static void divide(const struct line *l, double seconds)
{
    const struct esp_pen gap = {.stroke = l->f->colours->background, .width = 1};
    const double x = l->x + seconds * l->scale;
    esp_drawing_line(l->d, &gap, x, l->y, x, l->y + BAR);
}

static void draw_stages(struct line *l)
{
    const struct esp_figure *f = l->f;
    const struct esp_iteration *it = f->iteration;
    char name[48];
    double reached = 0;
    for (int s = 0; s < ESP_STAGES; s++) {
        const double seconds = esp_measured(it->seconds[s]);
        snprintf(name, sizeof name, "%s", esp_stage_name(s));
        if (s == ESP_STAGE_DRAFT && it->draft_passes > 1)
            snprintf(name, sizeof name, "draft, %d passes", it->draft_passes);
        draw_bar(l, name, reached, seconds, f->colours->stage[s]);
        for (int i = 0; s == ESP_STAGE_DRAFT && i + 1 < f->pass_count; i++)
            if (f->passes[i] > 0 && f->passes[i] < seconds)
                divide(l, f->passes[i]);
        reached += seconds;
        l->y += LANE;
    }
}

/* Draws what a rank did in the target's pass, which begins at `from` and took `whole` seconds.
 */
static void draw_rank(const struct line *l, int rank, double from, double whole)
{
    struct esp_lap_piece pieces[ESP_LAP_PIECES];
    const struct esp_colours *colours = l->f->colours;
    const char *const colour[ESP_LAP_PARTS] = {colours->stage[ESP_STAGE_VERIFY], colours->frame,
                                               colours->stage[ESP_STAGE_DRAFT]};
    double all, sums[ESP_LAP_PARTS];
    char text[48], number[16];
    const int count = esp_laps_of(l->f->iteration, rank, pieces, &all);
    const double scale = l->scale * (all > whole ? whole / all : 1);
    esp_laps_sums(l->f->iteration, rank, sums);
    snprintf(text, sizeof text, "rank %d", rank);
    esp_drawing_text(l->d, l->x - 8, l->y + BAR - 3, FIGURE_LINE, ESP_ANCHOR_END, 0,
                     colours->text, text);
    for (int i = 0; i < count; i++)
        esp_drawing_rect(l->d, &(struct esp_pen){.fill = colour[pieces[i].part]},
                         l->x + from * l->scale + pieces[i].begin * scale, l->y,
                         pieces[i].seconds * scale, BAR, 0);
    snprintf(text, sizeof text, "computes %s ms",
             esp_number(number, 1e3 * sums[ESP_LAP_COMPUTE], 3));
    esp_drawing_text(l->d, l->x + TIME + 8, l->y + BAR - 3, FIGURE_LINE, ESP_ANCHOR_START, 0,
                     colours->text, text);
    l->d->width = fmax(l->d->width, l->x + TIME + 8 + esp_drawing_width(text, FIGURE_LINE, 0) +
                                        FIGURE_EDGE);
}

/* Draws a lane for every rank, and a legend of the colours. */
static void draw_ranks(struct line *l)
{
    const struct esp_iteration *it = l->f->iteration;
    const struct esp_colours *colours = l->f->colours;
    const int ranks = esp_laps_ranks(it);
    const double from = esp_measured(it->seconds[ESP_STAGE_DRAFT]) +
                        esp_measured(it->seconds[ESP_STAGE_FLATTEN]);
    double x = l->x;
    for (int i = 0; i < ranks && i < MOST_RANKS; i++) {
        draw_rank(l, i, from, esp_measured(it->seconds[ESP_STAGE_VERIFY]));
        l->y += LANE;
    }
    for (int i = 0; ranks > 0 && i < ESP_LAP_PARTS; i++) {
        const char *const colour[] = {colours->stage[ESP_STAGE_VERIFY], colours->frame,
                                      colours->stage[ESP_STAGE_DRAFT]};
        esp_drawing_rect(l->d, &(struct esp_pen){.fill = colour[i]}, x, l->y, BAR, BAR, 0);
        esp_drawing_text(l->d, x + BAR + 4, l->y + BAR - 3, FIGURE_LINE, ESP_ANCHOR_START, 0,
                         colours->text, esp_lap_words[i]);
        x += 80;
    }
    l->y += ranks > 0 ? LANE : 0;
}

static void draw_axis(const struct line *l, double top, double all)
{
    const struct esp_colours *colours = l->f->colours;
    const struct esp_pen axis = {.stroke = colours->frame, .width = 0.8};
    const double step = esp_axis_step(1e3 * all / 5);
    esp_drawing_line(l->d, &axis, l->x, l->y, l->x + TIME, l->y);
    esp_drawing_line(l->d, &axis, l->x, top, l->x, l->y);
    for (int i = 0; i * step <= 1e3 * all * 1.0001; i++) {
        const double x = l->x + i * step / 1e3 * l->scale;
        esp_drawing_line(l->d, &axis, x, l->y, x, l->y + 3);
        esp_figure_small(l->f, l->d, x, l->y + 13, ESP_ANCHOR_MIDDLE, "%.4g", i * step);
    }
    esp_figure_small(l->f, l->d, l->x + TIME + 8, l->y + 13, ESP_ANCHOR_START, "ms");
}

int esp_figure_timeline(const struct esp_figure *f, struct esp_drawing *d, char *err,
                        size_t errlen)
{
    const struct esp_iteration *it = f->iteration;
    const double step = esp_measured(it->baseline), plain = step * it->committed_count;
    char title[96], words[160], number[2][16];
    double all = 0;
    for (int s = 0; s < ESP_STAGES; s++)
        all += esp_measured(it->seconds[s]);
    const double exchange = fmin(esp_measured(it->exchange_seconds), all);
    const double longest = fmax(all, plain);
    if (!(longest > 1e-9 && longest < 1e6)) /* a recording may contain any number */
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "no times were measured in this iteration");
    snprintf(title, sizeof title, "The time of iteration %d", it->index);
    snprintf(words, sizeof words, "%d token%s in %s ms", it->committed_count,
             esp_plural(it->committed_count), esp_number(number[0], 1e3 * all, 3));
    if (plain > 0 && all > 0)
        esp_say(words, sizeof words,
                "; plain decoding takes %s ms for as many tokens: %s times as long",
                esp_number(number[0], 1e3 * plain, 3), esp_number(number[1], plain / all, 3));
    struct line l = {f, d, FIGURE_EDGE + NAMES, 0, TIME / longest};
    d->width = FIGURE_EDGE + NAMES + TIME + NUMBERS;
    l.y = esp_figure_caption(f, d, title, words);
    const double top = l.y - 3;
    draw_stages(&l);
    if (exchange > 0) { /* the sum of all exchanges, so its bar begins at 0 */
        draw_bar(&l, "incl. exchange", 0, exchange, f->colours->edge);
        l.y += LANE;
    }
    draw_ranks(&l);
    if (plain > 0) {
        draw_bar(&l, "plain decoding", 0, plain, f->colours->frame);
        for (int i = 1; i < it->committed_count; i++)
            divide(&l, i * step);
        l.y += LANE;
    }
    draw_axis(&l, top, longest);
    d->height = l.y + 13 + FIGURE_EDGE;
    return ESP_OK;
}
