/* ansi.c - writes a canvas as escape sequences; see ansi.h. */
#include "tui/view/ansi.h"

#include <stdbool.h>
#include <string.h>

#include "engine/espalier.h"

static void put_colour(FILE *file, int32_t colour, int first)
{
    if (colour >= ESP_COLOUR_NAMED) {
        int named = colour - ESP_COLOUR_NAMED;
        fprintf(file, ";%d", first + (named < 8 ? named : named - 8 + 60));
    } else if (colour >= 0) {
        fprintf(file, ";%d;2;%d;%d;%d", first + 8, colour >> 16 & 255, colour >> 8 & 255,
                colour & 255);
    }
}

static void put_style(FILE *file, const struct esp_appearance *look)
{
    static const struct {
        int attribute;
        const char *code;
    } codes[] = {{ESP_BOLD, ";1"},
                 {ESP_DIM, ";2"},
                 {ESP_ITALIC, ";3"},
                 {ESP_UNDERLINE, ";4"},
                 {ESP_REVERSE, ";7"}};
    fputs("\033[0", file);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (look->attributes & codes[i].attribute)
            fputs(codes[i].code, file);
    put_colour(file, look->foreground, 30);
    put_colour(file, look->background, 40);
    putc('m', file);
}

/* Returns whether all terminals show the character one column wide. This holds up to U+02FF,
 * and from U+2000 to U+28FF (punctuation, arrows, frames, bars). */
static bool has_sure_width(const char *text)
{
    const unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    return first < 0xcc || (first == 0xe2 && second <= 0xa3);
}

/* Moves the cursor to column x of row y. If the cursor must skip only a few cells, all in the
 * current style, writes these cells again. That takes no more bytes than a cursor sequence. */
static void move_to(FILE *file, const struct esp_canvas *canvas, int from, int x, int y,
                    int style)
{
    enum { FEW = 6 };
    const struct esp_cell *row = &canvas->cells[(size_t)y * (size_t)canvas->width];
    bool few = from >= 0 && x - from <= FEW;
    for (int i = from; few && i < x; i++)
        few = row[i].style == style && row[i].width == 1 &&
              has_sure_width(esp_cell_text(canvas, &row[i]));
    if (!few)
        fprintf(file, "\033[%d;%dH", y + 1, x + 1);
    for (int i = from; few && i < x; i++)
        fputs(esp_cell_text(canvas, &row[i]), file);
}

int esp_ansi_update(FILE *file, struct esp_canvas *shown, const struct esp_canvas *canvas,
                    int rows, const struct esp_theme *theme)
{
    bool all = shown->width != canvas->width || shown->height != canvas->height;
    int style = -1;
    if (all && esp_canvas_resize(shown, canvas->width, canvas->height) < 0)
        return ESP_E_MEMORY;
    if (all) {
        put_style(file, &theme->style[ESP_STYLE_TEXT]);
        fputs("\033[H\033[2J", file);
        memset(shown->cells,
               0xff, /* no cell has these bytes, so all cells are drawn, even blank ones */
               (size_t)shown->width * (size_t)shown->height * sizeof *shown->cells);
    }
    for (int y = 0; y < rows && y < canvas->height; y++) {
        size_t row = (size_t)y * (size_t)canvas->width;
        int at = -1; /* column of the cursor if it is in this row, or -1 */
        for (int x = 0; x < canvas->width; x++) {
            const struct esp_cell *cell = &canvas->cells[row + (size_t)x];
            struct esp_cell *before = &shown->cells[row + (size_t)x];
            bool same = memcmp(cell, before, sizeof *cell) == 0;
            *before = *cell;
            if (same || cell->width == 0)
                continue;
            if (at != x)
                move_to(file, canvas, at, x, y, style);
            if (style != cell->style)
                put_style(file, &theme->style[cell->style]);
            const char *text = esp_cell_text(canvas, cell);
            fputs(text, file);
            style = cell->style;
            at = cell->width == 1 && has_sure_width(text) ? x + 1 : -1;
        }
    }
    return ESP_OK;
}
