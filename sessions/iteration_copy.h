/* iteration_copy.h - an iteration that owns what it points to.
 *
 * What an event points to is valid only during the callback. Code that needs an
 * iteration later (the ring between the engine's thread and the screen, the list of past
 * iterations) copies it here. The arrays only grow, so copying into the same place again
 * allocates nothing.
 */
#ifndef ESP_ITERATION_COPY_H
#define ESP_ITERATION_COPY_H

#include "engine/espalier.h"

struct esp_iteration_copy {
    struct esp_iteration it; /* its pointers lead into the fields below */
    struct esp_node *nodes;
    int node_capacity;
    int32_t *ids; /* order, path, committed */
    int id_capacity;
    char drafter[256], verifier[256];
};

/* Makes room for a tree of `nodes` nodes. A zeroed struct is an empty copy. Returns 0 or
 * ESP_E_MEMORY; then the copy is as before. */
int esp_iteration_reserve(struct esp_iteration_copy *copy, int nodes);
int esp_iteration_copy(struct esp_iteration_copy *copy, const struct esp_iteration *from);
/* Call it after the struct was assigned to another place: its iteration points to names that
 * lie in the struct itself. */
void esp_iteration_moved(struct esp_iteration_copy *copy);
void esp_iteration_free(struct esp_iteration_copy *copy);

#endif
