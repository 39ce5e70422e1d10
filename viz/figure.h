/* figure.h - draws figures of one iteration, for papers and slides.
 *
 *     mask        the tree attention mask: rows and columns in the order of the flattened tree,
 *                 the text before it, the blocks of 32 x 32 and how many of them are not empty
 *     timeline    the six stages on a time axis, each draft pass, and the time that plain
 *                 decoding takes for the same number of tokens
 *     iteration   the text before the iteration, the committed tokens, and the tree below them
 *     tree        the tree alone
 *
 * No meaning depends on colour alone.
 */
#ifndef ESP_FIGURE_H
#define ESP_FIGURE_H

#include "engine/espalier.h"
#include "viz/colours.h"
#include "viz/drawing.h"
#include "viz/picture_options.h"

/* X(identifier, name) */
#define ESP_FIGURES(X)                                                                         \
    X(MASK, "mask")                                                                            \
    X(TIMELINE, "timeline")                                                                    \
    X(ITERATION, "iteration")                                                                  \
    X(TREE, "tree")

enum esp_figure_kind {
    ESP_FIGURE_NONE,
#define X(name, text) ESP_FIGURE_##name,
    ESP_FIGURES(X)
#undef X
        ESP_FIGURE_KINDS
};

/* Returns the kind of figure with this name, or -1. */
int esp_figure_find(const char *name);

struct esp_figure {
    int kind;
    const struct esp_iteration *iteration;
    struct esp_tokens tokens;
    const int32_t *text; /* (text_count) tokens before the iteration */
    int text_count;
    /* (pass_count) the end of each draft pass, in seconds since the iteration began. */
    const double *passes;
    int pass_count;
    const char *order; /* order of the mask's rows, such as "bfs"; NULL means unknown */
    const struct esp_colours *colours;
    int caption; /* enum esp_caption */
    int nodes;   /* maximum number of nodes in a tree; 0: all, -1: as many as stay legible */
};

/* Fills an empty drawing. The caller must have set its member `latex`. Returns 0, or a negative
 * status with a message in err, for example if there is nothing to draw. */
int esp_figure_draw(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                    size_t errlen);

#endif
