/* canvas.h - a grid of cells that everything is drawn into.
 *
 * Drawing never touches a terminal: it fills a canvas, and the canvas is then shown with
 * ncurses, dumped as text, or compared with a golden screen. Coordinates are those of the
 * current view, a rectangle of the canvas; what falls outside it is dropped, so drawing code
 * need not check sizes. All text passes through safe.h. Frames are drawn as lines
 * that join where they meet.
 */
#ifndef ESP_CANVAS_H
#define ESP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "viz/glyphs.h"
#include "viz/style.h"

struct esp_rect {
    int x, y, width, height;
};

struct esp_cell {
    char text[21]; /* one character with its combining marks; "" right of a wide one */
    uint8_t width; /* 1, 2, or 0 right of a wide one */
    uint8_t style; /* enum esp_style */
    uint8_t lines; /* ESP_LINE_*: where not 0, a piece of frame and text is "" */
};

struct esp_view {
    struct esp_rect rect; /* origin and nominal size */
    struct esp_rect clip; /* the part of it that lies on the canvas */
};

struct esp_canvas {
    int width, height;
    struct esp_cell *cells; /* (height, width) */
    size_t capacity;
    struct esp_view view;
    int cursor_x, cursor_y; /* of the canvas; -1: hidden. Set by what draws an input line. */
    const struct esp_glyphs *glyphs;
    bool ascii_text; /* the terminal cannot show characters beyond ASCII */
};

/* An empty canvas with the full glyph set. Returns ESP_E_MEMORY or 0. */
int esp_canvas_open(struct esp_canvas *canvas, int width, int height);
void esp_canvas_close(struct esp_canvas *canvas);
/* Changes the size and clears. On failure the canvas keeps its old size. */
int esp_canvas_resize(struct esp_canvas *canvas, int width, int height);
void esp_canvas_clear(struct esp_canvas *canvas);

/* Makes `rect` (in coordinates of the current view) the view; returns what leave() needs. */
struct esp_view esp_canvas_enter(struct esp_canvas *canvas, struct esp_rect rect);
void esp_canvas_leave(struct esp_canvas *canvas, struct esp_view previous);

/* Draw from column x on and return the column after the last one drawn. Text may hold any
 * bytes. esp_draw_bytes draws at most `room` columns and ends a text that does not fit with an
 * ellipsis; flags are those of safe.h. */
int esp_draw(struct esp_canvas *canvas, int x, int y, int style, const char *text);
int esp_drawf(struct esp_canvas *canvas, int x, int y, int style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int esp_draw_bytes(struct esp_canvas *canvas, int x, int y, int room, int style, int flags,
                   const char *bytes, size_t length);
/* Draws text so that it ends before column `end`; returns where it starts. */
int esp_draw_right(struct esp_canvas *canvas, int end, int y, int style, const char *text);
/* `count` times the same glyph. */
int esp_draw_repeat(struct esp_canvas *canvas, int x, int y, int count, int style,
                    const char *glyph);

void esp_draw_fill(struct esp_canvas *canvas, struct esp_rect rect, int style);
/* A frame along the inside of the rectangle; joins frames already there. */
void esp_draw_frame(struct esp_canvas *canvas, struct esp_rect rect, int style);
/* Gives what is drawn there another style. */
void esp_draw_restyle(struct esp_canvas *canvas, struct esp_rect rect, int style);

/* What to show for a cell; never NULL. */
const char *esp_cell_text(const struct esp_canvas *canvas, const struct esp_cell *cell);

/* Writes the rows as lines of text, blanks at their ends dropped. With `styles`, writes instead
 * one letter per cell for its style (a..z, A.. in the order of style.h, '.' for plain text). */
void esp_canvas_dump(const struct esp_canvas *canvas, FILE *file, bool styles);

#endif
