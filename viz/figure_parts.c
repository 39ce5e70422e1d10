/* figure_parts.c - draws captions, tokens and marks of figures; see figure_parts.h. */
#include "viz/figure_parts.h"

#include <stdarg.h>

#include "viz/tree_view.h"

double esp_figure_caption(const struct esp_figure *f, struct esp_drawing *d, const char *title,
                          const char *words)
{
    double y = FIGURE_EDGE;
    if (f->caption == ESP_CAPTION_NONE)
        return y;
    y += FIGURE_TITLE - 2;
    esp_drawing_text(d, FIGURE_EDGE, y, FIGURE_TITLE, ESP_ANCHOR_START, ESP_TEXT_BOLD,
                     f->colours->text, title);
    y += FIGURE_LINE + 6;
    esp_drawing_text(d, FIGURE_EDGE, y, FIGURE_LINE, ESP_ANCHOR_START, 0, f->colours->label,
                     words);
    const double wide = 2 * FIGURE_EDGE + esp_drawing_width(words, FIGURE_LINE, 0);
    d->width = wide > d->width ? wide : d->width;
    return y + 12;
}

void esp_figure_small(const struct esp_figure *f, struct esp_drawing *d, double x, double y,
                      int anchor, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    esp_drawing_text(d, x, y, FIGURE_SMALL, anchor, 0, f->colours->label, text);
}

int esp_figure_token(const struct esp_figure *f, const struct esp_drawing *d, int32_t token,
                     char text[256], int columns)
{
    size_t length;
    const char *bytes = esp_token_bytes_of(&f->tokens, token, &length);
    return esp_drawing_cells(d, text, 256, bytes, length, columns);
}

void esp_figure_mark(struct esp_drawing *d, int mark, const char *colour, double x, double y,
                     double size)
{
    const struct esp_pen pen = {.stroke = colour, .width = 1.6};
    if (mark == ESP_MARK_CHECK) {
        const double points[] = {x, y - 0.45 * size, x + 0.35 * size, y, x + size, y - size};
        esp_drawing_path(d, &pen, points, 3, false);
    } else if (mark == ESP_MARK_CROSS) {
        esp_drawing_line(d, &pen, x, y, x + size, y - size);
        esp_drawing_line(d, &pen, x, y - size, x + size, y);
    } else {
        esp_drawing_line(d, &pen, x, y - size / 2, x + size, y - size / 2);
        esp_drawing_line(d, &pen, x + size / 2, y, x + size / 2, y - size);
    }
}
