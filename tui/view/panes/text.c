/* text.c - the text pane shows the text, wrapped, with each token in the style of its origin.
 *
 * The user can move a cursor from token to token. The other panes then show the iteration that
 * generated the token, and the node pane explains the token. While an iteration is held, its
 * tokens are marked.
 *
 * The text can be long, so only the visible lines are wrapped, paragraph by paragraph. Wrapping
 * begins at the end of the text, or at the line to which the user has scrolled, and continues
 * backward. Every PIECE bytes, the next space also ends a paragraph. This limits the work per
 * frame. Lines are identified by their first byte, so a scrolled view does not move while text
 * is added.
 */
#include "tui/view/pane.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tui/view/run_text.h"
#include "viz/chart.h"
#include "viz/search.h"
#include "viz/wrap.h"

enum { PIECE = 32768, WORD = 256, REMEMBERED = 1024 };

/* ------------------------------------------------------------------ lines */

/* Returns the start of piece `index` of the text: after the first blank at or after byte
 * index * PIECE. */
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

/* Returns the start of the paragraph that contains byte at - 1. `at` must be above 0. */
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

/* Returns the start of the line that is `lines` lines above the line that starts at byte
 * `at`. */
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

/* Returns the top line of the pane when it follows the end of the text. */
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

/* Finds the matches of a search one after another, while the caller visits the bytes in
 * order. */
