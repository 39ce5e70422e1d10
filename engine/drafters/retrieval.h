/* retrieval.h - guesses without a draft model, and how often they are right.
 *
 * Three sources give guesses:
 *   - the text: what followed the same tokens before (suffix_automaton.h),
 *   - the expected text: it is a part of that automaton, and a pointer follows it (follow.h),
 *   - recycled tokens: what the target found likeliest after the same token (recycled.h). They
 *     are tried below the nodes of the others, too.
 * A token that several sources guess at the same place is one guess: that of the expected text,
 * else of the text. What they know of the place is more than its last token. (The larger of two
 * estimates would be too high.)
 *
 * The relative frequency of a copied token is badly calibrated: far too high after a match of
 * one token that occurred twice, far too low after a match of ten tokens. So the ratio of
 * correct guesses to the sum of their frequencies is learned per class: the match length, or the
 * source. Every iteration teaches it, whether the guesses were verified or not: the committed
 * tokens show which were right.
 */
#ifndef ESP_RETRIEVAL_H
#define ESP_RETRIEVAL_H

#include "engine/drafters/drafter.h"
#include "engine/drafters/follow.h"
#include "engine/drafters/suffix_automaton.h"

/* Classes of guesses: a match of 1, 2, 3-4, 5-8, or more tokens; the place of the expected
 * text; recycled tokens. */
enum {
    ESP_MATCH_LENGTHS = 5,
    ESP_MATCH_EXPECTED = ESP_MATCH_LENGTHS,
    ESP_MATCH_RECYCLED,
    ESP_MATCH_CLASSES,
};

/* Zeroed memory is valid: an empty text, nothing learned. */
struct esp_retrieval {
    struct esp_suffix suffix;
    struct esp_follow follow;
    struct esp_guess guesses[ESP_GUESSES]; /* of this iteration; parents before children */
    double value[ESP_GUESSES];             /* probability of each guess */
    int32_t node[ESP_GUESSES];             /* of the tree for each guess; -1: none */
    int count, match, class;            /* match: tokens, 0: none; class of the first guess */
    double prior;                       /* ratio assumed for a match before any is learned */
    double right[ESP_MATCH_CLASSES];    /* correct guesses, decaying */
    double promised[ESP_MATCH_CLASSES]; /* sum of q over all guesses, decaying */
    unsigned seeded;                    /* serial of the expected text in the automaton */
};

/* Finds guesses for what follows the text. Lowers the plan's nodes and depth to what the tree
 * has room for. `recycle`: also recycled ones. On ESP_E_MEMORY there are none. */
int esp_retrieval_find(struct esp_retrieval *r, const struct esp_draft *draft,
                       struct esp_guess_plan *plan, bool recycle);

/* The node of the guess that guess `i` follows: 0 for the root, or -1. */
int32_t esp_retrieval_parent(const struct esp_retrieval *r, int i);

/* Adds guess `i` to the tree, below its parent. Returns the node, or NULL if the tree is
 * full. */
struct esp_node *esp_retrieval_add(struct esp_retrieval *r, struct esp_draft *draft, int i);

/* Tells a node of the tree where guess `i` came from. */
void esp_retrieval_tell(const struct esp_retrieval *r, int i, struct esp_node *node);

/* Probability that a guess is right if its parent was. */
double esp_retrieval_rate(const struct esp_retrieval *r, const struct esp_guess *guess);

/* Learns from the tokens that followed the text. Returns how many of them were guessed. */
int esp_retrieval_learn(struct esp_retrieval *r, const int32_t *committed, int count);

void esp_retrieval_close(struct esp_retrieval *r);

#endif
