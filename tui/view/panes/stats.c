/* stats.c - the stats pane shows what speculation gains, and the time of each stage.
 *
 * A sentence compares the speed with plain decoding. It also says clearly when speculation is
 * slower. The numbers include only iterations since the last change of a setting, to show the
 * effect of the change.
 */
#include "tui/view/pane.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/laps.h"
#include "viz/wrap.h"

enum { NARROW = 60, LEAST_COLUMN = 5 };

static int draw_figure(struct esp_canvas *canvas, int x, const char *value, const char *label)
{
    x = esp_draw(canvas, x, 0, ESP_STYLE_VALUE, value);
    return esp_draw(canvas, x, 0, ESP_STYLE_LABEL, label) + 3;
}

/* Draws the speed, the tokens per iteration and the acceptance. Returns the column after these
 * numbers. */
static int draw_figures(struct esp_canvas *canvas, const struct esp_figures *figures)
{
    char number[16];
    bool wide = canvas->view.rect.width >= 100;
    double speed = figures->tokens_per_second > 0 ? figures->tokens_per_second : NAN;
    int x = draw_figure(canvas, 0, esp_number(number, speed, 3), " tok/s");
    snprintf(number, sizeof number, "%.2f", figures->tokens_per_iteration);
    x = draw_figure(canvas, x, number, wide ? " tokens/iteration" : " tok/iter");
    snprintf(number, sizeof number, "%.0f %%", 100 * figures->acceptance);
    return draw_figure(canvas, x, isfinite(figures->acceptance) ? number : "- %",
                       wide ? " of nodes accepted" : " accepted");
}

/* Draws a sentence that says what speculation gains, in the longest form that fits. */
static void draw_words(struct esp_canvas *canvas, int x, const struct esp_shown *s,
                       const struct esp_figures *figures)
{
    char texts[3][96];
    if (figures->speedup <= 0)
        return;
    esp_state_worth(figures, esp_state_baseline(s->state), texts);
    for (int i = 0; i < 3; i++)
        if ((int)strlen(texts[i]) <= canvas->view.rect.width - x) {
            esp_draw(canvas, x, 0, esp_state_wins(figures) ? ESP_STYLE_GOOD : ESP_STYLE_BAD,
                     texts[i]);
            return;
        }
}

/* Draws "draft ████▌ 0.90" for each part of the time. The bars have the same scale and fixed
 * positions. */
static void draw_stages(struct esp_canvas *canvas, int y, const struct esp_figures *figures)
{
    const double *seconds = figures->seconds;
    const struct {
        const char *label;
        int style, share; /* `share`: eighths of the width that this bar gets */
        double seconds;
    } parts[] = {
        {"draft", ESP_STYLE_BAR_DRAFT, 3, seconds[ESP_STAGE_DRAFT]},
        {"verify", ESP_STYLE_BAR_VERIFY, 4, seconds[ESP_STAGE_VERIFY]},
        {"rest", ESP_STYLE_BAR_REST, 1,
         seconds[ESP_STAGE_FLATTEN] + seconds[ESP_STAGE_SELECT] + seconds[ESP_STAGE_COMMIT] +
             seconds[ESP_STAGE_ADAPT]},
    };
    double whole = parts[0].seconds + parts[1].seconds + parts[2].seconds;
    const int others = figures->exchange > 0 ? 70 + 14 : 70; /* columns for words and numbers */
    int room = canvas->view.rect.width - others, scale = room > 16 ? room / 2 : 0;
    int x = esp_draw(canvas, 0, y, ESP_STYLE_LABEL, "time per iteration") + 1;
    x = esp_drawf(canvas, x, y, ESP_STYLE_VALUE, "%.2f ms", whole * 1e3) + 3;
    for (int i = 0; i < 3; i++) {
        x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, parts[i].label) + 1;
        if (scale > 0 && whole > 0) {
            int most = room * parts[i].share / 8;
            double fraction = parts[i].seconds / whole * scale / most;
            esp_draw_bar(canvas, x, y, most, parts[i].style, fraction);
            x += most + 1;
        }
        x = esp_drawf(canvas, x, y, ESP_STYLE_VALUE, "%.2f", parts[i].seconds * 1e3) + 3;
    }
    if (figures->exchange > 0 && whole > 0) {
        x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, "exchange") + 1;
        esp_drawf(canvas, x, y, ESP_STYLE_VALUE, "%.0f %%", 100 * figures->exchange / whole);
    }
}

