/* layers.h - the tree of an iteration after each of its draft passes.
 *
 * An iteration event holds the finished tree. Nodes are in creation order, so the tree after a
 * pass is a prefix of them. But some nodes were different then: not expanded yet, not cut yet,
 * drawn fewer times. The differences are stored here, so that each LAYER and STAGE event can be
 * reconstructed from the iteration, equal in every field.
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

/* A node that differs between the end of a pass and the end of the next one (for the last pass:
 * and the finished tree). */
struct esp_change {
    int32_t node;
    struct esp_growth was;
};

struct esp_tree_layer {
    double time; /* of its event */
    int nodes;   /* in the tree */
    int passes;  /* draft passes so far */
    int changes; /* end of its changes in `changes`; the next layer's start there */
};

/* Zeroed: no layers. */
struct esp_layers {
    struct esp_tree_layer *layers; /* (count) */
    int count, capacity;
    struct esp_change *changes; /* (change_count) */
    int change_count, change_capacity;
    struct esp_growth *last; /* (last_count) nodes after the last pass */
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

/* Afterwards: turns a copy of the finished iteration, with writable nodes and gauges, back into
 * its state after draft pass `layer`, or after the end of `stage`. */
void esp_iteration_at_layer(struct esp_iteration *it, const struct esp_layers *layers,
                            int layer);
void esp_iteration_at_stage(struct esp_iteration *it, enum esp_stage stage);

#endif
