/* tree_measure.h - how the draft's distributions lie beside the target's, in trees as they are
 * verified: by depth and by the rank of a guess.
 *
 * By depth: the L1 distance of p and q, and with what probability each verifier would go on to
 * one of k independent draws, all of them at the same nodes (delayed-tree-expansion, def. 5.1
 * and fig. 1). By rank: after the n-th likeliest first guess, does the draft's likeliest token
 * equal the target's, and is it as sure as it is right (salf-talf, sec. 3.1, fig. 2b, app. A).
 */
#ifndef ESP_TREE_MEASURE_H
#define ESP_TREE_MEASURE_H

#include "engine/espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MEASURE_DEPTHS = 16, ESP_MEASURE_RANKS = 8, ESP_MEASURE_RULES = 16 };

struct esp_verifier_ops;

/* Nodes of one depth: sums over them. */
struct esp_depth_measure {
    int64_t nodes;
    double distance; /* sum over tokens of |p - q|: 0 to 2 */
    double ceiling;  /* alpha*, which no lossless verifier exceeds */
    /* By place in the list ESP_VERIFIERS; NaN where a verifier has no such formula, or
     * takes single paths only. */
    double rate[ESP_MEASURE_RULES];
};

/* The draft's likeliest token after a guess. */
struct esp_next_guess {
    float confidence; /* q of the target's likeliest token */
    bool right;       /* it is the draft's likeliest, too */
};

struct esp_rank_measure {
    int count, room;
    struct esp_next_guess *guess; /* (count) */
};

/* To be zeroed but for `draws`, and freed by esp_tree_measure_free(). */
struct esp_tree_measure {
    int draws;                                          /* k, 1 to 16 */
    const struct esp_verifier_ops *const *rules;        /* filled in by esp_session_measure() */
    struct esp_depth_measure depth[ESP_MEASURE_DEPTHS]; /* [0]: at the root */
    struct esp_rank_measure
        rank[ESP_MEASURE_RANKS]; /* [i]: after a node of depth 1 and rank i */
};

void esp_tree_measure_free(struct esp_tree_measure *measure);

/* From the next iteration on, adds every verified node that has children and a distribution of
 * the draft. Copies rows of the vocabulary to the host, so it is slow; its time counts for no
 * stage. NULL: no more. The memory must stay where it is until then. */
void esp_session_measure(struct esp_session *session, struct esp_tree_measure *measure);

/* The share of guesses that were right, and the expected calibration error over `bins` bins of
 * as many guesses each, sorted by confidence, which sorts `rank`. NaN if there is none. */
double esp_rank_accuracy(const struct esp_rank_measure *rank);
double esp_rank_error(struct esp_rank_measure *rank, int bins);

#ifdef __cplusplus
}
#endif
#endif
