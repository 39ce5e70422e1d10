/* compare_ruler.c - shows which iterations of two sessions generated each part of the text.
 *
 *     text      the old king said to his son, who
 *     dynatree  └────────────┘└──────┘└─────────
 *     linear    └──┘└───┘└───────┘└──────┘└─────
 *
 * Each bracket is an iteration. The style of its last token, the bonus token, differs from
 * the style of the accepted path. The pane shows the trees of two iterations above the ruler.
 * The brackets of these two iterations are highlighted. The row follows the end of the text or
 * shows the selected place.
 */
#include <string.h>

#include "tui/view/panes/compare_parts.h"
#include "tui/view/run_text.h"
#include "viz/safe.h"

enum { MOST = 512, LONGEST_NAME = 24 };

/* The visible tokens of the text, [first, first + count). The i-th of them is in columns [x[i],
 * x[i + 1]). */
struct window {
    int first, count;
    int x[MOST + 1];
};

static int token_width(const struct esp_state *state, int place, int flags)
{
    size_t start = state->spans[place].start;
    size_t end =
        place + 1 < state->span_count ? state->spans[place + 1].start : state->byte_count;
    return esp_safe_width(state->bytes + start, end - start, flags);
}

/* Chooses the visible tokens. They end at the end of the text. If `place` is in the text, they
 * end a third of the width after it. */
static void choose(struct window *w, const struct esp_state *state, int place, int width,
                   int flags)
{
    int end = state->span_count, used = 0;
    if (place >= 0 && place < end) {
        for (end = place; end < state->span_count && used < width / 3; end++)
            used += token_width(state, end, flags);
        used = 0;
    }
    w->first = end;
    while (w->first > 0 && end - w->first < MOST) {
        int wide = token_width(state, w->first - 1, flags);
        if (used + wide > width)
            break;
        used += wide;
        w->first--;
    }
    w->count = end - w->first;
    w->x[0] = 0;
    for (int i = 0; i < w->count; i++)
        w->x[i + 1] = w->x[i] + token_width(state, w->first + i, flags);
}

static void draw_text(struct esp_canvas *canvas, const struct esp_state *state,
                      const struct window *w, int left, int y, int flags)
{
    for (int i = 0; i < w->count; i++) {
        int place = w->first + i;
        size_t start = state->spans[place].start;
        size_t end =
            place + 1 < state->span_count ? state->spans[place + 1].start : state->byte_count;
        esp_draw_bytes(canvas, left + w->x[i], y, w->x[i + 1] - w->x[i],
                       esp_text_styles[state->spans[place].kind], flags, state->bytes + start,
                       end - start);
    }
}

/* Returns the column of a place in the text, limited to the window. */
static int column(const struct window *w, int place)
{
    int i = place - w->first;
    return w->x[i < 0 ? 0 : i > w->count ? w->count : i];
}

static void draw_bracket(struct esp_canvas *canvas, const struct window *w,
                         const struct esp_iteration *it, int left, int y, bool marked)
{
    int behind = it->position + it->committed_count;
    int start = column(w, it->position), end = column(w, behind);
    int own = column(w, it->position + it->path_length); /* start of the bonus token */
    bool starts = it->position >= w->first, ends = behind <= w->first + w->count;
    for (int x = start; x < end; x++) {
        int line = x == start && starts ? ESP_LINE_UP : ESP_LINE_LEFT;
        line |= x == end - 1 && ends ? ESP_LINE_UP : ESP_LINE_RIGHT;
        int style = marked    ? ESP_STYLE_SELECTION
                    : x < own ? ESP_STYLE_ACCEPTED
                              : ESP_STYLE_EDGE;
        esp_draw(canvas, left + x, y, style, canvas->glyphs->lines[line]);
    }
}

/* Draws the iterations from left to right. Columns of tokens that no iteration generated stay
 * blank. */
static void draw_cuts(struct esp_canvas *canvas, const struct esp_state *state,
                      const struct window *w, const struct esp_iteration *marked, int left,
                      int y)
{
    int place = w->first;
    while (place < w->first + w->count) {
        const struct esp_iteration *it = esp_iteration_covering(state, place);
        if (it && it->committed_count > 0)
            draw_bracket(canvas, w, it, left, y, it == marked);
        int next = it ? it->position + it->committed_count : place + 1;
        place = next > place ? next : place + 1;
    }
}

void esp_draw_ruler(struct esp_canvas *canvas, const struct esp_state *state,
                    const struct esp_comparison *both, bool held, int y)
{
    char names[2][ESP_COMPARE_NAME];
    struct window w;
    int flags = ESP_SAFE_ESCAPED | (canvas->ascii_text ? ESP_SAFE_ASCII : 0), left = 4;
    esp_compare_names(state, names);
    for (int i = 0; i < 2; i++)
        left = (int)strlen(names[i]) > left ? (int)strlen(names[i]) : left;
    left = (left < LONGEST_NAME ? left : LONGEST_NAME) + 2;
    if (canvas->view.rect.width < left + 20)
        left = 0;
    choose(&w, state, held ? both->place : -1, canvas->view.rect.width - left, flags);
    draw_text(canvas, state, &w, left, y, flags);
    for (int i = 0; i < 2; i++) {
        if (left > 0)
            esp_draw_bytes(canvas, 0, y + 1 + i, left - 2, ESP_STYLE_LABEL, 0, names[i],
                           strlen(names[i]));
        draw_cuts(canvas, i ? state->compared : state, &w, both->it[i], left, y + 1 + i);
    }
    if (left > 0)
        esp_draw(canvas, 0, y, ESP_STYLE_LABEL, "text");
}
