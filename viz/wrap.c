/* wrap.c - breaks text into lines; see wrap.h. */
#include "viz/wrap.h"

#include <string.h>

size_t esp_wrap_unit(const struct esp_wrap *wrap, size_t at, size_t end, int column,
                     struct esp_safe_unit *shown)
{
    size_t taken = esp_safe_next(wrap->bytes + at, end - at, wrap->flags, shown);
    if (wrap->bytes[at] == '\t')
        shown->width = 4 - column % 4;
    return taken;
}

/* Returns whether a line can end after byte i. It can end after a space, unless the space
 * directly follows an opening quotation mark. */
static bool breaks(const struct esp_wrap *wrap, size_t at, size_t i)
{
    bool quoted =
        i > at && wrap->bytes[i - 1] == '"' && (i - 1 == at || wrap->bytes[i - 2] == ' ');
    return wrap->bytes[i] == ' ' && !quoted;
}

size_t esp_wrap_line(const struct esp_wrap *wrap, size_t at, size_t end)
{
    size_t after_space = at;
    int column = 0;
    for (size_t i = at; i < end;) {
        struct esp_safe_unit shown;
        if (wrap->bytes[i] == '\n')
            return i + 1;
        size_t taken = esp_wrap_unit(wrap, i, end, column, &shown);
        bool space = breaks(wrap, at, i);
        if (column + shown.width > wrap->width && !space)
            return after_space > at ? after_space : i > at ? i : i + taken;
        column += shown.width;
        i += taken;
        if (space)
            after_space = i;
    }
    return end;
}

int esp_paragraph_height(const char *text, int width)
{
    struct esp_wrap wrap = {text, strlen(text), width > 0 ? width : 1, 0};
    int lines = 0;
    for (size_t at = 0; at < wrap.count; lines++)
        at = esp_wrap_line(&wrap, at, wrap.count);
    return lines;
}

int esp_draw_paragraph(struct esp_canvas *canvas, int y, int style, const char *text)
{
    int width = canvas->view.rect.width;
    struct esp_wrap wrap = {text, strlen(text), width > 0 ? width : 1,
                            canvas->ascii_text ? ESP_SAFE_ASCII : 0};
    for (size_t at = 0; at < wrap.count; y++) {
        size_t end = esp_wrap_line(&wrap, at, wrap.count);
        esp_drawf(canvas, 0, y, style, "%.*s", (int)(end - at), text + at);
        at = end;
    }
    return y;
}
