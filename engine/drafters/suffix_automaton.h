/* suffix_automaton.h - a suffix automaton over the text, and trees of guesses from it: what
 * followed the same tokens before.
 *
 * The automaton (Blumer et al. 1985) grows with each token. It has a state for each set of
 * substrings that end at the same positions of the text, with their count and what follows
 * them. So all continuations of a match of any length, and their frequencies, are known at
 * once (SuffixDecoding, Oliaro et al., arXiv 2411.04975, sec. 4.1, keeps them in a suffix
 * tree).
 *
 * A tree of guesses starts at a match of m tokens. It grows by the node with the largest D,
 * the product of the relative frequencies along its path, which estimates the probability of
 * acceptance. Among equal ones it takes the most recent. Of all matches, the one with the
 * largest sum of D over its tree is used (sec. 4.2). A path that reaches the end of the text
 * continues with a shorter match, so that repetitive text is continued.
 *
 * Another text may stand before it, as a source of guesses only: the text expected of the
 * answer (esp_suffix_seed). A separator keeps matches from reaching across.
 */
#ifndef ESP_SUFFIX_AUTOMATON_H
#define ESP_SUFFIX_AUTOMATON_H

#include "engine/espalier.h"

struct esp_suffix_state {
    int32_t length, link; /* of the longest substring; state of the next shorter suffix, -1:
                             none */
    int32_t count, end;   /* number of positions where its substrings end; the latest one, in
                             tokens */
    int32_t edges;        /* first edge, -1: none */
};

struct esp_suffix_edge {
    int32_t from, token, to, next; /* next: of the same state, -1: none */
};

/* Zeroed memory is the automaton of the empty text. */
struct esp_suffix {
    int32_t *text; /* (length) the seed and a separator, if there is one, then the text */
    int length, room;
    int seed; /* tokens before the text */
    struct esp_suffix_state *state;
    int states, last;
    struct esp_suffix_edge *edge;
    int edges;
    int32_t *slot; /* (slots) hash table of edges by state and token, -1: free */
    int slots;
};

/* Updates the automaton to this text, or to the last 8,192 to 16,384 tokens of a longer one.
 * It keeps what it already has of them. On ESP_E_MEMORY it is empty. */
int esp_suffix_read(struct esp_suffix *suffix, const int32_t *text, int length);
/* Puts the first ESP_SUFFIX_MOST tokens of another text before it; 0: none. The text is to be
 * read again. On ESP_E_MEMORY there is none. */
int esp_suffix_seed(struct esp_suffix *suffix, const int32_t *tokens, int count);
void esp_suffix_close(struct esp_suffix *suffix);

/* One guess. Parents come before children. */
struct esp_guess {
    int32_t parent, token; /* parent: index of a guess, -1: the root */
    int depth;             /* 1: directly after the text */
    float q;               /* share of the parent's continuations that take this token */
    double d;              /* product of q along the path */
    int32_t state;         /* of the automaton */
    /* Of retrieval.h, which adds guesses of other sources: */
    uint8_t class;  /* ESP_MATCH_... */
    uint8_t source; /* enum esp_source */
};

enum { ESP_GUESSES = 256 }; /* maximum per tree */
/* Tokens of a text that the automaton holds: a text may have no end, and a repetitive one takes
 * time for each repetition. */
enum { ESP_SUFFIX_MOST = 1 << 14 };

struct esp_guess_plan {
    int nodes, depth; /* at most */
    double factor;    /* maximum nodes per token of the match; 0: nothing is copied */
    double least;     /* smallest D of a node */
};

/* Writes guesses for what follows the text, at most plan->nodes and ESP_GUESSES, in the order
 * in which the tree grew. Returns their number. *match: length of the match, 0: none. */
int esp_suffix_guess(const struct esp_suffix *suffix, const struct esp_guess_plan *plan,
                     struct esp_guess *guesses, int *match);

/* Distance in tokens from a guess to the latest occurrence that it was copied from; 0: that is
 * in the seed. */
int esp_suffix_back(const struct esp_suffix *suffix, const struct esp_guess *guess);

#endif
