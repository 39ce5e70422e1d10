/* help.c - the help pane shows lines from the tables of keys and commands.
 *
 * A line that starts in column 0 is a heading. All other lines consist of a name, blanks and an
 * explanation. The explanation is beside the name or below it. In a narrow pane it is wrapped.
 */
#include "tui/view/pane.h"

#include <string.h>

#include "viz/safe.h"
#include "viz/wrap.h"

/* The layout of a line. Its first `name` bytes are in the first row. Its other bytes are a
 * paragraph that begins at column `column`. */
struct placed {
    int name, column, rows;
    bool below; /* the paragraph starts in the second row */
};

static struct placed place(const char *line, int width)
{
    enum { LEAST = 24, INDENT = 6 };
    const int length = (int)strlen(line), indent = (int)strspn(line, " ");
    const char *gap = strstr(line + indent, "  ");
    if (esp_safe_width(line, (size_t)length, 0) <= width)
        return (struct placed){.name = length, .rows = 1};
    struct placed p = {.name = gap ? (int)(gap - line) + (int)strspn(gap, " ") : indent};
    p.below = gap && width - p.name < LEAST;
    p.column = p.below ? INDENT : p.name;
    p.rows = p.below + esp_paragraph_height(line + p.name, width - p.column);
    return p;
}

static int row_count(const struct esp_shown *s, int width)
{
    int count = 0;
    for (const char *const *line = s->look->help; line && *line; line++)
        count += place(*line, width).rows;
    return count;
}

/* Returns the top row. When the pane has become higher, the largest possible scroll position is
 * smaller than before. Therefore the scroll position is limited here. */
static int top_row(const struct esp_shown *s, int width, int height)
{
    const int most = row_count(s, width) - height;
    return s->view->scroll < most ? s->view->scroll : most > 0 ? most : 0;
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    const int width = canvas->view.rect.width;
    int y = -top_row(s, width, canvas->view.rect.height);
    for (const char *const *line = s->look->help; line && *line; line++) {
        const int style = **line == ' ' ? ESP_STYLE_TEXT : ESP_STYLE_KEY;
        const struct placed p = place(*line, width);
        struct esp_rect rest = {p.column, y + p.below, width - p.column, p.rows - p.below};
        esp_drawf(canvas, 0, y, style, "%.*s", p.name, *line);
        struct esp_view whole = esp_canvas_enter(canvas, rest);
        esp_draw_paragraph(canvas, 0, style, *line + p.name);
        esp_canvas_leave(canvas, whole);
        y += p.rows;
    }
}

static bool request(const struct esp_shown *s, int action)
{
    s->view->scroll = top_row(s, s->width, s->height);
    return esp_pane_scroll(s->view, action, s->height - 1, row_count(s, s->width) - s->height);
}

const struct esp_pane_ops esp_pane_help = {
    .name = "help",
    .summary = "keys and commands",
    .draw = draw,
    .request = request,
};
