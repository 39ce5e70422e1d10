/* ansi.c - canvas to escape sequences; see ansi.h. */
#include "tui/view/ansi.h"

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

int esp_ansi_update(FILE *file, struct esp_canvas *shown, const struct esp_canvas *canvas,
                    int rows, const struct esp_theme *theme)
{
    bool all = shown->width != canvas->width || shown->height != canvas->height;
    int style = -1;
    if (all && esp_canvas_resize(shown, canvas->width, canvas->height) < 0)
        return ESP_E_MEMORY;
    if (all)
        fputs("\033[0m\033[H\033[2J", file);
    for (int y = 0; y < rows && y < canvas->height; y++) {
        size_t row = (size_t)y * (size_t)canvas->width;
        int at = -1; /* column of the cursor, if it is in this row */
        for (int x = 0; x < canvas->width; x++) {
            const struct esp_cell *cell = &canvas->cells[row + (size_t)x];
            struct esp_cell *before = &shown->cells[row + (size_t)x];
            bool same = memcmp(cell, before, sizeof *cell) == 0;
            *before = *cell;
            if (same || cell->width == 0)
                continue;
            if (at != x)
                fprintf(file, "\033[%d;%dH", y + 1, x + 1);
            if (style != cell->style)
                put_style(file, &theme->style[cell->style]);
            fputs(esp_cell_text(canvas, cell), file);
            style = cell->style;
            at = x + cell->width;
        }
    }
    return ESP_OK;
}
