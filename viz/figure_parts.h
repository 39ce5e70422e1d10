/* figure_parts.h - what the figures of figure.h have in common. */
#ifndef ESP_FIGURE_PARTS_H
#define ESP_FIGURE_PARTS_H

#include "viz/figure.h"

enum { FIGURE_EDGE = 14, FIGURE_TITLE = 14, FIGURE_LINE = 10, FIGURE_SMALL = 8 };

/* A title and a line of words at the top, unless the caption is none. Returns where what
 * follows may begin. */
double esp_figure_caption(const struct esp_figure *figure, struct esp_drawing *drawing,
                          const char *title, const char *words);

/* Small words: printf() with their place, in the colour of labels. */
void esp_figure_small(const struct esp_figure *figure, struct esp_drawing *drawing, double x,
                      double y, int anchor, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A token in at most `columns` cells; returns the cells it takes. */
int esp_figure_token(const struct esp_figure *figure, const struct esp_drawing *drawing,
                     int32_t token, char text[256], int columns);

/* A check mark, a cross or a plus whose lower left corner is at x, y; `size` wide and high. */
enum esp_mark { ESP_MARK_CHECK, ESP_MARK_CROSS, ESP_MARK_PLUS };
void esp_figure_mark(struct esp_drawing *drawing, int mark, const char *colour, double x,
                     double y, double size);

/* The tree, from x, y on. Makes the drawing as wide and high as it takes, with a legend if
 * there is a caption. Returns 0 or ESP_E_MEMORY. */
int esp_figure_tree(const struct esp_figure *figure, struct esp_drawing *drawing, double x,
                    double y, int most);

/* The figures. Return 0 or a negative status, some with a sentence. */
int esp_figure_of_tree(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                       size_t errlen);
int esp_figure_iteration(const struct esp_figure *figure, struct esp_drawing *drawing,
                         char *err, size_t errlen);
int esp_figure_mask(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                    size_t errlen);
int esp_figure_timeline(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                        size_t errlen);

#endif
