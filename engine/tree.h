/* tree.h - a draft tree while it grows, and its flattening.
 *
 * The plain record is struct esp_tree; the builder adds what growing and verifying need: links
 * between siblings, the flattened row of each node and the ancestor bitmasks. All memory is
 * taken at open.
 *
 * Node 0 is the root: the last committed token, already known to be right. Cut nodes stay in
 * the record but have no row: the target never sees them. All nodes below a cut node are cut.
 *
 * Independent draws may give a token twice at one parent. The tree then holds one node with
 * `copies` counted, so that the target computes it once, and beside it the sequence in which
 * the parent's children were drawn, repetitions included: rules for i.i.d. draws read it with
 * esp_tree_draws().
 */
#ifndef ESP_TREE_H
#define ESP_TREE_H

#include "espalier.h"

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
    int capacity;       /* nodes to be verified, root not counted */
    int room;           /* of those, how many are still free */
    int record;         /* nodes in all, cut ones and root included */
    int32_t *first_child, *last_child, *next_sibling; /* (record) node or -1 */
    int32_t *row;                                     /* (record) flattened row or -1 */
    int32_t *first_draw, *last_draw;                  /* (record) draw or -1 */
    int32_t *next_draw, *draw_node;                   /* (draw_capacity) draw or -1; its node */
    int draws, draw_capacity;                         /* draws made of those that fit */
    int32_t *size;                                    /* (record) nodes in the subtree */
    int32_t *stack;                                   /* (record) scratch */
    int mask_words;                                   /* per row: ceil((capacity + 1) / 64) */
    uint64_t *mask; /* (capacity + 1, mask_words) bit j of row i: row j is row i or above it */
    int mask_blocks; /* non-empty 32 x 32 blocks of the mask (dyspec, app. C, table 5) */
};

int esp_tree_open(struct esp_tree_builder *builder, int capacity, char *err, size_t errlen);
void esp_tree_close(struct esp_tree_builder *builder);

/* Empties the tree; node 0 becomes `token`. */
void esp_tree_reset(struct esp_tree_builder *builder, int32_t token);

/* Adds a child with draft probability q and returns its index, or -1 if the tree is full.
 * Siblings are ranked in the order in which they are added. */
int esp_tree_add(struct esp_tree_builder *builder, int parent, int32_t token, double q);

/* One draw of a child: like esp_tree_add, but a token that `parent` has already gets one more
 * copy instead of a second node. Returns the node, or -1 if the tree is full. */
int esp_tree_draw(struct esp_tree_builder *builder, int parent, int32_t token, double q);

/* The children of `parent` in the order in which they were drawn, one entry per draw; cut
 * children are left out. Writes at most `most` of them to nodes and returns how many there
 * are. */
int esp_tree_draws(const struct esp_tree_builder *builder, int parent, int32_t *nodes,
                   int most);

/* Like esp_tree_add, but the node is cut at once: it uses none of the capacity. Where even the
 * record is full it is dropped (-1). */
int esp_tree_add_cut(struct esp_tree_builder *builder, int parent, int32_t token, double q,
                     enum esp_reason reason);

/* Cuts a node and everything below it, and gives their room back. */
void esp_tree_cut(struct esp_tree_builder *builder, int node, enum esp_reason reason);

/* Fills tree.order, tree.verified, row, mask and mask_blocks. Parents come before children. */
void esp_tree_flatten(struct esp_tree_builder *builder, enum esp_order order);

/* Depth of the deepest node that is not cut. */
int esp_tree_deepest(const struct esp_tree *tree);

/* Child of `node` with this token that is not cut, first in drawing order; -1 if there is
 * none. */
int esp_tree_find(const struct esp_tree_builder *builder, int node, int32_t token);

#endif
