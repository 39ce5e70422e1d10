/* token_view.c - see token_view.h. */
#include "tui/view/panes/token_view.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/say.h"
#include "viz/wrap.h"

static const struct esp_text_span *looked(const struct esp_shown *s)
{
    return &s->state->spans[s->look->token];
}

void esp_token_view_title(const struct esp_shown *s, char *title, size_t size)
{
    char quoted[48];
    snprintf(title, size, "node   token %d %s", s->look->token,
             esp_quote_token(quoted, &s->state->tokens, looked(s)->token));
}

/* ------------------------------------------------------------------ drawing */

/* Draws a number with its name. Begins another row if the number does not fit in this row. */
static void draw_number(struct esp_canvas *canvas, int *x, int *y, const char *name,
                        const char *value, const char *unit)
{
    const int width = (int)(strlen(name) + strlen(value) + strlen(unit)) + 1;
    if (*x > 0 && *x + width > canvas->view.rect.width) {
        *x = 0;
        (*y)++;
    }
    *x = esp_draw(canvas, *x, *y, ESP_STYLE_LABEL, name) + 1;
    *x = esp_draw(canvas, *x, *y, ESP_STYLE_VALUE, value);
    *x = esp_draw(canvas, *x, *y, ESP_STYLE_LABEL, unit) + 2;
}

/* Draws the numbers of a token. Returns the row below them. */
static int draw_numbers(struct esp_canvas *canvas, const struct esp_token_score *score)
{
    char text[16];
    const bool wide = canvas->view.rect.width >= 64;
    int x = 0, y = 0;
    draw_number(canvas, &x, &y, wide ? "target (p)" : "target",
                esp_probability_exact(text, (double)score->p), "");
    if (score->rank > 0)
        snprintf(text, sizeof text, "%d", score->rank);
    else
        snprintf(text, sizeof text, "over %d", score->count);
    draw_number(canvas, &x, &y, "rank", text, "");
    snprintf(text, sizeof text, "%.2f", esp_surprisal(score));
    draw_number(canvas, &x, &y, "surprisal", isfinite(esp_surprisal(score)) ? text : "infinite",
                wide ? " bits" : "");
    snprintf(text, sizeof text, "%.2f", (double)score->entropy);
    draw_number(canvas, &x, &y, "entropy", text, " bits");
    return y + 1;
}

/* Writes the origin of the token. */
static void say_writer(char *text, size_t size, const struct esp_text_span *span)
{
    static const char *const who[] = {
        [ESP_TEXT_PROMPT] = "You wrote it",
        [ESP_TEXT_DRAFTED] = "The draft guessed it, and the target accepted it",
        [ESP_TEXT_BONUS] = "The target chose it itself",
        [ESP_TEXT_MARK] = "It is a control token of the chat format",
        [ESP_TEXT_CHOSEN] = "You chose it: a branch begins here",
    };
    *text = '\0';
    esp_say(text, size, "%s", who[span->kind]);
    if (span->iteration >= 0)
        esp_say(text, size, ", in iteration %d", span->iteration);
    esp_say(text, size, ".");
}

static void say_unknown(char *text, size_t size, const struct esp_shown *s)
{
    snprintf(text, size, "%s",
             s->look->token == 0 ? "Nothing precedes the first token, so it has no probability."
             : s->state->has_branches
                 ? "The target has not judged it yet."
                 : "The recording does not contain the alternatives to this token.");
}

/* Describes the layout of the rows that show the alternatives. */
struct rows {
    int first, shown; /* first: first shown alternative. shown: number of shown alternatives */
    int y, label, bar;
};

static struct rows rows_of(const struct esp_shown *s, int y, int width, int height, bool ascii)
{
    enum { MARK = 4, NUMBER = 6, WRITTEN = 9 };
    const struct esp_token_score *score = &looked(s)->score;
    struct rows r = {.y = y, .shown = height - y, .label = 4};
    r.shown = r.shown < 0 ? 0 : r.shown < score->count ? r.shown : score->count;
    r.first = s->look->likely < r.shown ? 0 : s->look->likely - r.shown + 1;
    for (int i = 0; i < score->count; i++) {
        const int token = esp_token_width(&s->state->tokens, score->likely[i], ascii);
        r.label = token > r.label ? token : r.label;
    }
    r.label = r.label > width / 3 ? width / 3 : r.label;
    r.bar = width - MARK - r.label - NUMBER - WRITTEN;
    r.bar = r.bar > 40 ? 40 : r.bar < 0 ? 0 : r.bar;
    return r;
}

