/* tree.h - grows a draft tree and flattens it into the rows of one batch.
 *
 * Observers see struct esp_tree. The builder adds the data that drafters and verifiers need:
 * links between siblings, the flattened row of each node and the ancestor bitmasks. All memory
 * is allocated by esp_tree_open().
 *
 * Node 0 is the root: the last committed token. Cut nodes stay in the tree for display but have
 * no row, so the target never sees them. All nodes below a cut node are cut.
 *
 * Independent draws may give the same token twice below one parent. The tree then has one
 * node that counts its `copies`, so that the target computes it once. The builder also stores
 * the sequence in which the parent's children were drawn, repeated draws included; verifiers
 * for independent draws read it with esp_tree_draws().
 */
#ifndef ESP_TREE_H
#define ESP_TREE_H

#include "engine/arrays.h"
#include "engine/espalier.h"

#define ESP_ORDERS(X)                                                                          \
    X(bfs) /* layer by layer (DynaTree, sec. 3.4) */                                           \
    X(dfs) /* depth first, children in drawing order */                                        \
    X(hpd) /* heavy path first: depth first, largest subtree first (dyspec, app. C) */

enum esp_order {
#define X(name) ESP_ORDER_##name,
    ESP_ORDERS(X)
#undef X
};

struct esp_tree_builder {
    struct esp_tree tree;
    int capacity; /* maximum number of nodes to verify, without the root */
    int room;     /* number of nodes to verify that can still be added */
    int record;   /* maximum number of nodes to store, including cut ones and the root */
    int32_t *first_child, *last_child, *next_sibling; /* (record) index of a node, or -1 */
    int32_t *row;                    /* (record) row in the flattened tree, or -1 */
    int32_t *first_draw, *last_draw; /* (record) index of a draw, or -1 */
    int32_t *next_draw;              /* (draw_capacity) index of the next draw, or -1 */
    int32_t *draw_node;              /* (draw_capacity) the node of each draw */
    int draws, draw_capacity;        /* number of draws; maximum number of draws */
    int32_t *size;                   /* (record) size of each node's subtree */
    int32_t *stack;                  /* (record) scratch */
    int mask_words;                  /* words per row of `mask` */
    uint64_t *mask;  /* (capacity + 1, mask_words) bit j of row i: row j is i or its ancestor */
    int mask_blocks; /* number of non-empty 32 x 32 blocks in mask (dyspec, app. C, table 5) */
    struct esp_arrays arrays; /* owns all arrays of this struct and of `tree` */
};

int esp_tree_open(struct esp_tree_builder *builder, int capacity, char *err, size_t errlen);
void esp_tree_close(struct esp_tree_builder *builder);

/* Empties the tree; node 0 becomes `token`. */
void esp_tree_reset(struct esp_tree_builder *builder, int32_t token);

/* Adds a child with draft probability q and returns its index, or -1 if the tree is full.
 * Siblings are ranked in the order in which they are added. */
int esp_tree_add(struct esp_tree_builder *builder, int parent, int32_t token, double q);

/* Records one draw of a child. Works like esp_tree_add, but if `parent` already has a child
 * with this token, increments that child's `copies` instead. Returns the node, or -1 if the
 * tree is full. */
int esp_tree_draw(struct esp_tree_builder *builder, int parent, int32_t token, double q);

/* Lists the children of `parent` in the order in which they were drawn, one entry per draw,
 * without cut children. Writes at most `most` entries to nodes. Returns the total number of
 * entries, including the entries that were not written. */
int esp_tree_draws(const struct esp_tree_builder *builder, int parent, int32_t *nodes,
                   int most);

/* Works like esp_tree_add, but the new node is a cut node and uses none of the capacity.
 * Returns -1 if there is no room to store it. */
int esp_tree_add_cut(struct esp_tree_builder *builder, int parent, int32_t token, double q,
                     enum esp_reason reason);

/* Cuts a node and all nodes below it. Other nodes can then be added instead. */
void esp_tree_cut(struct esp_tree_builder *builder, int node, enum esp_reason reason);

/* Fills tree.order, tree.verified, row, mask and mask_blocks. Parents precede their children.
 */
void esp_tree_flatten(struct esp_tree_builder *builder, enum esp_order order);

/* Returns the depth of the deepest node that is not cut. */
int esp_tree_deepest(const struct esp_tree *tree);

/* Returns the first child of `node`, in drawing order, that has this token and is not cut; -1
 * if there is none. */
int esp_tree_find(const struct esp_tree_builder *builder, int node, int32_t token);

#endif
