/* drawing.h - a figure as a list of lines, shapes and texts, and the files that it becomes.
 *
 * A figure is drawn once; drawing_svg.c and drawing_tikz.c write the list. (PNG and PDF come
 * from the SVG, by espalier-dot.) Lengths are in points, from the top left. Colours are
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

/* How a shape is filled and outlined. */
struct esp_pen {
    const char *fill;   /* NULL: not */
    const char *stroke; /* NULL: no line */
    double width;       /* of the line; 0: 1 */
    const char *dashes; /* lengths on and off, as "6 4"; NULL: one line */
    const char *kind;   /* what the shape means, as a class in SVG; NULL: nothing */
};

struct esp_drawing_shape {
    enum { ESP_SHAPE_PATH, ESP_SHAPE_RECT, ESP_SHAPE_CIRCLE, ESP_SHAPE_TEXT } type;
    char fill[8], stroke[8]; /* "": not */
    double line;             /* width of the line */
    const char *dashes, *kind;
    double x, y;          /* of a rectangle's corner, a circle's middle, a text's baseline */
    double width, height; /* of a rectangle; of a circle, its radius; of text in mono */
    double round;         /* radius of a rectangle's corners */
    size_t start, count;  /* of a path's points, or of a text's bytes */
    bool closed;          /* path */
    int size, anchor, flags;
};

/* Zeroed: empty. Colours and texts are copied, dashes and kinds are static text. */
struct esp_drawing {
    double width, height;
    const char *background;
    char title[128];                  /* what the file is, in a word or two */
    bool latex;                       /* is to become TikZ: texts hold what LaTeX can print */
    struct esp_drawing_shape *shapes; /* (count) in the order in which they are drawn */
    size_t count, capacity;
    double *points; /* (2 * point_count) x, y */
    size_t point_count, point_capacity;
    char *bytes; /* (byte_count) of texts, each with its NUL */
    size_t byte_count, byte_capacity;
    bool failed; /* there was no memory; what was added since is not there */
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

enum esp_drawing_format { ESP_DRAWING_SVG, ESP_DRAWING_TIKZ };

void esp_drawing_svg(const struct esp_drawing *drawing, FILE *file);
/* For \input in a document that loads tikz and is made by pdflatex. */
void esp_drawing_tikz(const struct esp_drawing *drawing, FILE *file);
/* Whether LaTeX prints a character (of Unicode) as it is. */
bool esp_latex_prints(int character);

/* The whole file in memory; the caller frees *bytes. Returns 0 or ESP_E_MEMORY. */
int esp_drawing_write(const struct esp_drawing *drawing, int format, char **bytes,
                      size_t *length);

#endif
