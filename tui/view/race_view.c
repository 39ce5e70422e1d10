/* race_view.c - see race_view.h.
 *
 *     row 0            the models and the seed
 *     two frames       drafter, text so far, tree of the last iteration, statistics
 *     below            progress of each side, the verdict or the current step, keys
 *
 * On a narrow screen the left side is above the right side. On a low screen, the trees are left
 * out before anything else.
 */
#include "tui/view/race_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/view/run_text.h"
#include "viz/chart.h"
#include "viz/tree_view.h"
#include "viz/wrap.h"

enum {
    NARROW = 60,
    BELOW = 6,
    LEAST_TEXT = 4,
    LEAST_HEIGHT = 10,
    MOST_TREE = 12,
    LEAST_FRAME = 5
};

/* Says which part of a side's run is visible at a given time of the race. */
struct view {
    int steps, tokens, written, all;
    double seconds; /* time on the side's own clock, which stops when the side has finished */
    bool over;
};

static struct view view_at(struct esp_run *run, double clock)
{
    struct view v = {.steps = esp_run_steps_at(run, clock)};
    const int prompt = run->token_count - esp_run_written(run);
    v.tokens = v.steps > 0 ? esp_run_tokens_after(run, v.steps) : prompt;
    v.written = v.tokens - prompt;
    v.all = run->token_count - prompt;
    v.over = run->complete && v.steps == esp_run_steps(run) && v.steps > 0;
    v.seconds = v.over ? esp_run_seconds(run) : clock;
    return v;
}

static void draw_tree(struct esp_canvas *canvas, struct esp_run *run, const struct view *v,
                      int y, int height)
{
    struct esp_tree_rows rows;
    if (v->steps == 0 || height < 3)
        return;
    /* Nothing is drafted for the last token. Therefore the previous tree stays visible. */
    const int last = v->steps - 1;
    const struct esp_iteration *it = esp_trace_at(&run->trace, last);
    if (v->over && last > 0 && it->tree.count < 2)
        it = esp_trace_at(&run->trace, last - 1);
    const struct esp_tree_choice choice = {.stages = ESP_STAGES, .most = height};
    struct esp_tree_look look = {
        .tokens = esp_run_tokens(run), .stages = ESP_STAGES, .cursor = -1};
    if (it->tree.count < 2 || esp_tree_rows_build(&rows, it, &choice) < 0)
        return;
    struct esp_view whole =
        esp_canvas_enter(canvas, (struct esp_rect){0, y, canvas->view.rect.width, height});
    esp_tree_rows_draw(canvas, &rows, it, &look);
    esp_canvas_leave(canvas, whole);
    esp_tree_rows_free(&rows);
}

static void draw_figures(struct esp_canvas *canvas, const struct view *v, int y)
{
    char text[96];
    int used = snprintf(text, sizeof text, "%d tokens %.2f s", v->written, v->seconds);
    if (v->seconds > 0 && v->written > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, " %.1f/s",
                         v->written / v->seconds);
    if (v->steps > 0)
        snprintf(text + used, sizeof text - (size_t)used, " %.1f/pass",
                 (double)v->written / v->steps);
    esp_draw_bytes(canvas, 0, y, canvas->view.rect.width,
                   v->over ? ESP_STYLE_GOOD : ESP_STYLE_VALUE, 0, text, strlen(text));
}

/* Draws a side without a frame, because there is no room for one. It has a row with its name
 * and statistics, and its text below. */
static void draw_low_side(struct esp_canvas *canvas, struct esp_run *run, const struct view *v,
                          struct esp_rect rect)
{
    const int name = (int)strcspn(run->drafter, ":");
    struct esp_view whole = esp_canvas_enter(
        canvas, (struct esp_rect){rect.x + 1, rect.y, rect.width - 2, rect.height});
    esp_draw_bytes(canvas, 0, 0, name, ESP_STYLE_TITLE, 0, run->drafter, (size_t)name);
    struct esp_view rest =
        esp_canvas_enter(canvas, (struct esp_rect){name + 2, 0, rect.width - name - 4, 1});
    draw_figures(canvas, v, 0);
    esp_canvas_leave(canvas, rest);
    if (rect.height > 1)
        esp_run_text_draw(canvas, 1, rect.height - 1, run, v->tokens);
    esp_canvas_leave(canvas, whole);
}

static void draw_side(struct esp_canvas *canvas, struct esp_run *run, double clock,
                      struct esp_rect rect)
{
    char title[64];
    const struct view v = view_at(run, clock);
    const bool plain = strcmp(run->drafter, "ar") == 0;
    if (rect.height < LEAST_FRAME) {
        draw_low_side(canvas, run, &v, rect);
        return;
    }
    snprintf(title, sizeof title, " %.*s%s ", (int)(strcspn(run->drafter, ":") % 40),
             run->drafter, plain ? ": plain decoding, one token per pass" : "");
    esp_draw_frame(canvas, rect, ESP_STYLE_FRAME);
    if (run->drafter[0])
        esp_draw_bytes(canvas, rect.x + 1, rect.y, rect.width - 2, ESP_STYLE_TITLE, 0, title,
                       strlen(title));
    struct esp_view whole = esp_canvas_enter(
        canvas, (struct esp_rect){rect.x + 2, rect.y + 1, rect.width - 4, rect.height - 2});
    const int height = rect.height - 2;
    int tree = (height - 1) / 2 < MOST_TREE ? (height - 1) / 2 : MOST_TREE;
    tree = height - 2 - tree < LEAST_TEXT ? 0 : tree;
    if (height > 1) {
        esp_run_text_draw(canvas, 0, height - 1 - (tree ? tree + 1 : 0), run, v.tokens);
        draw_tree(canvas, run, &v, height - 1 - tree, tree);
        draw_figures(canvas, &v, height - 1);
    }
    esp_canvas_leave(canvas, whole);
}

