/* frame.h - fits a picture to the shape of a slide. */
#ifndef ESP_FRAME_H
#define ESP_FRAME_H

#include <gvc.h>
#include <stdbool.h>

/* Lays the graph out with dot. With an aspect (width by height; 0: none), it moves columns or
 * rows apart as far as they still look like one tree, then widens or heightens the page to
 * exactly that shape, with the tree in the middle. Returns false if Graphviz fails. */
bool esp_frame_layout(GVC_t *context, Agraph_t *graph, double aspect);

#endif
