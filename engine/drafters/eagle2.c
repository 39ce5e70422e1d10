/* eagle2.c - expands a beam of k nodes per depth, then chooses the N best of all nodes
 * (EAGLE-2; salf-talf, app. B).
 *
 * Phase 1 runs once per depth. It expands the k nodes of the deepest layer that have the
 * highest cumulative q: each of them gets its k likeliest children. Phase 2 chooses the N nodes
 * with the highest cumulative q for verification. They form a tree, because cumulative q never
 * rises along a path.
 *
 * Here both phases run together: the N best nodes so far are kept at every depth. If a node of
 * the beam is not among them, neither are its children, so it is not expanded. The resulting
 * tree is the same, and the draft computes fewer rows.
 */
#include "engine/drafters/drafter.h"

#include <math.h>

enum { BEAM, DEPTH, N };

static const struct esp_param params[] = {
    [BEAM] = {"k", ESP_INT, 1, ESP_MAX_TOP, 10,
              .help = "nodes expanded per depth, and children per expanded node"},
    [DEPTH] = {"depth", ESP_INT, 1, 64, 7, .help = "depth of the tree"},
    [N] = {"N", ESP_INT, 1, ESP_MAX_NODES, 60, .help = "nodes kept for verification"},
    {0},
};

/* Adds a layer's candidates to the tree; returns how many nodes of the beam to expand next. If
 * little memory for nodes is left, it is reserved for the beams of the following depths. */
static int add_layer(struct esp_draft *d, int beam, int found, int depths_left, int32_t *next)
{
    const struct esp_tree_builder *b = d->tree;
    struct esp_candidate *c = d->candidates;
    int budget = (int)esp_param(d->params, N);
    if (budget > b->capacity)
        budget = b->capacity;
    esp_candidates_sort(c, found);
    beam = beam < found ? beam : found;
    esp_draft_offer(d, c, beam, budget, ESP_REASON_RERANK, next);
    int spare = b->record - b->tree.count - b->room - beam * depths_left;
    int rest = found - beam < spare ? found - beam : spare;
    esp_draft_offer(d, c + beam, rest, budget, ESP_REASON_RERANK, NULL);
    int count = 0;
    for (int i = 0; i < beam; i++)
        if (next[i] >= 0 && b->tree.nodes[next[i]].verdict != ESP_CUT)
            next[count++] = next[i];
    int rows = d->capacity - d->expanded;
    return count < rows ? count : rows;
}

static int draft(struct esp_draft *d)
{
    int k = (int)esp_param(d->params, BEAM), depth = (int)esp_param(d->params, DEPTH);
    int32_t layer[ESP_MAX_TOP] = {0};
    int count = 1, level = 0;
    depth = depth < d->max_depth ? depth : d->max_depth;
    for (; level < depth && count > 0; level++) {
        int status = esp_draft_expand(d, layer, count, k);
        if (status < 0)
            return status;
        int found = 0;
        for (int i = 0; i < count; i++)
            found = esp_draft_list(d, layer[i], i * k, k, found);
        count = add_layer(d, k, found, depth - level - 1, layer);
        esp_draft_layer_done(d);
    }
    for (int i = 1; i < d->tree->tree.count; i++) {
        struct esp_node *node = &d->tree->tree.nodes[i];
        if (node->verdict != ESP_CUT && isnan(node->confidence))
            node->reason = node->depth < level ? ESP_REASON_BEAM : ESP_REASON_DEPTH;
    }
    return ESP_OK;
}

const struct esp_drafter_ops esp_drafter_eagle2 = {
    .name = "eagle2",
    .summary = "a beam search with k nodes per depth, then the N best nodes",
    .source = "EAGLE-2; salf-talf, app. B",
    .differs = ESP_DIFFERS_TEMPERED,
    .draws = ESP_DRAW_TOPK,
    .params = params,
    .draft = draft,
};