/* Draws the last pass of the target on a time axis, with a row for every rank. */
static void draw_ranks(struct esp_canvas *canvas, int y, const struct esp_shown *s)
{
    enum { NAME = 9, SUMS = 44 };
    struct esp_lap_piece pieces[ESP_LAP_PIECES];
    static const int styles[ESP_LAP_PARTS] = {ESP_STYLE_BAR_VERIFY, ESP_STYLE_BAR_REST,
                                              ESP_STYLE_BAR_DRAFT};
    static const int shades[ESP_LAP_PARTS] = {0, 2, 1};
    const struct esp_iteration *it = s->it;
    const int ranks = it && s->stages == ESP_STAGES ? esp_laps_ranks(it) : 0;
    const int width = canvas->view.rect.width - NAME - SUMS;
    for (int rank = 0; rank < ranks && y < canvas->view.rect.height && width > 0; rank++, y++) {
        double all, sums[ESP_LAP_PARTS];
        const int count = esp_laps_of(it, rank, pieces, &all);
        esp_drawf(canvas, 0, y, ESP_STYLE_LABEL, "rank %d", rank);
        for (int x = 0, i = 0; x < width && i < count; x++) {
            const double at = (x + 0.5) / width * all;
            while (i < count && pieces[i].begin + pieces[i].seconds < at)
                i++;
            if (i < count && pieces[i].begin <= at)
                esp_draw(canvas, NAME + x, y, styles[pieces[i].part],
                         canvas->glyphs->shades[shades[pieces[i].part]]);
        }
        esp_laps_sums(it, rank, sums);
        int x = NAME + width + 1;
        for (int i = 0; i < ESP_LAP_PARTS; i++) {
            x = esp_draw(canvas, x, y, styles[i], esp_lap_words[i]) + 1;
            x = esp_drawf(canvas, x, y, ESP_STYLE_VALUE, "%.1f", 1e3 * sums[i]) + 1;
        }
    }
}

/* Draws the numbers of the pane one below the other. Called if the pane is too narrow to show
 * them in a row. */
static void draw_column(struct esp_canvas *canvas, const struct esp_shown *s,
                        const struct esp_figures *figures)
{
    char number[16], texts[3][96];
    const double *seconds = figures->seconds;
    const double draft = 1e3 * seconds[ESP_STAGE_DRAFT],
                 verify = 1e3 * seconds[ESP_STAGE_VERIFY];
    double whole = 0;
    int y = 0;
    for (int i = 0; i < ESP_STAGES; i++)
        whole += 1e3 * seconds[i];
    if (figures->speedup > 0) {
        esp_state_worth(figures, esp_state_baseline(s->state), texts);
        y = esp_draw_paragraph(
            canvas, y, esp_state_wins(figures) ? ESP_STYLE_GOOD : ESP_STYLE_BAD, texts[0]);
    }
    const double speed = figures->tokens_per_second > 0 ? figures->tokens_per_second : NAN;
    esp_drawf(canvas, 0, y++, ESP_STYLE_VALUE, "%s tokens/s", esp_number(number, speed, 3));
    esp_drawf(canvas, 0, y++, ESP_STYLE_VALUE, "%.2f tokens/iteration",
              figures->tokens_per_iteration);
    if (isfinite(figures->acceptance))
        esp_drawf(canvas, 0, y++, ESP_STYLE_VALUE, "%.0f %% of nodes accepted",
                  100 * figures->acceptance);
    if (figures->timed)
        esp_drawf(canvas, 0, y++, ESP_STYLE_VALUE, "%.2f ms/iteration: draft %.2f,", whole,
                  draft);
    if (figures->timed)
        esp_drawf(canvas, 0, y++, ESP_STYLE_VALUE, "verify %.2f, rest %.2f", verify,
                  whole - draft - verify);
    if (figures->timed && figures->exchange > 0)
        esp_drawf(canvas, 0, y++, ESP_STYLE_VALUE, "exchange between ranks %.0f %%",
                  1e5 * figures->exchange / whole);
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    struct esp_figures figures = esp_state_figures(s->state);
    if (figures.iterations == 0) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL,
                 "After an iteration: its speed and the time of each stage.");
        return;
    }
    if (canvas->view.rect.width < NARROW && canvas->view.rect.height >= LEAST_COLUMN) {
        draw_column(canvas, s, &figures);
        return;
    }
    draw_words(canvas, draw_figures(canvas, &figures), s, &figures);
    if (canvas->view.rect.height > 1 && figures.timed)
        draw_stages(canvas, 1, &figures);
    else if (canvas->view.rect.height > 1)
        esp_draw(canvas, 0, 1, ESP_STYLE_LABEL,
                 "Times in step mode are not typical, so they are not shown.");
    draw_ranks(canvas, 2, s);
}

const struct esp_pane_ops esp_pane_stats = {
    .name = "stats",
    .summary = "speed, acceptance, time per stage, compared with plain decoding",
    .draw = draw,
};
