/* drawing.h - a figure of lines, shapes and texts, as SVG or as TikZ.
 *
 * Every shape is written at once, by drawing_svg.c or drawing_tikz.c. (PNG and PDF come from
 * the SVG, by espalier-dot.) Lengths are in points, from the top left. Colours are
 * "#rrggbb".
 *
 * Texts may hold anything: what a file of that kind must not hold gets a visible stand-in
 * (safe.h). Text in `mono` has cells of equal width, so that its width is known: in SVG as in
 * LaTeX, whichever font there is.
 */
#ifndef ESP_DRAWING_H
#define ESP_DRAWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum esp_anchor { ESP_ANCHOR_START, ESP_ANCHOR_MIDDLE, ESP_ANCHOR_END };
enum {
    ESP_TEXT_BOLD = 1,
    ESP_TEXT_MONO = 2,
    ESP_TEXT_UPWARDS = 4 /* runs from below to above */
};

/* The width of a cell of mono by the size of the text; fonts differ. */
#define ESP_MONO_CELL 0.602

/* How a shape is filled and outlined. */
struct esp_pen {
    const char *fill;   /* NULL: not */
    const char *stroke; /* NULL: no line */
    double width;       /* of the line; 0: 1 */
    const char *dashes; /* lengths on and off, as "6 4"; NULL: one line */
    const char *kind;   /* what the shape means, as a class in SVG; NULL: nothing */
};

static inline double esp_pen_width(const struct esp_pen *pen)
{
    return pen->width > 0 ? pen->width : 1;
}

/* Zeroed: an empty SVG. The background is set before the first shape, the size at last. */
struct esp_drawing {
    double width, height;
    const char *background;
    char title[128]; /* what the file is, in a word or two */
    bool latex;      /* it becomes TikZ: texts hold what LaTeX can print */
    FILE *body;      /* the shapes so far, in `bytes`; NULL: none */
    char *bytes;
    size_t length;
    bool failed;         /* there was no memory; what was added since is not there */
    char defined[64][8]; /* TikZ: the colours that were defined last */
    size_t defined_count;
};

void esp_drawing_free(struct esp_drawing *drawing);

/* A line through `count` points, (count, 2) x and y. */
void esp_drawing_path(struct esp_drawing *drawing, const struct esp_pen *pen,
                      const double *points, int count, bool closed);
void esp_drawing_line(struct esp_drawing *drawing, const struct esp_pen *pen, double x1,
                      double y1, double x2, double y2);
void esp_drawing_rect(struct esp_drawing *drawing, const struct esp_pen *pen, double x,
                      double y, double width, double height, double round);
void esp_drawing_circle(struct esp_drawing *drawing, const struct esp_pen *pen, double x,
                        double y, double radius);
/* A text whose baseline starts, has its middle or ends at x, y. */
void esp_drawing_text(struct esp_drawing *drawing, double x, double y, int size, int anchor,
                      int flags, const char *colour, const char *text);

/* How wide a text is: exactly in mono, else at most about so. */
double esp_drawing_width(const char *text, int size, int flags);
/* Writes as much of the bytes as fit into `columns` cells of mono, then "..." if that is not
 * all. Blanks are visible, and what the drawing's files cannot show has a stand-in. Returns the
 * cells it takes. */
int esp_drawing_cells(const struct esp_drawing *drawing, char *text, size_t size,
                      const char *bytes, size_t length, int columns);

/* A kind of file: what stands before the shapes, each shape, and what stands after them. */
struct esp_drawing_backend {
    void (*begin)(const struct esp_drawing *drawing, FILE *file);
    void (*path)(struct esp_drawing *drawing, const struct esp_pen *pen, const double *points,
                 int count, bool closed);
    void (*rect)(struct esp_drawing *drawing, const struct esp_pen *pen, double x, double y,
                 double width, double height, double round);
    void (*circle)(struct esp_drawing *drawing, const struct esp_pen *pen, double x, double y,
                   double radius);
    void (*text)(struct esp_drawing *drawing, double x, double y, double width, int size,
                 int anchor, int flags, const char *colour, const char *text);
    const char *end;
};

/* TikZ is for \input in a document that loads tikz and is made by pdflatex. */
extern const struct esp_drawing_backend esp_drawing_svg, esp_drawing_tikz;

/* Whether LaTeX prints a character (of Unicode) as it is. */
bool esp_latex_prints(int character);

/* The whole file in memory; the caller frees *bytes. Returns 0 or ESP_E_MEMORY. */
int esp_drawing_write(const struct esp_drawing *drawing, char **bytes, size_t *length);

#endif
