/* layers.h - reconstructs the tree of an iteration after each of its draft passes.
 *
 * An iteration event contains the finished tree. Its nodes are in creation order, so the tree
 * after a pass consists of the first nodes. However, some nodes were different after that pass:
 * not expanded yet, not cut yet, or drawn fewer times. These differences are stored here. From
 * the iteration and the differences, each LAYER and STAGE event can be reconstructed exactly.
 */
#ifndef ESP_LAYERS_H
#define ESP_LAYERS_H

#include "engine/espalier.h"

/* Stores the fields of a node that drafting can change after it has added the node. */
struct esp_growth {
    int32_t copies;
    float confidence;
    bool cut;
    uint8_t reason;
};

/* Says that a node changed between the end of a draft pass and the end of the next pass. After
 * the last pass, it says that the node changed before the tree was finished. `was` is the state
 * of the node before the change. */
struct esp_change {
    int32_t node;
    struct esp_growth was;
};

/* Describes the tree at the end of a draft pass. */
struct esp_tree_layer {
    double time; /* time of the LAYER event */
    int nodes;   /* number of nodes in the tree */
    int passes;  /* number of draft passes so far */
    int changes; /* number of nodes that changed after this layer */
};

/* Stores all layers of an iteration's tree. A zero-initialised struct has no layers. */
struct esp_layers {
    struct esp_tree_layer *layers; /* (count) */
    int count, capacity;
    struct esp_change *changes; /* (change_count) the changes of all layers, in order */
    int change_count, change_capacity;
    struct esp_growth *last; /* (last_count) state of the nodes after the last pass */
    int last_count, last_capacity;
};

/* Call these functions while an iteration runs. First call esp_layers_begin(), then
 * esp_layers_note() for each LAYER event, and esp_layers_finish() for the finished iteration.
 * esp_layers_note() and esp_layers_finish() return 0 or ESP_E_MEMORY. */
void esp_layers_begin(struct esp_layers *layers);
int esp_layers_note(struct esp_layers *layers, const struct esp_event *event);
int esp_layers_finish(struct esp_layers *layers, const struct esp_iteration *it);
void esp_layers_free(struct esp_layers *layers);

/* esp_layers_add() appends a layer, and esp_layers_change() appends a change. Code that reads
 * files uses these functions. It must add the changes of a layer before the layer itself. Both
 * functions return 0 or ESP_E_MEMORY. */
int esp_layers_add(struct esp_layers *layers, struct esp_tree_layer layer);
int esp_layers_change(struct esp_layers *layers, struct esp_change change);

/* These functions turn a finished iteration back into its state after draft pass `layer`, or at
 * the end of `stage`. `it` must be a copy, because its nodes and gauges are changed. */
void esp_iteration_at_layer(struct esp_iteration *it, const struct esp_layers *layers,
                            int layer);
void esp_iteration_at_stage(struct esp_iteration *it, enum esp_stage stage);

#endif
