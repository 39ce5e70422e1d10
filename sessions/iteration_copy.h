/* iteration_copy.h - stores a copy of an iteration in its own memory.
 *
 * The memory of an event is valid only during the observer's callback. Some code needs an
 * iteration later: the ring between engine thread and UI thread, and the list of past
 * iterations. Such code copies the iteration into this struct. The arrays never shrink, so a
 * copy that is not larger than an earlier copy needs no new memory.
 */
#ifndef ESP_ITERATION_COPY_H
#define ESP_ITERATION_COPY_H

#include "engine/espalier.h"

struct esp_iteration_copy {
    struct esp_iteration it; /* the iteration; its pointers point to the fields below */
    struct esp_node *nodes;
    int node_capacity;
    int32_t *ids; /* the arrays order, path and committed, one after the other */
    int id_capacity;
    struct esp_token_score *scores;
    int score_capacity;
    char drafter[256], verifier[256];
};

/* Makes room for a tree with `nodes` nodes and `ids` ids; there are at most three ids for each
 * node. A zero-initialised struct is an empty copy. Returns 0. If there is no memory, returns
 * ESP_E_MEMORY and changes nothing. */
int esp_iteration_reserve(struct esp_iteration_copy *copy, int nodes, int ids);
/* Makes room for the scores of `count` tokens. */
int esp_iteration_reserve_scores(struct esp_iteration_copy *copy, int count);
int esp_iteration_copy(struct esp_iteration_copy *copy, const struct esp_iteration *from);
/* Call this after moving the struct in memory, because its iteration points into the struct.
 */
void esp_iteration_moved(struct esp_iteration_copy *copy);
void esp_iteration_free(struct esp_iteration_copy *copy);

#endif
