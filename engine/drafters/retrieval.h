/* retrieval.h - guesses copied from the text itself, and how often they are right.
 *
 * suffix_automaton.h makes the guesses: what followed the same tokens before. Their relative
 * frequency is badly calibrated: far too high after a match of one token that occurred twice,
 * far too low after a match of ten tokens. So the ratio of correct guesses to the sum of their
 * frequencies is learned per match length. Every iteration teaches it, whether the guesses
 * were verified or not: the committed tokens show which were right.
 */
#ifndef ESP_RETRIEVAL_H
#define ESP_RETRIEVAL_H

#include "engine/drafters/drafter.h"
#include "engine/drafters/suffix_automaton.h"

/* Lengths of matches: 1, 2, 3-4, 5-8, and more tokens. */
enum { ESP_MATCH_CLASSES = 5 };

/* Zeroed memory is valid: an empty text, nothing learned. */
struct esp_retrieval {
    struct esp_suffix suffix;
    struct esp_guess guesses[ESP_GUESSES]; /* of this iteration; parents before children */
    int32_t node[ESP_GUESSES];             /* of the tree for each guess; -1: none */
    int count, match, class;               /* match: tokens, 0: none; and its class */
    double prior;                          /* ratio assumed before any is learned */
    double right[ESP_MATCH_CLASSES];       /* correct guesses, decaying */
    double promised[ESP_MATCH_CLASSES];    /* sum of q over all guesses, decaying */
};

/* Finds guesses for what follows the text. Lowers the plan's nodes and depth to what the tree
 * has room for. On ESP_E_MEMORY there are none. */
int esp_retrieval_find(struct esp_retrieval *r, const struct esp_draft *draft,
                       struct esp_guess_plan *plan);

/* The node of the guess that guess `i` follows: 0 for the root, or -1. */
int32_t esp_retrieval_parent(const struct esp_retrieval *r, int i);

/* Adds guess `i` to the tree, below its parent. Returns the node, or NULL if the tree is
 * full. */
struct esp_node *esp_retrieval_add(struct esp_retrieval *r, struct esp_draft *draft, int i);

/* Probability that a guess is right if its parent was. */
double esp_retrieval_rate(const struct esp_retrieval *r, const struct esp_guess *guess);

/* Learns from the tokens that followed the text. Returns how many of them were guessed. */
int esp_retrieval_learn(struct esp_retrieval *r, const int32_t *committed, int count);

void esp_retrieval_close(struct esp_retrieval *r);

#endif
