/* drawing_backend.h - what the file formats of a drawing (drawing_svg.c, drawing_tikz.c) have in
 * common. Other files include drawing.h.
 */
#ifndef ESP_DRAWING_BACKEND_H
#define ESP_DRAWING_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum esp_anchor { ESP_ANCHOR_START, ESP_ANCHOR_MIDDLE, ESP_ANCHOR_END };
enum {
    ESP_TEXT_BOLD = 1,
    ESP_TEXT_MONO = 2,
    ESP_TEXT_UPWARDS = 4 /* the text runs from bottom to top */
};

/* Width of a monospace cell relative to the font size; it varies a little between fonts. */
#define ESP_MONO_CELL 0.602

/* Describes how a shape is filled and outlined. */
struct esp_pen {
    const char *fill;   /* colour; NULL means not filled */
    const char *stroke; /* colour of the line; NULL means no line */
    double width;       /* width of the line; 0 means 1 */
    const char *dashes; /* lengths of dashes and gaps, such as "6 4"; NULL: solid line */
    const char *kind;   /* class in SVG, which says what the shape means; NULL: no class */
};

static inline double esp_pen_width(const struct esp_pen *pen)
{
    return pen->width > 0 ? pen->width : 1;
}

/* A zero-initialised struct is an empty SVG. Set the background before the first shape, and
 * the size at the end. */
struct esp_drawing {
    double width, height;
    const char *background;
    char title[128]; /* a short title of the file */
    bool latex;      /* the file is TikZ, so texts are limited to what LaTeX can print */
    FILE *body;      /* writes the shapes so far to `bytes`; NULL if there are none */
    char *bytes;
    size_t length;
    bool failed;         /* memory ran out; shapes added since then are missing */
    char defined[64][8]; /* TikZ: the most recently defined colours */
    size_t defined_count;
};

/* The operations of a file format. The functions write the beginning of the file and each kind
 * of shape. The last member is the text at the end of the file. */
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

/* A TikZ file is read with \input by a document that loads tikz and is typeset by pdflatex. */
extern const struct esp_drawing_backend esp_drawing_svg, esp_drawing_tikz;

/* Returns whether LaTeX can print this Unicode character. */
bool esp_latex_prints(int character);

#endif
