/* layers.h - how the tree of an iteration grew: what it was after each of its draft passes.
 *
 * An iteration event holds the finished tree. Nodes are in creation order, so the tree after a
 * pass is the first so many of them; but some were different then: not expanded yet, not cut
 * yet, drawn fewer times. Those are noted here, so that each LAYER and STAGE event can be made
 * again from the iteration, equal in every field.
 */
#ifndef ESP_LAYERS_H
#define ESP_LAYERS_H

#include "engine/espalier.h"

/* What drafting may change in a node after it was added. */
struct esp_growth {
    int32_t copies;
    float confidence;
    uint8_t cut, reason;
};

/* A node that was different after a pass from what it was after the next one (after the last:
 * from what it is in the finished tree). */
struct esp_change {
    int32_t node;
    struct esp_growth was;
};

struct esp_tree_layer {
    double time; /* of its event */
    int nodes;   /* in the tree */
    int passes;  /* draft passes so far */
    int changes; /* of the nodes that are different; they end where the next layer's start */
};

/* Zeroed: no layers. */
struct esp_layers {
    struct esp_tree_layer *layers; /* (count) */
    int count, capacity;
    struct esp_change *changes; /* (change_count) */
    int change_count, change_capacity;
    struct esp_growth *last; /* (last_count) nodes as they were after the last pass */
    int last_count, last_capacity;
};

/* While an iteration runs: begin, then each LAYER event, then the finished iteration. Return 0
 * or ESP_E_MEMORY. */
void esp_layers_begin(struct esp_layers *layers);
int esp_layers_note(struct esp_layers *layers, const struct esp_event *event);
int esp_layers_finish(struct esp_layers *layers, const struct esp_iteration *it);
void esp_layers_free(struct esp_layers *layers);

/* Append a layer, or a change to the last one; for readers of files. */
int esp_layers_add(struct esp_layers *layers, struct esp_tree_layer layer);
int esp_layers_change(struct esp_layers *layers, struct esp_change change);

/* Afterwards: turns a copy of the finished iteration, whose nodes and gauges may be written,
 * into what it was after draft pass `layer`, or after `stage` had ended. */
void esp_iteration_at_layer(struct esp_iteration *it, const struct esp_layers *layers,
                            int layer);
void esp_iteration_at_stage(struct esp_iteration *it, enum esp_stage stage);

#endif
