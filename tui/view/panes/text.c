/* text.c - the text pane: the text, wrapped, with each token in the style of its origin.
 *
 * The text may be long, so only the visible lines are laid out: backward from the end (or from
 * the line to which the user scrolled), paragraph by paragraph. Every PIECE bytes, the next
 * space also ends a paragraph, which bounds the work per frame. Lines are identified by their
 * first byte, so a scrolled view stays in place while text is added.
 */
#include "tui/view/pane.h"

#include <inttypes.h>
#include <string.h>

#include "tui/view/run_text.h"
#include "viz/chart.h"
#include "viz/search.h"
#include "viz/wrap.h"

enum { PIECE = 32768, WORD = 256, REMEMBERED = 1024 };

/* ------------------------------------------------------------------ lines */

/* The start of piece `index` of the text: after the first blank from index * PIECE on. */
static size_t piece_start(const struct esp_wrap *w, size_t index)
{
    size_t raw = index * PIECE, at = raw;
    if (index == 0 || raw >= w->count)
        return raw < w->count ? raw : w->count;
    for (; at < w->count && at < raw + WORD; at++)
        if (w->bytes[at] == ' ' || w->bytes[at] == '\n')
            return at + 1;
    return raw;
}

/* The start of the paragraph that contains byte at - 1; at > 0. */
static size_t paragraph_before(const struct esp_wrap *w, size_t at)
{
    size_t index = (at - 1) / PIECE, least = piece_start(w, index), start = at - 1;
    if (least >= at)
        least = piece_start(w, index - 1);
    while (start > least && w->bytes[start - 1] != '\n')
        start--;
    return start;
}

static size_t paragraph_end(const struct esp_wrap *w, size_t at)
{
    size_t most = piece_start(w, at / PIECE);
    if (most <= at)
        most = piece_start(w, at / PIECE + 1);
    const char *newline = memchr(w->bytes + at, '\n', most - at);
    return newline ? (size_t)(newline - w->bytes) + 1 : most;
}

/* The start of the line `lines` lines above the one that starts at byte `at`. */
static size_t lines_above(const struct esp_wrap *w, size_t at, int lines)
{
    size_t starts[REMEMBERED];
    while (lines > 0 && at > 0) {
        size_t start = paragraph_before(w, at);
        int count = 0, step = lines < REMEMBERED ? lines : REMEMBERED;
        for (; start < at; start = esp_wrap_line(w, start, at))
            starts[count++ % REMEMBERED] = start;
        step = count < step ? count : step;
        at = starts[(count - step) % REMEMBERED];
        lines -= step;
    }
    return at;
}

static size_t line_below(const struct esp_wrap *w, size_t at)
{
    return esp_wrap_line(w, at, paragraph_end(w, at));
}

/* The top line of a pane that follows the end of the text. */
static size_t following(const struct esp_wrap *w, int height)
{
    bool fresh = w->count > 0 && w->bytes[w->count - 1] == '\n';
    return lines_above(w, w->count, height - fresh);
}

static struct esp_wrap wrapping_of(const struct esp_state *state, int width, bool ascii)
{
    return (struct esp_wrap){state->bytes, state->byte_count, width > 0 ? width : 1,
                             ascii ? ESP_SAFE_ASCII : 0};
}

/* ------------------------------------------------------------------ drawing */

