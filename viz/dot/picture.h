/* picture.h - makes a Graphviz graph of one iteration that explains itself.
 *
 * The tree grows from left to right, so that a path can be read like text. Each verdict is
 * shown in several ways, so that it can be seen without colour:
 *
 *     accepted        thick coloured frame and edge, bold, check mark
 *     rejected        coloured frame, cross
 *     not visited     thin grey frame
 *     cut             dashed frame and edge, the reason
 *     from the target double frame, plus
 *
 * The width of an edge is the draft probability; the shade of a node is the draft's confidence
 * at that node. A large tree is reduced to its likeliest nodes, and fold nodes say how many are
 * hidden. The caption above the tree says what happened and with which settings. The legend is
 * below the tree. Nodes also have their data as attributes (token, text, q, p, confidence,
 * verdict, reason), for programs that read DOT files. The same iteration always gives the same
 * graph.
 */
#ifndef ESP_PICTURE_H
#define ESP_PICTURE_H

#include <cgraph.h>

#include "viz/colours.h"
#include "viz/picture_options.h"
#include "viz/tree_view.h"

struct esp_picture_look {
    const struct esp_colours *colours;
    const char *models; /* for the caption, such as "target <- draft"; "" if none */
    /* Maximum number of nodes to show. The accepted path may need more. 0: all nodes; -1: as
     * many as fit on a slide. */
    int most;
    int caption;   /* enum esp_caption */
    double aspect; /* width divided by height; 0: chosen to fit the tree */
};

/* Makes the graph; the caller closes it with agclose(). Returns NULL if there is no memory. */
Agraph_t *esp_picture(const struct esp_iteration *it, const struct esp_tokens *tokens,
                      const struct esp_picture_look *look);

/* These functions write the labels above and below the tree, in Graphviz's HTML-like form
 * without the outer angle brackets (caption.c). The legend explains only what the picture
 * shows. No run of text begins with a blank, because some SVG renderers drop the blank. The run
 * would then touch the text before it. */
void esp_picture_caption(FILE *file, const struct esp_iteration *it,
                         const struct esp_picture_look *look);
void esp_picture_legend(FILE *file, const struct esp_iteration *it,
                        const struct esp_picture_look *look);

#endif
