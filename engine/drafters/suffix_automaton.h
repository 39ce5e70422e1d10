/* suffix_automaton.h - what followed the same words before: a suffix automaton over the text,
 * and trees of guesses from it.
 *
 * The automaton (Blumer et al. 1985) has a state for each set of subsequences that end at the
 * same places of the text; it knows how often they occur and what follows them, and grows with
 * each token. So for any match, of whatever length, all continuations and their frequencies are
 * at hand (SuffixDecoding, Oliaro et al., arXiv 2411.04975, sec. 4.1, keeps them in a suffix
 * tree).
 *
 * A tree of guesses starts at a match of m tokens and takes, one at a time, the node with the
 * largest D, the product of the relative frequencies along its path: an estimate of the
 * probability that it is accepted; of equal ones that whose words were used last. Of all
 * matches, the one whose tree has the largest sum of D is taken (sec. 4.2). A path that comes
 * to the end of the text goes on with a shorter match, so that text which repeats itself is
 * continued.
 */
#ifndef ESP_SUFFIX_AUTOMATON_H
#define ESP_SUFFIX_AUTOMATON_H

#include "engine/espalier.h"

struct esp_suffix_state {
    int32_t length, link; /* of the longest subsequence; state of the next shorter, -1: none */
    int32_t count, end;   /* places where its subsequences end; the latest, in tokens */
    int32_t edges;        /* first edge, -1: none */
};

struct esp_suffix_edge {
    int32_t from, token, to, next; /* next: of the same state, -1: none */
};

/* Zeroed memory is an automaton of the empty text. */
struct esp_suffix {
    int32_t *text;
    int length, room;
    struct esp_suffix_state *state;
    int states, last;
    struct esp_suffix_edge *edge;
    int edges;
    int32_t *slot; /* (slots) hash table of edges by state and token, -1: free */
    int slots;
};

/* Makes it the automaton of this text, or of the last 8,192 to 16,384 tokens of a longer one;
 * what it has of them already is kept. ESP_E_MEMORY: it is empty then. */
int esp_suffix_read(struct esp_suffix *suffix, const int32_t *text, int length);
void esp_suffix_close(struct esp_suffix *suffix);

/* One guess. Parents come before children. */
struct esp_guess {
    int32_t parent, token; /* parent: index of a guess, -1: the root */
    int depth;             /* 1: right behind the text */
    float q;               /* share of the parent's continuations that go on with it */
    double d;              /* product of q along the path */
    int32_t state;         /* of the automaton */
};

enum { ESP_GUESSES = 256 }; /* of one tree at most */

struct esp_guess_plan {
    int nodes, depth; /* at most */
    double factor;    /* at most so many nodes per token of the match */
    double least;     /* no node has a smaller D */
};

/* Writes the guesses (plan->nodes and ESP_GUESSES at most) for what follows the text, in the
 * order in which they were taken; returns how many. *match: tokens of the match, 0: none. */
int esp_suffix_guess(const struct esp_suffix *suffix, const struct esp_guess_plan *plan,
                     struct esp_guess *guesses, int *match);

/* How many tokens before the place of a guess the latest of those stands that it was copied
 * from. */
int esp_suffix_back(const struct esp_suffix *suffix, const struct esp_guess *guess);

#endif
