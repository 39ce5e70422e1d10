/* traversal.c - tests whole paths before shorter ones, from the leaves up.
 *
 * Weng et al. 2025; delayed-tree-expansion, sec. 3.2. Every node has a weight w: 1 at the root,
 * min(1, w_parent p(x) / q(x)) at a child x. The first leaf in drawing order is accepted with
 * probability w, together with the path to it. The bonus token is then drawn from the leaf's p.
 * Otherwise the leaf is deleted, and its parent gets p <- norm((w p - q)+) and w <- S / (S + 1
 * - w). On the right side, p and w are the old values, and S is the sum before normalising. A
 * node that has lost all children is a leaf; the root is accepted once it is a leaf. For a
 * single path, this verifier equals `bv`.
 *
 * A token that was drawn several times at one parent is one node of the tree. Its first
 * instance has the children of all paths through it. Later instances are tested separately as
 * leaves. If one is accepted, the bonus token is drawn from the target's whole distribution.
 * For draws without replacement, a deleted child is also removed from its parent's q.
 */
#include "engine/verifiers/verifier.h"

static void enter(struct esp_verify *v, int node, double weight)
{
    v->weight[node] = weight;
    v->residual[node] = esp_whole;
    v->next[node] = v->q_row[node] >= 0 ? v->tree->first_draw[node] : -1;
}

/* Returns the next child of `node` to test, in drawing order, or -1 if all were tested. */
static int next_child(struct esp_verify *v, int node)
{
    const struct esp_tree_builder *b = v->tree;
    while (v->next[node] >= 0) {
        int draw = v->next[node], child = b->draw_node[draw];
        v->next[node] = b->next_draw[draw];
        if (b->tree.nodes[child].verdict != ESP_CUT)
            return child;
    }
    return -1;
}

/* Deletes the leaf `child` of `node`, and changes the weight and the residual of `node`. */
static int delete_leaf(struct esp_verify *v, int node, int child)
{
    double w = v->weight[node], sum;
    int status = esp_residual_refuse(v, node, w, &v->residual[node], &sum);
    v->weight[node] = sum > 0 ? sum / (sum + (1 - w)) : 0;
    if (status == ESP_OK && v->draws == ESP_DRAW_SWOR)
        status = esp_residual_remove(v, node, child, &v->residual[node]);
    return status;
}

static int select_path(struct esp_verify *v)
{
    const struct esp_node *nodes = v->tree->tree.nodes;
    int node = 0;
    enter(v, 0, 1);
    for (;;) {
        int child = next_child(v, node);
        if (child >= 0) {
            const double left = esp_residual_of(v, &v->residual[node], child);
            const double weight = esp_keep(v->weight[node] * left, v->q_of[child]);
            if (nodes[child].verdict == ESP_UNVISITED) { /* first instance of the token */
                enter(v, child, weight);
                node = child;
                continue;
            }
            if (esp_verify_accept(v, child, weight))
                return esp_verify_end(v, child, &esp_whole);
        } else {
            if (node == 0)
                return esp_verify_end(v, 0, &v->residual[0]);
            if (esp_verify_accept(v, node, v->weight[node]))
                return esp_verify_end(v, node, &v->residual[node]);
            child = node;
            node = nodes[node].parent;
        }
        int status = delete_leaf(v, node, child);
        if (status < 0)
            return status;
    }
}

const struct esp_verifier_ops esp_verifier_traversal = {
    .name = "traversal",
    .summary = "test paths from the leaves up: whole paths before shorter paths",
    .source = "Weng et al. 2025; delayed-tree-expansion, sec. 3.2",
    .differs = "a token that was drawn again is tested as a separate leaf next to its first "
               "instance, so that independent draws need no copies of subtrees",
    .lossless = ESP_DRAW_IID | ESP_DRAW_SWOR,
    .preferred = ESP_DRAW_IID,
    .formula = "w",
    .where = "min(1, w' p'/q) with w' and p' of the node's parent; once its children are "
             "rejected, S/(S + 1 - w), where S is the sum of (w p' - q)+ after the node",
    .select = select_path,
};
