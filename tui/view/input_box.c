/* input_box.c - visits the units of the line (viz/safe.h) and computes the row and column of
 * each; see input_box.h.
 *
 * In a very long line, only a part around the cursor is visited. This limits the work per
 * frame.
 */
#include "tui/view/input_box.h"

#include <string.h>

#include "viz/safe.h"

enum { INDENT = 2, LONG = 1 << 14, MOST_ROWS = 8 };

/* A position between two units of the line. */
struct walk {
    const struct esp_input_line *line;
    int width, flags;
    size_t at, end; /* first byte of the next unit; end of the part to visit */
    int x, row;     /* where the next unit is drawn */
    size_t taken;   /* number of bytes of the next unit; 0 at the end */
    struct esp_safe_unit unit;
};

/* Reads the next unit. If it does not fit into the row, starts a new row before it. At the end
 * of the line, leaves room for the cursor. */
static void look(struct walk *w)
{
    const bool end = w->at >= w->end, newline = !end && w->line->line[w->at] == '\n';
    w->taken = end ? 0 : 1;
    if (!end && !newline)
        w->taken = esp_safe_next(w->line->line + w->at, w->end - w->at, w->flags, &w->unit);
    if (w->x + (end || newline ? 1 : w->unit.width) > w->width && !newline) {
        w->row++;
        w->x = w->width > 2 * INDENT ? INDENT : 0;
    }
}

static struct walk begin(const struct esp_input_line *line, int width, int flags)
{
    struct walk w = {
        .line = line, .width = width > 0 ? width : 1, .flags = flags, .end = line->length};
    if (line->length > LONG) {
        w.at = line->point > LONG / 2 ? line->point - LONG / 2 : 0;
        while (w.at > 0 && ((unsigned char)line->line[w.at] & 0xc0) == 0x80)
            w.at--;
        if (w.end - w.at > LONG)
            w.end = w.at + LONG;
    }
    w.x = esp_safe_width(line->prompt, strlen(line->prompt), 0);
    look(&w);
    return w;
}

static void go_on(struct walk *w)
{
    if (w->line->line[w->at] == '\n') {
        w->row++;
        w->x = w->width > 2 * INDENT ? INDENT : 0;
    } else {
        w->x += w->unit.width;
    }
    w->at += w->taken;
    look(w);
}

static struct walk at_point(const struct esp_input_line *line, int width, int flags)
{
    struct walk w = begin(line, width, flags);
    while (w.taken > 0 && w.at < line->point)
        go_on(&w);
    return w;
}

int esp_input_box_rows(const struct esp_input_line *line, int width, int height)
{
    const int most = height >= 4 * MOST_ROWS ? MOST_ROWS : height / 4;
    struct walk w = begin(line, width, 0);
    while (w.taken > 0 && w.row + 1 < most)
        go_on(&w);
    return w.row + 1 < most ? w.row + 1 : most > 1 ? most : 1;
}

void esp_input_box_draw(struct esp_canvas *canvas, const struct esp_input_line *line,
                        bool active)
{
    const int width = canvas->view.rect.width, height = canvas->view.rect.height,
              flags = canvas->ascii_text ? ESP_SAFE_ASCII : 0;
    const struct walk cursor = at_point(line, width, flags);
    const int first = cursor.row >= height ? cursor.row - height + 1 : 0;
    if (first == 0)
        esp_draw(canvas, 0, 0, active ? ESP_STYLE_KEY : ESP_STYLE_LABEL, line->prompt);
    for (struct walk w = begin(line, width, flags); w.taken > 0 && w.row < first + height;
         go_on(&w))
        if (line->line[w.at] != '\n')
            esp_draw(canvas, w.x, w.row - first,
                     w.unit.stand_in ? ESP_STYLE_LABEL : ESP_STYLE_TEXT, w.unit.text);
    if (!active)
        return;
    canvas->cursor_x = canvas->view.rect.x + (cursor.x < width ? cursor.x : width - 1);
    canvas->cursor_y = canvas->view.rect.y + cursor.row - first;
}

long esp_input_box_move(const struct esp_input_line *line, int width, int step)
{
    const struct walk cursor = at_point(line, width, 0);
    long found = -1;
    for (struct walk w = begin(line, width, 0); w.row <= cursor.row + step; go_on(&w)) {
        if (w.row == cursor.row + step && (found < 0 || w.x <= cursor.x))
            found = (long)w.at;
        if (w.taken == 0)
            break;
    }
    return found;
}
