/* drawing.h - writes figures of lines, shapes and texts as SVG or TikZ.
 *
 * Every shape is written as soon as it is drawn, by drawing_svg.c or drawing_tikz.c.
 * espalier-dot converts the SVG to PNG and PDF. Coordinates are in points, from the top left
 * corner. Colours are "#rrggbb".
 *
 * Texts may contain any bytes. Bytes that the file format cannot contain are replaced by a
 * visible stand-in (safe.h). Monospace text is set in cells of equal width, so its width is
 * known, both in SVG and in LaTeX, with any font.
 */
#ifndef ESP_DRAWING_H
#define ESP_DRAWING_H

#include "viz/drawing_backend.h"

void esp_drawing_free(struct esp_drawing *drawing);

/* Draws a line through `count` points; `points` is (count, 2): x and y of each point. */
void esp_drawing_path(struct esp_drawing *drawing, const struct esp_pen *pen,
                      const double *points, int count, bool closed);
void esp_drawing_line(struct esp_drawing *drawing, const struct esp_pen *pen, double x1,
                      double y1, double x2, double y2);
void esp_drawing_rect(struct esp_drawing *drawing, const struct esp_pen *pen, double x,
                      double y, double width, double height, double round);
void esp_drawing_circle(struct esp_drawing *drawing, const struct esp_pen *pen, double x,
                        double y, double radius);
/* Draws a text. `anchor` says whether the start, the middle or the end of its baseline is at
 * (x, y). */
void esp_drawing_text(struct esp_drawing *drawing, double x, double y, int size, int anchor,
                      int flags, const char *colour, const char *text);

/* Returns the width of a text: exact for monospace text, otherwise a generous estimate. */
double esp_drawing_width(const char *text, int size, int flags);
/* Copies as many of the bytes to `text` as fit into `columns` monospace cells. Appends an
 * ellipsis if some do not fit. Blanks are made visible, and characters that the file format
 * cannot show are replaced by a stand-in. Returns the number of cells that the text takes. */
int esp_drawing_cells(const struct esp_drawing *drawing, char *text, size_t size,
                      const char *bytes, size_t length, int columns);

/* Writes the whole file to memory; the caller frees *bytes. Returns 0 or ESP_E_MEMORY. */
int esp_drawing_write(const struct esp_drawing *drawing, char **bytes, size_t *length);

#endif
