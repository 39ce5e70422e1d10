/* curves.h - edges that fan out without touching a node.
 *
 * Graphviz bends the edges of a wide fan back and forth. In a tree that grows to the right,
 * every edge crosses one gap between two columns. So here it runs straight to the border of its
 * column, in one even curve through the gap, and straight on.
 */
#ifndef ESP_CURVES_H
#define ESP_CURVES_H

#include <gvc.h>

/* Bends the edges of a graph laid out with rankdir=LR. Leaves them unchanged if memory runs
 * out. */
void esp_curves_bend(Agraph_t *graph);

#endif
