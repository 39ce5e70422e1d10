/* best.c - grows trees of the likeliest nodes.
 *
 * The cumulative q of a node is the product of q along its path, so it is never higher than the
 * cumulative q of the parent. Therefore the N likeliest of all nodes that can be reached from
 * the root form a tree. A node that was removed from the N likeliest never returns, and no node
 * below it can enter the tree. If parents are offered before their children, the tree therefore
 * has exactly the N likeliest nodes, whatever the order of the offers (salf-talf, app. B,
 * theorems 2 and 3).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/drafters/draft.h"

int esp_draft_list(struct esp_draft *d, int32_t node, int from, int most, int count)
{
    const float above = d->tree->tree.nodes[node].cumulative_log_q;
    for (int at = from; at < from + most && d->top_q[at] > 0; at++, count++)
        d->candidates[count] = (struct esp_candidate){
            .parent = node,
            .token = d->top_token[at],
            .at = count,
            .q = d->top_q[at],
            .cumulative_log_q = above + logf(d->top_q[at]),
        };
    return count;
}

static int by_falling_q(const void *a, const void *b)
{
    const struct esp_candidate *x = a, *y = b;
    if (x->cumulative_log_q != y->cumulative_log_q)
        return x->cumulative_log_q < y->cumulative_log_q ? 1 : -1;
    return x->at - y->at;
}

void esp_candidates_sort(struct esp_candidate *candidates, int count)
{
    qsort(candidates, (size_t)count, sizeof *candidates, by_falling_q);
}

/* Returns the least likely node that is not cut, or 0 if there is none. If several are equally
 * likely, returns the last one. */
static int32_t weakest(const struct esp_tree *tree)
{
    int32_t least = 0;
    for (int i = 1; i < tree->count; i++)
        if (tree->nodes[i].verdict != ESP_CUT &&
            (least == 0 ||
             tree->nodes[i].cumulative_log_q <= tree->nodes[least].cumulative_log_q))
            least = i;
    return least;
}

int esp_draft_offer(struct esp_draft *d, const struct esp_candidate *c, int count, int budget,
                    enum esp_reason reason, int32_t *nodes)
{
    struct esp_tree_builder *b = d->tree;
    int kept = 0;
    bool full = false;
    for (int i = 0; i < count; i++) {
        bool in = !full && b->tree.nodes[c[i].parent].verdict != ESP_CUT;
        if (in && b->capacity - b->room >= budget) {
            int32_t least = weakest(&b->tree);
            full = !(c[i].cumulative_log_q > b->tree.nodes[least].cumulative_log_q);
            in = !full;
            if (in)
                esp_tree_cut(b, least, reason);
        }
        int node = in ? esp_tree_add(b, c[i].parent, c[i].token, c[i].q) : -1;
        if (!in)
            esp_tree_add_cut(b, c[i].parent, c[i].token, c[i].q, reason);
        if (nodes)
            nodes[i] = node;
        kept += in;
    }
    return kept;
}

/* ------------------------------------------------------------------ best-first growth */

/* Returns a log probability. Only the children of nodes with a higher cumulative log q can
 * enter the tree. */
static float bar(const struct esp_draft *d, int budget)
{
    if (d->tree->capacity - d->tree->room < budget)
        return -INFINITY;
    return d->tree->tree.nodes[weakest(&d->tree->tree)].cumulative_log_q;
}

/* Chooses which of the added nodes to expand (salf-talf, alg. 2, lines 10-12) and returns their
 * number. Sets *gain to the sum of their probabilities. The sum also includes nodes that cannot
 * be expanded, for example at the depth limit. */
static int choose(struct esp_draft *d, const int32_t *taken, int count, int budget,
                  double *gain, int32_t *nodes)
{
    float line = bar(d, budget);
    int n = 0;
    *gain = 0;
    for (int i = 0; i < count; i++) {
        if (taken[i] < 0)
            continue;
        struct esp_node *node = &d->tree->tree.nodes[taken[i]];
        if (node->verdict == ESP_CUT)
            continue;
        node->reason = ESP_REASON_BUDGET;
        if (!(node->cumulative_log_q > line))
            continue;
        *gain += exp(node->cumulative_log_q);
        if (node->depth >= d->max_depth)
            node->reason = ESP_REASON_DEPTH;
        else if (n < d->capacity - d->expanded)
            nodes[n++] = taken[i];
    }
    return n;
}

/* Expands nodes and adds their children to the queue, which has `waiting` candidates. Returns
 * the new length of the queue. */
static int expand(struct esp_draft *d, const int32_t *nodes, int count, int budget, int waiting)
{
    struct esp_candidate *queue = d->candidates;
    int k = budget < ESP_MAX_TOP ? budget : ESP_MAX_TOP;
    int status = esp_draft_expand(d, nodes, count, k);
    if (status < 0)
        return status;
    for (int i = 0; i < waiting; i++)
        queue[i].at = i;
    for (int i = 0; i < count; i++) {
        d->tree->tree.nodes[nodes[i]].reason = ESP_REASON_NONE;
        waiting = esp_draft_list(d, nodes[i], i * k, k, waiting);
    }
    esp_candidates_sort(queue, waiting);
    return waiting < budget ? waiting : budget;
}

/* Stores why these nodes are not expanded. Records the candidates that are still in the queue
 * as cut. */
static void leave(struct esp_draft *d, const int32_t *nodes, int count, int waiting,
                  enum esp_reason reason)
{
    const struct esp_candidate *queue = d->candidates;
    for (int i = 0; i < count; i++)
        d->tree->tree.nodes[nodes[i]].reason = (uint8_t)reason;
    for (int i = 0; i < waiting; i++)
        esp_tree_add_cut(d->tree, queue[i].parent, queue[i].token, queue[i].q, reason);
}

int esp_draft_best(struct esp_draft *d, int budget, int batch, double threshold)
{
    struct esp_candidate *queue = d->candidates; /* candidates outside the tree, likeliest
                                                    first */
    int32_t *taken = d->work->end, *nodes = d->work->frontier;
    int waiting = 0, count = 1, passes = 0, offered, kept;
    double gain;
    budget = budget < d->tree->room ? budget : d->tree->room;
    batch = batch < budget ? batch : budget;
    nodes[0] = 0;
    do {
        if (count > 0)
            waiting = expand(d, nodes, count, budget, waiting);
        if (waiting < 0)
            return waiting;
        offered = waiting < batch ? waiting : batch;
        kept = esp_draft_offer(d, queue, offered, budget, ESP_REASON_BUDGET, taken);
        waiting -= offered;
        memmove(queue, queue + offered, (size_t)waiting * sizeof *queue);
        count = choose(d, taken, offered, budget, &gain, nodes);
        if (passes < d->passes)
            esp_draft_layer_done(d);
        passes = d->passes;
    } while (kept > 0 && !(gain < threshold));
    bool low = gain < threshold;
    leave(d, nodes, low ? count : 0, waiting, low ? ESP_REASON_GAIN : ESP_REASON_BUDGET);
    return ESP_OK;
}
