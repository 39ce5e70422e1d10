/* arrange.h - lays a tree out for a slide, with edges that fan out without touching a node. */
#ifndef ESP_ARRANGE_H
#define ESP_ARRANGE_H

#include <gvc.h>
#include <stdbool.h>

/* Lays the graph out with dot. If `aspect` (width divided by height) is not 0, moves columns or
 * rows apart, but only so far that they still look like one tree. Then makes the page wider or
 * higher, so that it has exactly this aspect ratio, with the tree in the middle. Returns false
 * if Graphviz fails. */
bool esp_arrange(GVC_t *context, Agraph_t *graph, double aspect);

/* Redraws the edges of a graph that was laid out with rankdir=LR. Graphviz bends the edges of a
 * node with many children back and forth. A redrawn edge runs straight to the border of its
 * column, then in one even curve through the gap between two columns, and then straight again.
 * If memory runs out, edges stay unchanged. */
void esp_arrange_bend(Agraph_t *graph);

#endif
