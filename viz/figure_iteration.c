/* figure_iteration.c - draws the text around an iteration, and its tree; see figure.h. */
#include "viz/figure_parts.h"

#include <string.h>

#include "viz/say.h"
#include "viz/tree_view.h"

enum { CELLS = 76, LINES_BEFORE = 3, LONGEST = 40, TEXT = 10, PITCH = 17 };

static const char blank[] = "\u2423"; /* esp_drawing_cells() writes this for a blank */

static const double cell = TEXT * ESP_MONO_CELL;

/* The position of the next token. The text is drawn in lines of character cells. */
struct cursor {
    int column;
    double y;
};

static bool ends_line(const struct esp_figure *f, int32_t token)
{
    size_t length;
    const char *bytes = esp_token_bytes_of(&f->tokens, token, &length);
    return length > 0 && bytes[length - 1] == '\n';
}

/* Says where a token comes from: the text before the iteration, the draft, or the target. */
enum from { BEFORE, DRAFTED, TARGET };

/* Writes a token. If it does not fit on the current line, begins the next line. */
static void put_token(const struct esp_figure *f, struct esp_drawing *d, struct cursor *at,
                      int32_t token, enum from from)
{
    const struct esp_colours *colours = f->colours;
    const char *const styles[] = {colours->label, colours->accepted, colours->bonus};
    char text[256];
    int cells = esp_figure_token(f, d, token, text, LONGEST);
    if (at->column + cells > CELLS) {
        at->column = 0;
        at->y += PITCH;
    }
    const char *word = text; /* the text without the marks for blanks at its start */
    while (strncmp(word, blank, sizeof blank - 1) == 0)
        word += sizeof blank - 1;
    const int blanks = (int)((size_t)(word - text) / (sizeof blank - 1)),
              indent = at->column > 0 || !*word ? blanks : 0;
    cells -= blanks - indent;
    const double x = FIGURE_EDGE + at->column * cell, wide = cells * cell;
    if (from == TARGET) {
        const struct esp_pen frame = {.stroke = colours->bonus, .width = 1};
        esp_drawing_rect(d, &frame, x + 0.5, at->y - 9, wide - 1, 12.5, 2);
    }
    if (from == DRAFTED) {
        const struct esp_pen line = {.stroke = colours->accepted, .width = 1.8};
        esp_drawing_line(d, &line, x + 0.8, at->y + 3.2, x + wide - 0.8, at->y + 3.2);
    }
    esp_drawing_text(d, x + indent * cell, at->y, TEXT, ESP_ANCHOR_START,
                     ESP_TEXT_MONO | (from == BEFORE ? 0 : ESP_TEXT_BOLD), styles[from], word);
    at->column += cells;
    if (ends_line(f, token))
        at->column = CELLS;
}

/* Returns the index of the first token to show. It is chosen so that the text before the
 * iteration takes at most LINES_BEFORE lines. */
static int first_shown(const struct esp_figure *f, const struct esp_drawing *d)
{
    char text[256];
    int first = f->text_count, cells = 0, lines = 1;
    while (first > 0) {
        const int32_t token = f->text[first - 1];
        const int wide = esp_figure_token(f, d, token, text, LONGEST);
        if (cells + wide > CELLS || (cells > 0 && ends_line(f, token))) {
            cells = 0;
            lines++;
        }
        if (lines > LINES_BEFORE)
            break;
        cells += wide;
        first--;
    }
    return first;
}

static double draw_words(const struct esp_figure *f, struct esp_drawing *d, double y)
{
    const struct esp_iteration *it = f->iteration;
    struct cursor at = {.y = y + TEXT};
    const double right = 2 * FIGURE_EDGE + CELLS * cell;
    d->width = right > d->width ? right : d->width;
    for (int i = first_shown(f, d); i < f->text_count; i++)
        put_token(f, d, &at, f->text[i], BEFORE);
    for (int i = 0; i < it->committed_count; i++)
        put_token(f, d, &at, it->committed[i], i < it->path_length ? DRAFTED : TARGET);
    return at.y + PITCH;
}

int esp_figure_iteration(const struct esp_figure *f, struct esp_drawing *d, char *err,
                         size_t errlen)
{
    (void)err, (void)errlen;
    enum { MOST = 24 };
    const struct esp_iteration *it = f->iteration;
    char title[96], words[160];
    snprintf(title, sizeof title, "Iteration %d: %d token%s from one tree", it->index,
             it->committed_count, esp_plural(it->committed_count));
    snprintf(words, sizeof words,
             "underlined: drafted and accepted (%d of %d); framed: from the target itself",
             it->path_length, it->tree.verified - 1);
    double y = esp_figure_caption(f, d, title, words);
    y = draw_words(f, d, y);
    return esp_figure_tree(f, d, FIGURE_EDGE, y, f->nodes < 0 ? MOST : f->nodes);
}
