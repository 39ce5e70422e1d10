/* figure_parts.h - declares what the figures of figure.h share. */
#ifndef ESP_FIGURE_PARTS_H
#define ESP_FIGURE_PARTS_H

#include "viz/figure.h"

enum { FIGURE_EDGE = 14, FIGURE_TITLE = 14, FIGURE_LINE = 10, FIGURE_SMALL = 8 };

/* Draws a title and a line of text at the top, unless the caption is ESP_CAPTION_NONE. Returns
 * the y below them. */
double esp_figure_caption(const struct esp_figure *figure, struct esp_drawing *drawing,
                          const char *title, const char *words);

/* Draws small text in the colour of labels. The arguments are the same as for printf(). */
void esp_figure_small(const struct esp_figure *figure, struct esp_drawing *drawing, double x,
                      double y, int anchor, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Writes the text of a token, shortened to `columns` cells. Returns how many cells it takes. */
int esp_figure_token(const struct esp_figure *figure, const struct esp_drawing *drawing,
                     int32_t token, char text[256], int columns);

/* Draws a check mark, a cross or a plus whose lower left corner is at (x, y); `size` is its
 * width and height. */
enum esp_mark { ESP_MARK_CHECK, ESP_MARK_CROSS, ESP_MARK_PLUS };
void esp_figure_mark(struct esp_drawing *drawing, int mark, const char *colour, double x,
                     double y, double size);

/* Draws the tree with its top left corner at (x, y). Draws at most `most` nodes, and a legend
 * if there is a caption. Sets the drawing's width and height. Returns 0 or ESP_E_MEMORY. */
int esp_figure_tree(const struct esp_figure *figure, struct esp_drawing *drawing, double x,
                    double y, int most);

/* These functions draw the figures. They return 0 or a negative status. Some of them write no
 * message to err. */
int esp_figure_of_tree(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                       size_t errlen);
int esp_figure_iteration(const struct esp_figure *figure, struct esp_drawing *drawing,
                         char *err, size_t errlen);
int esp_figure_mask(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                    size_t errlen);
int esp_figure_timeline(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                        size_t errlen);

#endif
