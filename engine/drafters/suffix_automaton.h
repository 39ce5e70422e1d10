/* suffix_automaton.h - a suffix automaton over the text, and trees of guesses from it: tokens
 * that followed the same tokens earlier.
 *
 * The automaton (Blumer et al. 1985) grows with each token. It has a state for each set of
 * substrings that end at the same positions of the text. A state stores how often its
 * substrings occur, and which tokens follow them. Therefore all continuations of a match of any
 * length can be read directly, with their frequencies. SuffixDecoding (Oliaro et al., arXiv
 * 2411.04975, sec. 4.1) stores them in a suffix tree instead.
 *
 * A tree of guesses starts at a match of m tokens. Each step adds the node with the largest D.
 * D is the product of the relative frequencies along the path of a node; it estimates the
 * probability of acceptance. Of nodes with equal D, the node with the latest occurrence in the
 * text is added first. Of all matches, the match whose tree has the largest sum of D is used
 * (sec. 4.2). A path that reaches the end of the text continues with a shorter match, so that
 * repetitive text is continued.
 *
 * The automaton can also contain the expected text, before the session's text. The expected
 * text is only a source of guesses (esp_suffix_seed). A separator keeps matches from extending
 * over both texts.
 */
#ifndef ESP_SUFFIX_AUTOMATON_H
#define ESP_SUFFIX_AUTOMATON_H

#include "engine/espalier.h"

struct esp_suffix_state {
    int32_t length; /* length of the longest of its substrings */
    int32_t link;   /* state of the next shorter suffix; -1 if there is none */
    int32_t count;  /* number of positions at which its substrings end */
    int32_t end;    /* the last of these positions, in tokens */
    int32_t edges;  /* the state's first edge; -1 if there is none */
};

struct esp_suffix_edge {
    int32_t from, token, to, next; /* next: the state's next edge; -1 if there is none */
};

/* A zero-initialised struct is the automaton of the empty text. */
struct esp_suffix {
    int32_t *text; /* (length) the seed and a separator, if there is a seed; then the text */
    int length, room;
    int seed; /* number of tokens before the text: the seed and the separator */
    struct esp_suffix_state *state;
    int states, last;
    struct esp_suffix_edge *edge;
    int edges;
    int32_t *slot; /* (slots) hash table of edges by state and token; -1 means free */
    int slots;
};

/* Updates the automaton to this text, or to the last 8,192 to 16,384 tokens of a longer text.
 * If the text only grew, just the new tokens are added. If ESP_E_MEMORY is returned, the
 * automaton is empty. */
int esp_suffix_read(struct esp_suffix *suffix, const int32_t *text, int length);
/* Sets the seed to the first tokens of another text, at most ESP_SUFFIX_MOST. If `count` is 0,
 * there is no seed. The automaton then contains only the seed; the text must be read again. If
 * ESP_E_MEMORY is returned, the automaton is empty. */
int esp_suffix_seed(struct esp_suffix *suffix, const int32_t *tokens, int count);
void esp_suffix_close(struct esp_suffix *suffix);

/* One guess. In an array of guesses, parents come before their children. */
struct esp_guess {
    int32_t parent, token; /* parent: index of a guess; -1 means the root */
    int depth;             /* 1 for the first token after the text */
    float q;       /* fraction of the parent's continuations that begin with this token */
    double d;      /* product of q along the path */
    int32_t state; /* the state of the automaton after this token */
    /* retrieval.c sets the next two members. It adds guesses of other sources, too. */
    uint8_t class;  /* ESP_MATCH_... */
    uint8_t source; /* enum esp_source */
};

enum { ESP_GUESSES = 256 }; /* maximum number of guesses */
/* Maximum number of tokens of a text in the automaton. There is a limit because a text can be
 * endless, and because each repetition in a repetitive text takes time. */
enum { ESP_SUFFIX_MOST = 1 << 14 };

struct esp_guess_plan {
    int nodes, depth; /* maximum number of guesses, and maximum depth */
    double factor;    /* maximum nodes per token of the match; 0 means nothing is copied */
    double least;     /* minimum D of a node */
};

/* Writes guesses for the tokens that follow the text, in the order in which the tree grew.
 * There are at most plan->nodes and at most ESP_GUESSES guesses. Returns their number. Sets
 * *match to the length of the match, or to 0 if there is none. */
int esp_suffix_guess(const struct esp_suffix *suffix, const struct esp_guess_plan *plan,
                     struct esp_guess *guesses, int *match);

/* Returns the distance in tokens from a guess to the latest occurrence that it was copied from,
 * or 0 if that occurrence is in the seed. */
int esp_suffix_back(const struct esp_suffix *suffix, const struct esp_guess *guess);

#endif
