/* arrange.h - lays a tree out for a slide, with edges that fan out without touching a node. */
#ifndef ESP_ARRANGE_H
#define ESP_ARRANGE_H

#include <gvc.h>
#include <stdbool.h>

/* Lays the graph out with dot. If `aspect` (width divided by height) is not 0, it moves
 * columns or rows apart as long as they still look like one tree, then makes the page wider or
 * higher, so that it has exactly this aspect, with the tree in the middle. Returns false if
 * Graphviz fails. */
bool esp_arrange(GVC_t *context, Agraph_t *graph, double aspect);

/* Redraws the edges of a graph laid out with rankdir=LR, because Graphviz bends those of a
 * wide fan back and forth. An edge runs straight to the border of its column, in one even
 * curve through the gap between two columns, and straight on. Edges stay unchanged if memory
 * runs out. */
void esp_arrange_bend(Agraph_t *graph);

#endif