static void draw_row(struct esp_canvas *canvas, const struct esp_shown *s, const struct rows *r,
                     int index)
{
    const struct esp_text_span *span = looked(s);
    const int y = r->y + index - r->first;
    const bool chosen = index == s->look->likely;
    const bool written = span->score.likely[index] == span->token;
    if (chosen)
        esp_draw(canvas, 0, y, ESP_STYLE_KEY, ">");
    esp_drawf(canvas, 2, y, ESP_STYLE_LABEL, "%d", index + 1);
    esp_draw_token(canvas, 4, y, r->label, chosen ? ESP_STYLE_SELECTION : ESP_STYLE_VALUE,
                   &s->state->tokens, span->score.likely[index]);
    int x = 4 + r->label + 1;
    const double p = (double)span->score.likely_p[index];
    if (r->bar > 0)
        esp_draw_bar(canvas, x, y, r->bar, ESP_STYLE_BAR_VERIFY, p);
    x = esp_draw_probability(canvas, x + r->bar + 1, y, ESP_STYLE_VALUE, p) + 1;
    if (written)
        esp_draw(canvas, x, y, ESP_STYLE_ACCEPTED, "written");
}

/* Draws the rows above the alternatives. Returns the row in which the alternatives begin. */
static int list_row(struct esp_canvas *canvas, const struct esp_shown *s)
{
    char text[160];
    const struct esp_text_span *span = looked(s);
    int y = span->score.count > 0 ? draw_numbers(canvas, &span->score) : 0;
    say_writer(text, sizeof text, span);
    return esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, text);
}

void esp_token_view_draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    const int width = canvas->view.rect.width, height = canvas->view.rect.height;
    char text[160];
    const int y = list_row(canvas, s);
    if (looked(s)->score.count == 0) {
        say_unknown(text, sizeof text, s);
        esp_draw_paragraph(canvas, y, ESP_STYLE_LABEL, text);
        return;
    }
    const struct rows r = rows_of(s, y, width, height, canvas->ascii_text);
    for (int i = r.first; i < r.first + r.shown; i++)
        draw_row(canvas, s, &r, i);
    if (height > y + r.shown + 1 && s->state->has_branches)
        esp_draw_paragraph(canvas, y + r.shown + 1, ESP_STYLE_LABEL,
                           "Up, Down choose another token; Enter begins a branch with it.");
}

/* ------------------------------------------------------------------ requests */

bool esp_token_view_request(const struct esp_shown *s, int action)
{
    const int count = looked(s)->score.count;
    int at = s->look->likely;
    switch (action) {
    case ESP_ACTION_UP:
        at--;
        break;
    case ESP_ACTION_DOWN:
        at++;
        break;
    case ESP_ACTION_FIRST:
    case ESP_ACTION_PAGE_UP:
        at = 0;
        break;
    case ESP_ACTION_LAST:
    case ESP_ACTION_PAGE_DOWN:
        at = count - 1;
        break;
    default:
        return false;
    }
    if (count == 0)
        return false;
    s->look->likely = at < 0 ? 0 : at < count ? at : count - 1;
    return true;
}

bool esp_token_view_click(const struct esp_shown *s, int x, int y)
{
    struct esp_canvas page = {.glyphs = &esp_glyphs_full};
    (void)x;
    if (esp_canvas_open(&page, s->width, s->height) < 0)
        return false;
    page.glyphs = &esp_glyphs_full;
    const struct rows r = rows_of(s, list_row(&page, s), s->width, s->height, false);
    esp_canvas_close(&page);
    if (y < r.y || y >= r.y + r.shown)
        return false;
    s->look->likely = r.first + y - r.y;
    return true;
}

bool esp_token_view_point(const struct esp_shown *s, struct esp_branch_point *point)
{
    const struct esp_token_score *score = &looked(s)->score;
    if (!s->state->has_branches || s->look->likely >= score->count)
        return false;
    *point = (struct esp_branch_point){
        .place =
            esp_branches_before(&s->state->branches, s->state->branches.at, s->look->token)};
    point->tokens[0] = score->likely[s->look->likely];
    point->count = 1;
    return true;
}
