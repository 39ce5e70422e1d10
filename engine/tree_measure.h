/* tree_measure.h - compares the draft's distributions with the target's in verified trees, for
 * each depth and for each rank of a guess.
 *
 * For each depth, it computes the L1 distance of p and q. For each verifier, at the same nodes,
 * it also computes the probability that one of k independent draws is accepted
 * (delayed-tree-expansion, def. 5.1 and fig. 1).
 *
 * For each rank n, it uses the root's child that the draft ranked n-th. It measures how often
 * draft and target have the same likeliest token after this node. It also measures how well the
 * draft's probability predicts this agreement (salf-talf, sec. 3.1, fig. 2b, app. A).
 */
#ifndef ESP_TREE_MEASURE_H
#define ESP_TREE_MEASURE_H

#include "engine/espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ESP_MEASURE_DEPTHS = 16, ESP_MEASURE_RANKS = 8, ESP_MEASURE_RULES = 16 };

struct esp_verifier_ops;

/* Holds sums over the nodes of one depth. */
struct esp_depth_measure {
    int64_t nodes;
    double distance; /* sum of L1 distances; the distance at a node is from 0 to 2 */
    double ceiling;  /* sum of alpha*, the largest acceptance rate of any lossless verifier */
    /* Sum of acceptance rates for each verifier in the list ESP_VERIFIERS; NaN if the verifier
     * has no such formula or is only for single paths. */
    double rate[ESP_MEASURE_RULES];
};

/* Compares the draft with the target at one node: after this node, the target has a likeliest
 * next token. */
struct esp_next_guess {
    float confidence; /* q of that token */
    bool right;       /* true: the target's likeliest token is also the draft's */
};

struct esp_rank_measure {
    int count, room;
    struct esp_next_guess *guess; /* (count) */
};

/* The caller zero-initialises the struct, sets `draws`, and frees it with
 * esp_tree_measure_free(). */
struct esp_tree_measure {
    int draws;                                          /* k, from 1 to 16 */
    const struct esp_verifier_ops *const *rules;        /* filled in by esp_session_measure() */
    struct esp_depth_measure depth[ESP_MEASURE_DEPTHS]; /* depth[0] is for the root */
    struct esp_rank_measure
        rank[ESP_MEASURE_RANKS]; /* rank[i]: guesses after a node of depth 1 and rank i */
};

void esp_tree_measure_free(struct esp_tree_measure *measure);

/* From the next iteration on, adds every verified node that has children and a draft
 * distribution to `measure`. `measure` must stay valid until a call with NULL ends the
 * measurement. The measurement is slow, because whole rows, with one value per token of the
 * vocabulary, are copied to the host. Its time is not included in any stage. */
void esp_session_measure(struct esp_session *session, struct esp_tree_measure *measure);

/* esp_rank_accuracy() returns the fraction of guesses that are right. esp_rank_error() sorts
 * `rank` by confidence and returns the expected calibration error over `bins` bins of equal
 * size. Both return NaN if there are no guesses. */
double esp_rank_accuracy(const struct esp_rank_measure *rank);
double esp_rank_error(struct esp_rank_measure *rank, int bins);

#ifdef __cplusplus
}
#endif
#endif
