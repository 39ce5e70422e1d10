/* canvas.h - declares a grid of cells to draw into.
 *
 * Drawing functions never touch a terminal. They fill a canvas. Afterwards the canvas is shown
 * with ncurses, dumped as text, or compared with a golden screen. Coordinates are relative to
 * the current view, a rectangle of the canvas. Everything outside the view is clipped, so
 * drawing code does not have to check sizes. All text passes through safe.h. Frames join where
 * they meet.
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
    char text[21]; /* a character with its combining marks; "" in the cell after a wide one */
    uint8_t width; /* columns that the character takes: 1 or 2; 0 in the cell after a wide one */
    uint8_t style; /* enum esp_style */
    uint8_t lines; /* ESP_LINE_* flags of a piece of a frame (text is then ""); 0: no frame */
};

struct esp_view {
    struct esp_rect rect; /* origin and nominal size */
    struct esp_rect clip; /* the part of rect that is on the canvas */
};

struct esp_canvas {
    int width, height;
    struct esp_cell *cells; /* (height, width) */
    size_t capacity;
    struct esp_view view;
    int cursor_x, cursor_y; /* the terminal's cursor, set by the input line; -1: hidden */
    const struct esp_glyphs *glyphs;
    bool ascii_text; /* the terminal cannot show characters beyond ASCII */
};

/* Makes an empty canvas with the full glyph set. Returns 0 or ESP_E_MEMORY. */
int esp_canvas_open(struct esp_canvas *canvas, int width, int height);
void esp_canvas_close(struct esp_canvas *canvas);
/* Changes the size and clears the canvas. Returns 0 or ESP_E_MEMORY; after a failure the size
 * is unchanged. */
int esp_canvas_resize(struct esp_canvas *canvas, int width, int height);
void esp_canvas_clear(struct esp_canvas *canvas);

/* Makes `rect` the current view. `rect` is relative to the view before. Returns the view
 * before, for esp_canvas_leave(). */
struct esp_view esp_canvas_enter(struct esp_canvas *canvas, struct esp_rect rect);
void esp_canvas_leave(struct esp_canvas *canvas, struct esp_view previous);

/* These functions draw text that begins in column x. They return the column after the text. The
 * text may contain any bytes. esp_draw_bytes() draws at most `room` columns, with an ellipsis
 * if the text does not fit. `flags` are ESP_SAFE_* of safe.h. */
int esp_draw(struct esp_canvas *canvas, int x, int y, int style, const char *text);
int esp_drawf(struct esp_canvas *canvas, int x, int y, int style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int esp_draw_bytes(struct esp_canvas *canvas, int x, int y, int room, int style, int flags,
                   const char *bytes, size_t length);
/* Draws text so that it ends before column `end`; returns the column where it starts. */
int esp_draw_right(struct esp_canvas *canvas, int end, int y, int style, const char *text);
/* Draws a glyph `count` times. Returns the column after the last drawn column. */
int esp_draw_repeat(struct esp_canvas *canvas, int x, int y, int count, int style,
                    const char *glyph);

void esp_draw_fill(struct esp_canvas *canvas, struct esp_rect rect, int style);
/* Draws a frame along the inside of the rectangle, and joins it to existing frames. */
void esp_draw_frame(struct esp_canvas *canvas, struct esp_rect rect, int style);
/* Changes the style of existing cells. */
void esp_draw_restyle(struct esp_canvas *canvas, struct esp_rect rect, int style);

/* Returns the text that a cell shows; never NULL. */
const char *esp_cell_text(const struct esp_canvas *canvas, const struct esp_cell *cell);

/* Writes the rows as lines of text without trailing blanks. If `styles` is true, writes a
 * letter for the style of each cell instead. The letters are a..z, A.. in the order of style.h,
 * and '.' for plain text. */
void esp_canvas_dump(const struct esp_canvas *canvas, FILE *file, bool styles);

#endif
