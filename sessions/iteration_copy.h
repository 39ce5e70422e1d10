/* iteration_copy.h - an iteration that owns its memory.
 *
 * The memory of an event is valid only during the observer's callback. Code that needs an
 * iteration later (the ring between engine thread and UI thread, the list of past iterations)
 * copies the iteration into this struct. Arrays never shrink, so a copy that is not larger than
 * an earlier one allocates nothing.
 */
#ifndef ESP_ITERATION_COPY_H
#define ESP_ITERATION_COPY_H

#include "engine/espalier.h"

struct esp_iteration_copy {
    struct esp_iteration it; /* the iteration; its pointers point to the fields below */
    struct esp_node *nodes;
    int node_capacity;
    int32_t *ids; /* order, path, committed */
    int id_capacity;
    struct esp_token_score *scores;
    int score_capacity;
    char drafter[256], verifier[256];
};

/* Makes room for a tree of `nodes` nodes, and for `ids` ids (at most three for each node). A
 * zero-initialised struct is an empty copy. Returns 0, or ESP_E_MEMORY and changes nothing. */
int esp_iteration_reserve(struct esp_iteration_copy *copy, int nodes, int ids);
/* Makes room for the scores of `count` tokens. */
int esp_iteration_reserve_scores(struct esp_iteration_copy *copy, int count);
int esp_iteration_copy(struct esp_iteration_copy *copy, const struct esp_iteration *from);
/* Call this after the struct was moved, because its iteration points to names in the struct.
 */
void esp_iteration_moved(struct esp_iteration_copy *copy);
void esp_iteration_free(struct esp_iteration_copy *copy);

#endif
