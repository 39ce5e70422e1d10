/* arrange.h - lays a tree out for a slide, with edges that fan out without touching a node. */
#ifndef ESP_ARRANGE_H
#define ESP_ARRANGE_H

#include <gvc.h>
#include <stdbool.h>

/* Lays the graph out with dot. With an aspect (width by height; 0: none), it moves columns or
 * rows apart as far as they still look like one tree, then widens or heightens the page to
 * exactly that shape, with the tree in the middle. Returns false if Graphviz fails. */
bool esp_arrange(GVC_t *context, Agraph_t *graph, double aspect);

/* Bends the edges of a graph laid out with rankdir=LR. Graphviz bends those of a wide fan back
 * and forth; here an edge runs straight to the border of its column, in one even curve through
 * the gap between two columns, and straight on. Leaves them unchanged if memory runs out. */
void esp_arrange_bend(Agraph_t *graph);

#endif