static void draw_progress(struct esp_canvas *canvas, int y, int width, const struct view v[2],
                          int tokens)
{
    static const char *const names[] = {"left", "right"};
    for (int i = 0; i < 2 && tokens > 0; i++) {
        const double share = v[i].over ? 1 : (double)v[i].written / tokens;
        esp_draw(canvas, 1, y + i, ESP_STYLE_LABEL, names[i]);
        esp_draw_bar(canvas, 7, y + i, width - 8,
                     i ? ESP_STYLE_BAR_DRAFT : ESP_STYLE_BAR_VERIFY, share < 1 ? share : 1);
    }
}

static void draw_below(struct esp_canvas *canvas, struct esp_race *race, const struct view v[2],
                       int y, int phase, const char *doing, double share)
{
    const int width = canvas->view.rect.width;
    const int tokens = v[1].all > v[0].all ? v[1].all : v[0].all;
    char text[512];
    struct esp_view whole =
        esp_canvas_enter(canvas, (struct esp_rect){0, y, width, canvas->height - y});
    if (phase == ESP_RACE_PREPARES) {
        esp_draw_bar(canvas, 1, 0, width - 2, ESP_STYLE_BAR_VERIFY, share);
        snprintf(text, sizeof text, "%s", doing);
    } else if (phase == ESP_RACE_FAILED) {
        snprintf(text, sizeof text, "%s", doing);
    } else if (phase == ESP_RACE_OVER) {
        draw_progress(canvas, 0, width, v, tokens);
        esp_race_verdict(race, text, sizeof text);
    } else {
        draw_progress(canvas, 0, width, v, tokens);
        snprintf(text, sizeof text, "%s",
                 race->recorded ? "both sides at their recorded times, without pauses"
                                : "left decodes now; right was decoded before, alone, and is "
                                  "shown by its own clock");
    }
    struct esp_view lines =
        esp_canvas_enter(canvas, (struct esp_rect){1, 2, width - 2, BELOW - 3});
    esp_draw_paragraph(canvas, 0,
                       phase == ESP_RACE_OVER     ? ESP_STYLE_GOOD
                       : phase == ESP_RACE_FAILED ? ESP_STYLE_ERROR
                                                  : ESP_STYLE_STATUS,
                       text);
    esp_canvas_leave(canvas, lines);
    int x = 1;
    if (phase == ESP_RACE_OVER) {
        x = esp_draw(canvas, x, BELOW - 1, ESP_STYLE_KEY, "Space") + 1;
        x = esp_draw(canvas, x, BELOW - 1, ESP_STYLE_LABEL, "again") + 3;
    }
    x = esp_draw(canvas, x, BELOW - 1, ESP_STYLE_KEY, "Esc") + 1;
    esp_draw(canvas, x, BELOW - 1, ESP_STYLE_LABEL, "leave");
    esp_canvas_leave(canvas, whole);
}

void esp_race_draw(struct esp_canvas *canvas, struct esp_race *race)
{
    const int width = canvas->width, height = canvas->height;
    const double clock = esp_race_clock(race);
    char pair[sizeof race->pair], doing[sizeof race->doing];
    struct view v[2];
    pthread_mutex_lock(&race->lock);
    const int phase = race->phase;
    const double share = race->share;
    memcpy(pair, race->pair, sizeof pair);
    memcpy(doing, race->doing, sizeof doing);
    pthread_mutex_unlock(&race->lock);
    for (int i = 0; i < 2; i++)
        pthread_mutex_lock(&race->side[i].lock);
    const int x = esp_draw(canvas, 1, 0, ESP_STYLE_TITLE, "espalier race") + 2;
    int end = width - 1;
    if (!race->recorded) {
        char seed[32];
        snprintf(seed, sizeof seed, "seed %" PRIu64, race->options.session.values.seed);
        end = esp_draw_right(canvas, end, 0, ESP_STYLE_LABEL, seed) - 2;
    }
    if (end > x)
        esp_draw_bytes(canvas, x, 0, end - x, ESP_STYLE_STATUS, 0, pair, strlen(pair));
    const int room = height - 1 - BELOW;
    const bool narrow = width < NARROW;
    for (int i = 0; i < 2; i++) {
        const double seen = phase >= ESP_RACE_RUNS && phase != ESP_RACE_FAILED ? clock : -1;
        v[i] = view_at(&race->side[i], seen);
        const struct esp_rect beside = {i ? width / 2 : 0, 1, i ? width - width / 2 : width / 2,
                                        room};
        const struct esp_rect below = {0, 1 + i * (room / 2), width, room / 2};
        if (height >= LEAST_HEIGHT)
            draw_side(canvas, &race->side[i], seen < 0 ? 0 : clock, narrow ? below : beside);
    }
    draw_below(canvas, race, v, height >= LEAST_HEIGHT ? 1 + room : 1, phase, doing, share);
    for (int i = 1; i >= 0; i--)
        pthread_mutex_unlock(&race->side[i].lock);
}