struct matches {
    const struct esp_wrap *w;
    const char *what;
    size_t length, end;
    long at;      /* start of the match at the visited byte, or of the next match; -1 if none */
    long current; /* start of the match that the search found last; -1 if none */
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

/* Returns whether a token is visible. Control tokens of the chat format are not visible. */
static bool has_bytes(const struct esp_state *state, int span)
{
    const size_t end =
        span + 1 < state->span_count ? state->spans[span + 1].start : state->byte_count;
    return end > state->spans[span].start && state->spans[span].kind != ESP_TEXT_MARK;
}

static int span_style(const struct esp_shown *s, int span)
{
    const struct esp_text_span *of = &s->state->spans[span];
    const int step =
        s->look->heat == ESP_HEAT_OFF ? -1 : esp_heat_step(s->look->heat, of->kind, &of->score);
    if (s->look->iteration >= 0 && of->iteration == s->look->iteration)
        return ESP_STYLE_HELD;
    if (s->look->heat != ESP_HEAT_OFF && step < 0)
        return of->kind == ESP_TEXT_MARK ? ESP_STYLE_LABEL : ESP_STYLE_TEXT;
    return step >= 0 ? esp_heat_style(step) : esp_text_styles[of->kind];
}

/* Returns whether some of the bytes [at, end) are part of the token at the cursor. A character
 * can consist of several tokens. */
static bool is_at_cursor(const struct esp_shown *s, size_t at, size_t end)
{
    const struct esp_state *state = s->state;
    const int token = s->look->token;
    if (token < 0 || token >= state->span_count)
        return false;
    const size_t next =
        token + 1 < state->span_count ? state->spans[token + 1].start : state->byte_count;
    return state->spans[token].start < end && next > at;
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
        const bool cursor = is_at_cursor(s, at, at + taken);
        int style = cursor ? ESP_STYLE_SELECTION : style_at(&matches, at, span_style(s, span));
        if (w->bytes[at] == '\t')
            esp_draw_repeat(canvas, x, y, shown.width, cursor ? style : ESP_STYLE_TEXT, " ");
        else
            esp_draw(canvas, x, y, style, shown.text);
        x += shown.width;
        at += taken;
    }
    /* The cursor can be on a line break, or on a blank at the end of a full line. */
    if (at < w->count && x < w->width && is_at_cursor(s, at, at + 1))
        esp_draw(canvas, x, y, ESP_STYLE_SELECTION, " ");
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

/* Returns the number of rows for the text. The last row of the pane can be a legend instead. */
static int text_height(const struct esp_look *look, int height)
{
    enum { LEAST = 4 };
    return look->heat != ESP_HEAT_OFF && height > LEAST ? height - 1 : height;
}

static void draw_legend(struct esp_canvas *canvas, int heat, int y)
{
    const int width = canvas->view.rect.width;
    int x = esp_draw(canvas, 0, y, ESP_STYLE_LABEL, esp_heat_title(heat)) + 1;
    for (int i = 0; i < ESP_HEAT_STEPS; i++) {
        const char *words = esp_heat_words(heat, i);
        if (words && x + (int)strlen(words) <= width)
            x = esp_draw(canvas, x, y, esp_heat_style(i), words) + 1;
    }
}

static void draw_welcome(struct esp_canvas *canvas, const struct esp_shown *s)
{
    /* True if the target is a built-in model. */
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

static void draw_scrolled(struct esp_canvas *canvas, const struct esp_shown *s,
                          const struct esp_wrap *w)
{
    struct esp_rect rect = {0, 0, canvas->view.rect.width, canvas->view.rect.height};
    const int height = text_height(s->look, rect.height);
    if (height < rect.height)
        draw_legend(canvas, s->look->heat, height);
    rect.height = height;
    const struct esp_view whole = esp_canvas_enter(canvas, rect);
    if (s->view->anchor < 0 || (size_t)s->view->anchor >= w->count)
        draw_text(canvas, s, w, following(w, height));
    else
        draw_text(canvas, s, w, (size_t)s->view->anchor);
    esp_canvas_leave(canvas, whole);
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    struct esp_wrap w = wrapping_of(s->state, canvas->view.rect.width, canvas->ascii_text);
    if (s->state->phase == ESP_PHASE_FAILED)
        esp_draw_paragraph(canvas, 0, ESP_STYLE_ERROR, s->state->phase_text);
    else if (w.count == 0)
        draw_welcome(canvas, s);
    else
        draw_scrolled(canvas, s, &w);
}

/* Returns the start of the top line of the pane. */
static size_t top_of(const struct esp_shown *s, const struct esp_wrap *w)
{
    const size_t bottom = following(w, text_height(s->look, s->height));
    return s->view->anchor < 0 || (size_t)s->view->anchor > bottom ? bottom
                                                                   : (size_t)s->view->anchor;
}

static bool scroll(const struct esp_shown *s, int action)
{
    struct esp_wrap w = wrapping_of(s->state, s->width, false);
    const int height = text_height(s->look, s->height);
    size_t bottom = following(&w, height), top = top_of(s, &w);
    int page = height > 2 ? height - 1 : 1;
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

/* Returns the start of the line that contains a byte. */
static size_t line_of(const struct esp_wrap *w, size_t byte)
{
    size_t start = paragraph_before(w, byte + 1), end;
    while ((end = line_below(w, start)) <= byte && end > start)
        start = end;
    return start;
}

/* If a byte is not visible, scrolls until its line is a third of the height below the top. */
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

/* ------------------------------------------------------------------ the cursor */

/* Scrolls as little as possible until the line of a byte is visible. */
static void keep_visible(const struct esp_shown *s, const struct esp_wrap *w, size_t byte)
{
    const int height = text_height(s->look, s->height);
    const size_t line = line_of(w, byte), least = lines_above(w, line, height - 1);
    size_t top = top_of(s, w);
    top = line < top ? line : top < least ? least : top;
    s->view->anchor = (long)top; /* the view stays in place while text is added */
}

static void put_cursor(const struct esp_shown *s, const struct esp_wrap *w, int token)
{
    esp_look_token(s->look, s->state, token);
    keep_visible(s, w, s->state->spans[token].start);
}

/* Returns the next visible token after `token` (step 1) or before it (step -1). Returns `token`
 * itself if there is none. */
static int token_after(const struct esp_state *state, int token, int step)
{
    for (int i = token + step; i >= 0 && i < state->span_count; i += step)
        if (has_bytes(state, i))
            return i;
    return token;
}

static int word_after(const struct esp_state *state, int token, int step)
{
    int next = token, before;
    do {
        before = next;
        next = token_after(state, before, step);
    } while (next != before && !strchr(" \t\n", state->bytes[state->spans[next].start]));
    return next;
}

/* Returns the byte at column `x` of the line that starts at `at`. If the line is shorter,
 * returns its last byte. */
static size_t byte_at(const struct esp_wrap *w, size_t at, int x)
{
    const size_t end = line_below(w, at);
    int column = 0;
    while (at < end && w->bytes[at] != '\n') {
        struct esp_safe_unit unit;
        const size_t taken = esp_wrap_unit(w, at, end, column, &unit);
        if (column + unit.width > x || at + taken >= end)
            break;
        column += unit.width;
        at += taken;
    }
    return at;
}

static int column_of(const struct esp_wrap *w, size_t byte)
{
    size_t at = line_of(w, byte);
    int column = 0;
    while (at < byte) {
        struct esp_safe_unit unit;
        at += esp_wrap_unit(w, at, w->count, column, &unit);
        column += unit.width;
    }
    return column;
}

/* Returns the line that is `lines` lines below the line that starts at `line`, or above it if
 * `lines` is negative. At an end of the text, returns the first or last line. */
static size_t line_after(const struct esp_wrap *w, size_t line, int lines)
{
    if (lines < 0)
        return lines_above(w, line, -lines);
    for (; lines > 0 && line_below(w, line) < w->count; lines--)
        line = line_below(w, line);
    return line;
}

/* Returns the token that is `lines` lines below the token at the cursor, or above it if `lines`
 * is negative. If that line has the same token, continues to the next line. At an end of the
 * text, returns the last or first token. */
static int token_below(const struct esp_shown *s, const struct esp_wrap *w, int lines)
{
    const struct esp_state *state = s->state;
    const int old = s->look->token, step = lines < 0 ? -1 : 1;
    const int column = column_of(w, state->spans[old].start);
    size_t line = line_of(w, state->spans[old].start);
    for (size_t before = SIZE_MAX; line != before; lines = step) {
        before = line;
        line = line_after(w, line, lines);
        const int token = span_at(state, byte_at(w, line, column));
        if (line != before && token != old)
            return has_bytes(state, token) ? token : token_after(state, token, step);
    }
    return token_after(state, step < 0 ? -1 : state->span_count, -step);
}

/* Moves the cursor. Returns false if the action does not move it. */
static bool move(const struct esp_shown *s, int action)
{
    const struct esp_state *state = s->state;
    struct esp_wrap w = wrapping_of(state, s->width, false);
    const int height = text_height(s->look, s->height), page = height > 2 ? height - 1 : 1;
    const int last = token_after(state, state->span_count, -1);
    int token = s->look->token < state->span_count ? s->look->token : last;
    if (last >= state->span_count)
        return false;
    switch (action) {
    case ESP_ACTION_LEFT:
    case ESP_ACTION_RIGHT:
        token = token_after(state, token, action == ESP_ACTION_LEFT ? -1 : 1);
        break;
    case ESP_ACTION_NEXT_WORD:
    case ESP_ACTION_PREVIOUS_WORD:
        token = word_after(state, token, action == ESP_ACTION_NEXT_WORD ? 1 : -1);
        break;
    case ESP_ACTION_UP:
    case ESP_ACTION_DOWN:
        token = token_below(s, &w, action == ESP_ACTION_UP ? -1 : 1);
        break;
    case ESP_ACTION_PAGE_UP:
    case ESP_ACTION_PAGE_DOWN:
        token = token_below(s, &w, action == ESP_ACTION_PAGE_UP ? -page : page);
        break;
    case ESP_ACTION_FIRST:
        token = token_after(state, -1, 1);
        break;
    case ESP_ACTION_LAST:
        token = last;
        break;
    default:
        return false;
    }
    put_cursor(s, &w, token);
    return true;
}

/* If there is no cursor yet, the first cursor key puts the cursor at the end of the visible
 * text. */
static bool begin_cursor(const struct esp_shown *s, int action)
{
    const struct esp_state *state = s->state;
    struct esp_wrap w = wrapping_of(state, s->width, false);
    size_t line = top_of(s, &w);
    if (action != ESP_ACTION_LEFT && action != ESP_ACTION_RIGHT && action != ESP_ACTION_UP &&
        action != ESP_ACTION_DOWN && action != ESP_ACTION_NEXT_WORD &&
        action != ESP_ACTION_PREVIOUS_WORD)
        return false;
    if (state->span_count == 0 || state->byte_count == 0)
        return false;
    for (int i = 1; i < text_height(s->look, s->height) && line_below(&w, line) < w.count; i++)
        line = line_below(&w, line);
    int token = span_at(state, byte_at(&w, line, s->width));
    token = has_bytes(state, token) ? token : token_after(state, token, -1);
    if (!has_bytes(state, token))
        return false;
    put_cursor(s, &w, token);
    return true;
}

static bool request(const struct esp_shown *s, int action)
{
    const bool cursor = s->look->token >= 0;
    if (action == ESP_ACTION_LEAVE_PANE) {
        if (!cursor)
            return false;
        s->view->anchor = -1;
        esp_look_hold(s->look, s->state, -1);
        return true;
    }
    if (!s->wheel && (cursor ? move(s, action) : begin_cursor(s, action)))
        return true;
    return scroll(s, action);
}

/* Puts the cursor on the clicked token. */
static bool click(const struct esp_shown *s, int x, int y)
{
    struct esp_wrap w = wrapping_of(s->state, s->width, false);
    if (w.count == 0 || y >= text_height(s->look, s->height))
        return false;
    size_t line = top_of(s, &w);
    for (; y > 0 && line < w.count; y--)
        line = line_below(&w, line);
    if (line >= w.count)
        return false;
    const int token = span_at(s->state, byte_at(&w, line, x));
    if (!has_bytes(s->state, token))
        return false;
    put_cursor(s, &w, token);
    return true;
}

/* Sets *point to the place after the token at the cursor or, without a cursor, to the end of
 * the text. */
static bool point(const struct esp_shown *s, struct esp_branch_point *point)
{
    const struct esp_state *state = s->state;
    const int token = s->look->token;
    if (!state->has_branches || state->span_count == 0)
        return false;
    const int length = token >= 0 && token < state->span_count ? token + 1 : state->span_count;
    *point = (struct esp_branch_point){
        .place = esp_branches_before(&state->branches, state->branches.at, length)};
    return true;
}

/* ------------------------------------------------------------------ search and title */

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
    if (chosen >= 0) {
        bring_up(s->view, &w, (size_t)chosen, text_height(s->look, s->height));
        if (s->look->token >= 0)
            esp_look_token(s->look, s->state, span_at(s->state, (size_t)chosen));
    }
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
    const double perplexity =
        s->look->heat != ESP_HEAT_OFF ? esp_state_perplexity(s->state) : NAN;
    snprintf(part, sizeof part, "perplexity %.2f", perplexity);
    if (isfinite(perplexity))
        add(text, size, part);
    add(text, size, s->state->loaded.chat);
    snprintf(part, sizeof part, "seed %" PRIu64, values->seed);
    if (values->temperature > 0) /* at temperature 0 nothing is sampled */
        add(text, size, part);
}

const struct esp_pane_ops esp_pane_text = {
    .name = "text",
    .summary = "the text; drafted and accepted tokens are underlined; a cursor moves over them",
    .title = title,
    .draw = draw,
    .request = request,
    .click = click,
    .point = point,
    .find = find,
};
