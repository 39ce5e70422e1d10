/* retrieval.h - finds guesses without a draft model, and learns how often they are right.
 *
 * Guesses come from three sources:
 *   - the text: tokens that followed the same tokens earlier (suffix_automaton.h);
 *   - the expected text: the automaton contains it, and a pointer follows it (follow.h);
 *   - recycled tokens: tokens that the target found likely after the same token (recycled.h).
 *     They are also added below guesses of the other sources.
 * If several sources guess the same token below the same parent, only one guess is made. Its
 * source is then the first of these that guessed the token: the expected text, the text,
 * recycled tokens. The first two sources depend on several tokens of the context, recycled
 * tokens only on the last token. The guess has the probability that its source gives, because
 * the largest of several estimates would be too high on average.
 *
 * The relative frequency of a copied token is badly calibrated: far too high after a match of
 * one token that occurred twice, far too low after a match of ten tokens. Therefore a ratio
 * is learned for each class of guesses: the number of correct guesses divided by the summed
 * frequencies of all guesses.
 * There is one class for each range of match lengths, five classes for the expected text, and
 * one for recycled tokens. The ratio is learned in every iteration, even if the guesses were
 * not verified: the committed tokens show which guesses were right.
 */
#ifndef ESP_RETRIEVAL_H
#define ESP_RETRIEVAL_H

#include "engine/drafters/drafter.h"
#include "engine/drafters/follow.h"
#include "engine/drafters/suffix_automaton.h"

/* Classes of guesses:
 *   - tokens copied after a match of 1, 2, 3-4, 5-8, or more tokens (five classes);
 *   - tokens of the expected text at the pointer;
 *   - after a difference, tokens at the three likeliest positions (three classes);
 *   - tokens of the expected text that follow one of these positions;
 *   - recycled tokens. */
enum {
    ESP_MATCH_LENGTHS = 5,
    ESP_MATCH_EXPECTED = ESP_MATCH_LENGTHS,
    ESP_MATCH_CONTINUED,
    ESP_MATCH_FOLLOWING = ESP_MATCH_CONTINUED + ESP_FOLLOW_PLACES,
    ESP_MATCH_RECYCLED,
    ESP_MATCH_CLASSES,
};

/* The guesses of an iteration, and the rates that were learned. A zero-initialised struct is
 * valid: the text is empty, and nothing has been learned. */
struct esp_retrieval {
    struct esp_suffix suffix;
    struct esp_follow follow;
    struct esp_guess guesses[ESP_GUESSES]; /* guesses of this iteration; parents before
                                              children */
    double value[ESP_GUESSES];             /* probability that each guess is accepted */
    int32_t node[ESP_GUESSES];             /* the tree's node for each guess; -1: it has none */
    int count;                             /* number of guesses */
    int match;                             /* length of the match in tokens; 0: there is none */
    int class;                             /* class of the first guess */
    double prior;                          /* initial ratio for guesses copied from the text */
    double right[ESP_MATCH_CLASSES];       /* decaying count of correct guesses */
    double promised[ESP_MATCH_CLASSES];    /* decaying sum of q over all guesses */
    unsigned seeded;                       /* serial of the expected text in the automaton */
};

/* Finds guesses for the tokens that follow the text. Lowers the nodes and the depth of the plan
 * to what fits in the tree. recycle: true to guess recycled tokens, too. If this returns
 * ESP_E_MEMORY, there are no guesses. */
int esp_retrieval_find(struct esp_retrieval *r, const struct esp_draft *draft,
                       struct esp_guess_plan *plan, bool recycle);

/* Returns the tree node below which guess `i` must be added: 0 for the root, -1 if the parent
 * of the guess has no node. */
int32_t esp_retrieval_parent(const struct esp_retrieval *r, int i);

/* Adds guess `i` to the tree, below its parent. Returns the node, or NULL if the tree is
 * full. */
struct esp_node *esp_retrieval_add(struct esp_retrieval *r, struct esp_draft *draft, int i);

/* Records in a node of the tree where guess `i` came from. */
void esp_retrieval_tell(const struct esp_retrieval *r, int i, struct esp_node *node);

/* Learns from the tokens that followed the text. Returns how many of them were guessed, counted
 * up to the first wrong guess. */
int esp_retrieval_learn(struct esp_retrieval *r, const int32_t *committed, int count);

void esp_retrieval_close(struct esp_retrieval *r);

#endif
