/* picture.h - one iteration as a Graphviz graph that explains itself.
 *
 * The tree grows from left to right, so that a path reads like the text it stands for. Each
 * meaning is shown twice, once without colour:
 *
 *     accepted        thick coloured frame and edge, bold, check mark
 *     rejected        coloured frame, cross
 *     not visited     thin grey frame
 *     cut             dashed frame and edge, the reason
 *     from the target double frame, plus
 *
 * The width of an edge is the draft probability, the shade of a node the draft's confidence
 * there. A large tree is reduced to its likeliest nodes, with counts of the others. The caption
 * above the tree says what happened, with the settings; the legend is below. Nodes carry their
 * data as attributes too (token, text, q, p, confidence, verdict, reason), for programs that
 * read DOT files. The same iteration always gives the same graph.
 */
#ifndef ESP_PICTURE_H
#define ESP_PICTURE_H

#include <cgraph.h>

#include "viz/colours.h"
#include "viz/picture_options.h"
#include "viz/tree_view.h"

struct esp_picture_look {
    const struct esp_colours *colours;
    const char *models; /* for the caption, e.g. "target <- draft"; "": none */
    int most; /* nodes to show, if the accepted path allows it; 0: all, -1: what fits a slide */
    int caption;   /* enum esp_caption */
    double aspect; /* width by height; 0: that of the tree */
};

/* The caller closes the graph with agclose(). NULL if there is no memory. */
Agraph_t *esp_picture(const struct esp_iteration *it, const struct esp_tokens *tokens,
                      const struct esp_picture_look *look);

/* caption.c: the two labels around the tree, in Graphviz's HTML-like form without the outer
 * angle brackets. The legend explains only what the picture shows. No run of text begins with a
 * blank: some SVG renderers drop it, and the run then touches the previous one. */
void esp_picture_caption(FILE *file, const struct esp_iteration *it,
                         const struct esp_picture_look *look);
void esp_picture_legend(FILE *file, const struct esp_iteration *it,
                        const struct esp_picture_look *look);

#endif
