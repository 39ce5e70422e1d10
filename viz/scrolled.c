/* scrolled.c - shows part of a drawing that is taller than its view; see scrolled.h. */
#include "viz/scrolled.h"

#include <string.h>

int esp_scrolled_open(struct esp_canvas *page, const struct esp_canvas *like, int width,
                      int height)
{
    const int status = esp_canvas_open(page, width > 0 ? width : 1, height > 0 ? height : 1);
    page->glyphs = like->glyphs;
    page->ascii_text = like->ascii_text;
    return status;
}

static bool is_blank(const struct esp_canvas *page, int y)
{
    for (int x = 0; x < page->width; x++)
        if (strcmp(esp_cell_text(page, &page->cells[y * page->width + x]), " ") != 0)
            return false;
    return true;
}

int esp_scrolled_rows(const struct esp_canvas *page)
{
    int rows = page->height;
    while (rows > 0 && is_blank(page, rows - 1))
        rows--;
    return rows;
}

void esp_scrolled_show(struct esp_canvas *canvas, const struct esp_canvas *page, int rows,
                       int first)
{
    const struct esp_rect *rect = &canvas->view.rect, *clip = &canvas->view.clip;
    const int below = rows - first - rect->height;
    char text[24];
    for (int y = clip->y; y < clip->y + clip->height; y++)
        for (int x = clip->x; x < clip->x + clip->width; x++) {
            const int from = y - rect->y + first, column = x - rect->x;
            if (from < rows && column < page->width)
                canvas->cells[y * canvas->width + x] = page->cells[from * page->width + column];
        }
    if (first > 0) {
        snprintf(text, sizeof text, " %s %d", canvas->glyphs->more[0], first);
        esp_draw_right(canvas, rect->width, 0, ESP_STYLE_KEY, text);
    }
    if (below > 0) {
        snprintf(text, sizeof text, " %s %d", canvas->glyphs->more[1], below);
        esp_draw_right(canvas, rect->width, rect->height - 1, ESP_STYLE_KEY, text);
    }
}
