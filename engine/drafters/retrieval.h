/* retrieval.h - guesses taken from the text itself, and how often they were right.
 *
 * The guesses are those of suffix_automaton.h: what followed the same words before. Their
 * relative frequency says little about how likely they are: after one token that occurred twice
 * it is far too sure, after a match of ten tokens far too careful. So the rate at which guesses
 * were right, over what their frequencies promised, is learned per length of the match. It is
 * learned from every iteration, whether the guesses were verified or not: the committed tokens
 * say what would have become of them.
 */
#ifndef ESP_RETRIEVAL_H
#define ESP_RETRIEVAL_H

#include "engine/drafters/suffix_automaton.h"

/* Lengths of matches: 1, 2, 3-4, 5-8, and more tokens. */
enum { ESP_MATCH_CLASSES = 5 };

/* Zeroed memory is one of the empty text that has learned nothing. */
struct esp_retrieval {
    struct esp_suffix suffix;
    struct esp_guess guesses[ESP_GUESSES]; /* of this iteration; parents before children */
    int count, match;                      /* match: tokens, 0: none */
    double prior;                          /* the rate before anything is known */
    double right[ESP_MATCH_CLASSES];       /* guesses that came true, fading */
    double promised[ESP_MATCH_CLASSES];    /* and the sum of their q */
};

/* Finds the guesses for what follows the text. ESP_E_MEMORY: there are none then. */
int esp_retrieval_find(struct esp_retrieval *r, const int32_t *text, int length,
                       const struct esp_guess_plan *plan);

/* The probability that a guess is right where its parent was. */
double esp_retrieval_rate(const struct esp_retrieval *r, const struct esp_guess *guess);

/* Learns from what followed the text. Returns how many committed tokens were guessed. */
int esp_retrieval_learn(struct esp_retrieval *r, const int32_t *committed, int count);

void esp_retrieval_close(struct esp_retrieval *r);

#endif
