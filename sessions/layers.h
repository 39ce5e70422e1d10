/* layers.h - reconstructs the tree of an iteration after each of its draft passes.
 *
 * An iteration event contains the finished tree. Nodes are in creation order, so the tree
 * after a pass is a prefix of them. But some nodes were different after that pass: not
 * expanded yet, not cut yet, drawn fewer times. The differences are stored here, so that each
 * LAYER and STAGE event can be reconstructed from the iteration, equal in every field.
 */
#ifndef ESP_LAYERS_H
#define ESP_LAYERS_H

#include "engine/espalier.h"

/* The fields of a node that drafting may change after adding it. */
struct esp_growth {
    int32_t copies;
    float confidence;
    bool cut;
    uint8_t reason;
};

/* A node that changed between the end of a pass and the end of the next one (after the last
 * pass: between its end and the finished tree). */
struct esp_change {
    int32_t node;
    struct esp_growth was;
};

struct esp_tree_layer {
    double time; /* time of the LAYER event */
    int nodes;   /* number of nodes in the tree */
    int passes;  /* number of draft passes so far */
    int changes; /* number of nodes that changed after this layer */
};

/* A zero-initialised struct has no layers. */
struct esp_layers {
    struct esp_tree_layer *layers; /* (count) */
    int count, capacity;
    struct esp_change *changes; /* (change_count) of all layers, in their order */
    int change_count, change_capacity;
    struct esp_growth *last; /* (last_count) state of the nodes after the last pass */
    int last_count, last_capacity;
};

/* Call these while an iteration runs: esp_layers_begin() first, esp_layers_note() with each
 * LAYER event, esp_layers_finish() with the finished iteration. The last two return 0 or
 * ESP_E_MEMORY. */
void esp_layers_begin(struct esp_layers *layers);
int esp_layers_note(struct esp_layers *layers, const struct esp_event *event);
int esp_layers_finish(struct esp_layers *layers, const struct esp_iteration *it);
void esp_layers_free(struct esp_layers *layers);

/* The first function appends a layer, the second a change. They are for readers of files, which
 * add the changes of a layer before the layer. Both return 0 or ESP_E_MEMORY. */
int esp_layers_add(struct esp_layers *layers, struct esp_tree_layer layer);
int esp_layers_change(struct esp_layers *layers, struct esp_change change);

/* These turn a copy of the finished iteration, with writable nodes and gauges, back into its
 * state after draft pass `layer`, or at the end of `stage`. */
void esp_iteration_at_layer(struct esp_iteration *it, const struct esp_layers *layers,
                            int layer);
void esp_iteration_at_stage(struct esp_iteration *it, enum esp_stage stage);

#endif
