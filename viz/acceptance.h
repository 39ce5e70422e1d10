/* acceptance.h - counts how many drafted tokens are accepted, over all iterations. The papers
 * have tables of the same counts.
 *
 * Tokens are counted by length of the accepted path, by depth (delayed-tree-expansion, fig. 1),
 * by source (model, text, ...), by child rank (salf-talf, fig. 2a; Sequoia plans its trees with
 * these counts), and by draft probability (dyspec, hypothesis 1 and fig. 2). The mean length of
 * the accepted path plus one is the block efficiency of delayed-tree-expansion, sec. 2, and the
 * tau of salf-talf. A drafted token counts as tried if the verifier reached its parent. The
 * tried tokens are all verified children of the root and of accepted nodes.
 *
 * The counts need only iteration events, live or recorded.
 */
#ifndef ESP_ACCEPTANCE_H
#define ESP_ACCEPTANCE_H

#include "engine/espalier.h"

enum { ESP_ACCEPT_DEPTHS = 64, ESP_ACCEPT_RANKS = 16, ESP_ACCEPT_BINS = 10 };

struct esp_trial_counts {
    int64_t nodes; /* verified nodes of this rank, of this source, or in this range of q */
    int64_t tried, accepted;
    int64_t with_q, with_p; /* tried nodes with a known q, and with a known p */
    double q, p;            /* sums of q and of p over these nodes */
};

struct esp_accept_depth {
    int64_t nodes; /* nodes drafted at this depth */
    int64_t tried; /* iterations in which the verifier reached the parent of such a node */
    int64_t accepted;
    /* `rated` is the number of parents of these nodes for which `rate` and `ceiling` were
     * computed (esp_session_explain). It includes nodes that the verifier did not reach.
     * `rate` is the sum of their acceptance rates by the verifier's formula, and `ceiling`
     * is the sum of their ceilings alpha*. */
    int64_t rated;
    double rate, ceiling;
};

struct esp_acceptance {
    int iterations, most_nodes;         /* most_nodes: node count of the largest tree */
    int64_t drafted, accepted, deepest; /* sums over iterations */
    int64_t mask_blocks;                /* sum over iterations */
    int64_t
        prefix_blocks; /* sum over iterations: full mask blocks for the text before the tree */
    int64_t length[ESP_ACCEPT_DEPTHS + 1]; /* iterations by length of the accepted path */
    struct esp_accept_depth depth[ESP_ACCEPT_DEPTHS]; /* [0] is depth 1 */
    struct esp_trial_counts rank[ESP_ACCEPT_RANKS];
    /* Counts by draft probability: bin i has q from i / ESP_ACCEPT_BINS up to the next bin.
     * Copied and recycled tokens are left out. */
    struct esp_trial_counts share[ESP_ACCEPT_BINS];
    struct esp_trial_counts source[ESP_SOURCES]; /* by enum esp_source */
    int known; /* iterations with drafts for which esp_formula_tokens() gives a value */
    /* Sums over these iterations. expected: tokens by the formula; obtained: length of the
     * accepted path + 1. */
    double expected, obtained;
};

/* Counts an iteration. A zero-initialised struct has counted nothing. */
void esp_acceptance_add(struct esp_acceptance *acceptance, const struct esp_iteration *it);

/* Returns the expected calibration error (salf-talf, app. A) of q as a forecast of acceptance,
 * computed from the bins of `share`. Returns NaN if nothing was tried. */
double esp_acceptance_error(const struct esp_acceptance *acceptance);

#endif
