/* best_shape.c - the dynamic program over (nodes, depth, rank); see best_shape.h.
 *
 * The yield of a set of nodes is the expected number of tokens that these nodes add. T(d, n) is
 * the best yield of a tree with at most n nodes and a depth of at most d. C(d, k, n) is the
 * best yield of at most n nodes below a given node. Only the node's children of rank k or
 * higher, and the nodes below these children, are allowed.
 *
 *     T(d, n)    = 1 + C(d, 0, n - 1)              T(0, n) = 1
 *     C(d, k, n) = max(0, max over 1 <= j <= n of rate[k] T(d - 1, j) + C(d, k + 1, n - j))
 *
 * A child of rank k + 1 exists only if the child of rank k exists, because children are drawn
 * in order.
 */
#include "engine/drafters/best_shape.h"

/* Computes C(d, k, .) from T(d - 1, .) and C(d, k + 1, .). */
static void fill_rank(struct esp_shape_table *t, const double *below, int d, int k, double rate,
                      int nodes)
{
    const double *after = t->rest[k + 1];
    for (int n = 0; n <= nodes; n++) {
        double best = 0;
        int given = 0;
        for (int j = 1; j <= n; j++) {
            double value = rate * below[j] + after[n - j];
            if (value > best) {
                best = value;
                given = j;
            }
        }
        t->rest[k][n] = best;
        t->given[d][k][n] = (uint16_t)given;
    }
}

/* Reads the shape from the table, breadth first. */
static void read_shape(struct esp_shape *s, const struct esp_shape_table *t, int ranks,
                       int nodes, int depth)
{
    s->nodes = 1;
    s->depth[0] = 0;
    s->size[0] = nodes + 1;
    for (int u = 0; u < s->nodes; u++) {
        int left = s->size[u] - 1, d = depth - s->depth[u], given;
        s->first_child[u] = s->nodes;
        s->children[u] = 0;
        for (int k = 0; k < ranks && d > 0 && (given = t->given[d][k][left]) > 0; k++) {
            s->depth[s->nodes] = s->depth[u] + 1;
            s->size[s->nodes++] = given;
            s->children[u]++;
            left -= given;
        }
    }
}

double esp_shape_best(struct esp_shape *shape, struct esp_shape_table *t, const double *rate,
                      int ranks, int nodes, int depth)
{
    for (int n = 0; n <= nodes; n++) {
        t->tree[0][n + 1] = 1;
        t->rest[ranks][n] = 0;
    }
    for (int d = 1; d <= depth; d++) {
        for (int k = ranks - 1; k >= 0; k--)
            fill_rank(t, t->tree[(d - 1) % 2], d, k, rate[k], nodes);
        for (int n = 0; n <= nodes; n++)
            t->tree[d % 2][n + 1] = 1 + t->rest[0][n];
    }
    read_shape(shape, t, ranks, nodes, depth);
    return t->tree[depth % 2][nodes + 1];
}
