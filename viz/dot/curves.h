/* curves.h - edges that fan out without touching a node.
 *
 * Graphviz bends the edges of a wide fan back and forth. In a tree that grows to the right
 * every edge leads through the gap between two columns, so here it goes straight to the edge of
 * its column, in one even curve through the gap, and straight on.
 */
#ifndef ESP_CURVES_H
#define ESP_CURVES_H

#include <gvc.h>

/* Bends the edges of a graph that is laid out with rankdir=LR. Without memory for that,
 * edges stay as they are. */
void esp_curves_bend(Agraph_t *graph);

#endif
