/* frame.h - a picture in the shape of the slide that it is for. */
#ifndef ESP_FRAME_H
#define ESP_FRAME_H

#include <gvc.h>
#include <stdbool.h>

/* Lays the graph out with dot. With an aspect (width by height; 0: none), its columns or rows
 * are moved apart as far as that still looks like one tree, and the page is made wider or
 * higher until it has exactly that shape, with the tree in its middle. Returns false if
 * Graphviz cannot lay it out. */
bool esp_frame_layout(GVC_t *context, Agraph_t *graph, double aspect);

#endif
