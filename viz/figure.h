/* figure.h - figures of one iteration, for papers and slides: filled into a drawing.
 *
 *     mask        the tree attention mask: rows and columns as the tree was flattened, the text
 *                 before it, the blocks of 32 x 32 and how many of them are not empty
 *     timeline    the six stages along the time, draft passes one by one, and plain decoding of
 *                 as many tokens
 *     iteration   the text around with what was accepted, and the tree below
 *     tree        the tree alone
 *
 * Nothing is told by colour alone.
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

/* The figure of this name, or -1. */
int esp_figure_find(const char *name);

struct esp_figure {
    int kind;
    const struct esp_iteration *iteration;
    struct esp_tokens tokens;
    const int32_t *text; /* (text_count) tokens before the iteration */
    int text_count;
    const double *passes; /* (pass_count) when each draft pass ended, in seconds since the */
    int pass_count;       /* iteration began */
    const char *order;    /* of the mask's rows: "bfs"; NULL: not known */
    const struct esp_colours *colours;
    int caption; /* enum esp_caption */
    int nodes;   /* of a tree at most; 0: all, -1: as can be read */
};

/* Fills an empty drawing, whose `latex` says what it is for. Returns 0, or a negative status
 * with a sentence, as when there is nothing to draw. */
int esp_figure_draw(const struct esp_figure *figure, struct esp_drawing *drawing, char *err,
                    size_t errlen);

#endif