static int span_at(const struct esp_state *state, size_t byte)
{
    int low = 0, high = state->span_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (state->spans[middle].start <= byte)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The matches of a search, for bytes that are visited in order. */
struct matches {
    const struct esp_wrap *w;
    const char *what;
    size_t length, end;
    long at;      /* the match that contains the byte, else the next match; -1: none */
    long current; /* the match that was found last; -1: none */
};

static struct matches matches_in(const struct esp_wrap *w, const struct esp_look *look,
                                 size_t from, size_t end)
{
    struct matches m = {w, look->search, strlen(look->search), 0, -1, look->match};
    m.end = end + m.length < w->count ? end + m.length : w->count;
    from = from > m.length ? from - m.length : 0;
    m.at = m.length > 0 ? esp_search_forward(w->bytes, m.end, from, m.what) : -1;
    return m;
}

static int style_at(struct matches *m, size_t byte, int style)
{
    while (m->at >= 0 && (size_t)m->at + m->length <= byte)
        m->at = esp_search_forward(m->w->bytes, m->end, (size_t)m->at + 1, m->what);
    if (m->at < 0 || (size_t)m->at > byte)
        return style;
    return m->at == m->current ? ESP_STYLE_SELECTION : ESP_STYLE_MATCH;
}

/* Draws bytes [at, end) as a line. Returns the column after it. Blanks at the end of a full
 * line are not drawn, because their underline would stick out. */
static int draw_line(struct esp_canvas *canvas, const struct esp_shown *s,
                     const struct esp_wrap *w, size_t at, size_t end, int y)
{
    int span = span_at(s->state, at), x = 0;
    struct matches matches = matches_in(w, s->look, at, end);
    while (end < w->count && end > at && w->bytes[end - 1] == ' ')
        end--;
    while (at < end && w->bytes[at] != '\n') {
        struct esp_safe_unit shown;
        while (span + 1 < s->state->span_count && s->state->spans[span + 1].start <= at)
            span++;
        size_t taken = esp_wrap_unit(w, at, end, x, &shown);
        int style = style_at(&matches, at, esp_text_styles[s->state->spans[span].kind]);
        if (w->bytes[at] == '\t')
            esp_draw_repeat(canvas, x, y, shown.width, ESP_STYLE_TEXT, " ");
        else
            esp_draw(canvas, x, y, style, shown.text);
        x += shown.width;
        at += taken;
    }
    return x;
}

static void draw_text(struct esp_canvas *canvas, const struct esp_shown *s,
                      const struct esp_wrap *w, size_t at)
{
    int height = canvas->view.rect.height, x = 0, y = 0;
    while (y < height && at < w->count) {
        size_t end = line_below(w, at);
        x = draw_line(canvas, s, w, at, end, y);
        at = end;
        if (at < w->count || w->bytes[at - 1] == '\n') {
            y++;
            x = 0;
        }
    }
    if (at == w->count && esp_state_is_busy(s->state))
        esp_draw(canvas, x, y, ESP_STYLE_KEY, canvas->glyphs->cursor);
}

static void draw_welcome(struct esp_canvas *canvas, const struct esp_shown *s)
{
    /* Whether the target is the built-in one. */
    const bool small = strncmp(s->state->loaded.target, "fairytale-", 10) == 0;
    const bool chat = *s->state->loaded.chat;
    const char *tales = small && !chat ? "The built-in models have only read fairy tales: they "
                                         "continue a tale and answer no questions."
                                       : "";
    const char *const lines[] = {
        chat ? "Ask something and press Enter: the model answers."
             : "Type the beginning of a text and press Enter.",
        "",
        "A small draft model will guess a whole tree of continuations. The target model checks "
        "all of them in one pass and keeps the longest path it agrees with, plus one token of "
        "its own: the text is exactly what the target alone would write, in fewer passes.",
        "",
        tales,
        chat ? "what you say" : "prompt",
        "drafted, and accepted by the target",
        "from the target",
    };
    enum { LINES = sizeof lines / sizeof *lines };
    static const int styles[LINES] = {ESP_STYLE_TEXT,    ESP_STYLE_TEXT,  ESP_STYLE_LABEL,
                                      ESP_STYLE_TEXT,    ESP_STYLE_LABEL, ESP_STYLE_PROMPT,
                                      ESP_STYLE_DRAFTED, ESP_STYLE_BONUS};
    int width = canvas->view.rect.width, y = 0;
    if (s->state->phase == ESP_PHASE_LOADING) {
        esp_drawf(canvas, 0, 0, ESP_STYLE_TEXT, "Loading %s %s", s->state->phase_text,
                  canvas->glyphs->ellipsis);
        esp_draw_bar(canvas, 0, 1, width < 40 ? width : 40, ESP_STYLE_BAR_VERIFY,
                     s->state->fraction);
        y = 3;
    }
    for (int i = 0; i < LINES; i++)
        y = *lines[i] ? esp_draw_paragraph(canvas, y, styles[i], lines[i]) + (lines[i] == tales)
                      : y + (lines[i] != tales);
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    struct esp_wrap w = wrapping_of(s->state, canvas->view.rect.width, canvas->ascii_text);
    if (s->state->phase == ESP_PHASE_FAILED)
        esp_draw_paragraph(canvas, 0, ESP_STYLE_ERROR, s->state->phase_text);
    else if (w.count == 0)
        draw_welcome(canvas, s);
    else if (s->view->anchor < 0 || (size_t)s->view->anchor >= w.count)
        draw_text(canvas, s, &w, following(&w, canvas->view.rect.height));
    else
        draw_text(canvas, s, &w, (size_t)s->view->anchor);
}

static bool request(const struct esp_shown *s, int action)
{
    struct esp_wrap w = wrapping_of(s->state, s->width, false);
    size_t bottom = following(&w, s->height);
    size_t top = s->view->anchor < 0 || (size_t)s->view->anchor > bottom
                     ? bottom
                     : (size_t)s->view->anchor;
    int page = s->height > 2 ? s->height - 1 : 1;
    switch (action) {
    case ESP_ACTION_UP:
        top = lines_above(&w, top, 1);
        break;
    case ESP_ACTION_PAGE_UP:
        top = lines_above(&w, top, page);
        break;
    case ESP_ACTION_DOWN:
    case ESP_ACTION_PAGE_DOWN:
        for (int i = action == ESP_ACTION_DOWN ? 1 : page; i > 0 && top < bottom; i--)
            top = line_below(&w, top);
        break;
    case ESP_ACTION_FIRST:
        top = 0;
        break;
    case ESP_ACTION_LAST:
        top = bottom;
        break;
    default:
        return false;
    }
    s->view->anchor = top >= bottom ? -1 : (long)top;
    return true;
}

/* The start of the line that contains a byte. */
static size_t line_of(const struct esp_wrap *w, size_t byte)
{
    size_t start = paragraph_before(w, byte + 1), end;
    while ((end = line_below(w, start)) <= byte && end > start)
        start = end;
    return start;
}

/* Unless a byte is visible, scrolls so that its line is a third of the height below the
 * top. */
static void bring_up(struct esp_pane_view *view, const struct esp_wrap *w, size_t byte,
                     int height)
{
    size_t bottom = following(w, height), top, line = line_of(w, byte);
    top = view->anchor < 0 || (size_t)view->anchor > bottom ? bottom : (size_t)view->anchor;
    if (line < top || lines_above(w, line, height - 1) > top)
        top = lines_above(w, line, height / 3);
    view->anchor =
        (long)(top < bottom ? top : bottom); /* the view stays in place while text is added */
}

static struct esp_search_result find(const struct esp_shown *s, int step)
{
    struct esp_search_result found = {.count = 0};
    struct esp_wrap w = wrapping_of(s->state, s->width, false);
    long from = s->look->match, chosen = -1, first = -1, last = -1;
    if (from < 0)
        from = (s->view->anchor < 0 ? (long)following(&w, s->height) : s->view->anchor) -
               (step > 0);
    for (long at = esp_search_forward(w.bytes, w.count, 0, s->look->search); at >= 0;
         at = esp_search_forward(w.bytes, w.count, (size_t)at + 1, s->look->search)) {
        found.count++;
        first = first < 0 ? at : first;
        last = at;
        if (step > 0 ? at > from && chosen < 0 : at < from) {
            chosen = at;
            found.index = found.count;
        }
    }
    if (chosen < 0 && found.count > 0) {
        found.round = true;
        found.index = step > 0 ? 1 : found.count;
        chosen = step > 0 ? first : last;
    }
    s->look->match = chosen;
    if (chosen >= 0)
        bring_up(s->view, &w, (size_t)chosen, s->height);
    return found;
}

/* Appends a part of the title if there is room for all of it. */
static void add(char *text, size_t size, const char *part)
{
    if (*part && strlen(text) + 3 + strlen(part) < size) {
        strcat(text, "   ");
        strcat(text, part);
    }
}

static void title(const struct esp_shown *s, char *text, size_t size)
{
    const struct esp_session_values *values = &s->state->loaded.values;
    const int count = s->state->span_count, context = s->state->loaded.context;
    char part[64];
    int window, sinks;
    esp_window_of(values, context, &window, &sinks);
    snprintf(text, size, "text");
    snprintf(part, sizeof part, "%d tokens", count);
    if (count > 0 && window > 0)
        snprintf(part, sizeof part, "%d tokens, window %d + %d", count, sinks, window);
    else if (count > 0 && context > 0) {
        const double share = 100.0 * count / context;
        snprintf(part, sizeof part, "%d tokens, %.0f %% of the context", count, share);
        if (strlen(text) + 3 + strlen(part) >= size)
            snprintf(part, sizeof part, "%d tokens, context %.0f %%", count, share);
    }
    if (count > 0)
        add(text, size, part);
    add(text, size, s->state->loaded.chat);
    snprintf(part, sizeof part, "seed %" PRIu64, values->seed);
    if (values->temperature > 0) /* otherwise nothing is sampled */
        add(text, size, part);
}

const struct esp_pane_ops esp_pane_text = {
    .name = "text",
    .summary = "the text; drafted and accepted tokens are underlined",
    .title = title,
    .draw = draw,
    .request = request,
    .find = find,
};
