/* best_shape.h - computes the tree shape with the most expected tokens, if each rank has a
 * fixed acceptance rate.
 *
 * Assume that the k-th child of an accepted node is accepted with probability rate[k], at any
 * depth. Then the expected number of tokens of a tree is a sum over its nodes: each node adds
 * the product of the rates along its path (the root adds 1, for the bonus token). A dynamic
 * program finds the best shape of at most n nodes under a depth limit (Sequoia, Chen et al.
 * 2024, sec. 3.1).
 */
#ifndef ESP_BEST_SHAPE_H
#define ESP_BEST_SHAPE_H

#include "engine/espalier.h"

/* ESP_SHAPE_RANKS: maximum number of children of a node; ESP_SHAPE_DEPTH: maximum depth. */
enum { ESP_SHAPE_RANKS = 16, ESP_SHAPE_DEPTH = 24 };

/* A tree in breadth-first order. Node 0 is the root; the children of a node are consecutive.
 */
struct esp_shape {
    int nodes; /* root included */
    int first_child[ESP_MAX_NODES + 1], children[ESP_MAX_NODES + 1], depth[ESP_MAX_NODES + 1];
    int size[ESP_MAX_NODES + 1]; /* number of nodes in the subtree, the node itself included */
};

/* Memory of the dynamic program. best_shape.c defines T and C. */
struct esp_shape_table {
    /* (remaining depth, rank, remaining nodes): the number of nodes in the subtree of the child
     * of this rank, the child included; 0 means that there is no such child. */
    uint16_t given[ESP_SHAPE_DEPTH + 1][ESP_SHAPE_RANKS][ESP_MAX_NODES + 1];
    double tree[2][ESP_MAX_NODES + 2]; /* (depth modulo 2, nodes): T at the last two depths */
    double rest[ESP_SHAPE_RANKS + 1][ESP_MAX_NODES + 1]; /* (rank, nodes): C at one depth */
};

/* Fills `shape` with the best shape of at most `nodes` nodes (1..ESP_MAX_NODES, without the
 * root) and a depth of at most `depth` (1..ESP_SHAPE_DEPTH). rate: (ranks) the acceptance rate
 * of each rank; ranks <= ESP_SHAPE_RANKS. Returns the expected number of tokens of this
 * shape. */
double esp_shape_best(struct esp_shape *shape, struct esp_shape_table *table,
                      const double *rate, int ranks, int nodes, int depth);

#endif
