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
 * The width of an edge is the draft's probability, the shade of a node the draft's confidence
 * there. Of a large tree the likeliest nodes are shown, and how many there are besides. Above
 * the tree stand what happened and with which settings, below it the legend. Nodes carry their
 * data as attributes too (token, text, q, p, confidence, verdict, reason), so that a DOT file
 * can be read by programs. The same iteration always gives the same graph.
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
    int most; /* nodes to show, if the accepted path allows it; 0: all, -1: as fit on a slide */
    int caption;   /* enum esp_caption */
    double aspect; /* width by height of what it is for; 0: as it comes */
};

/* The caller closes the graph with agclose(). NULL if there is no memory. */
Agraph_t *esp_picture(const struct esp_iteration *it, const struct esp_tokens *tokens,
                      const struct esp_picture_look *look);

/* caption.c: the two labels around the tree, in Graphviz's HTML-like form without the outer
 * angle brackets. The legend has only what the picture shows. No run of text begins with a
 * blank: some programs that draw SVG leave it out, and the run then touches the one before. */
void esp_picture_caption(FILE *file, const struct esp_iteration *it,
                         const struct esp_picture_look *look);
void esp_picture_legend(FILE *file, const struct esp_iteration *it,
                        const struct esp_picture_look *look);

#endif
