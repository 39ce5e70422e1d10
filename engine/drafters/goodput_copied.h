/* goodput_copied.h - the retrieved tree that drafter goodput may verify (retrieval.h).
 *
 * It takes rows but no draft pass, and has an account of its own. Above temperature 0 the
 * target draws as it does without a tree, and follows the tree where it has that token.
 */
#ifndef ESP_GOODPUT_COPIED_H
#define ESP_GOODPUT_COPIED_H

#include "engine/drafters/goodput_rate.h"
#include "engine/drafters/retrieval.h"

struct esp_copied {
    struct esp_retrieval retrieval;
    double value[ESP_GUESSES]; /* P of each guess */
    double balance;            /* of its account, in steps of plain decoding */
    int nodes;                 /* of this iteration's tree, if it pays */
    bool used;                 /* this tree is verified */
};

/* Finds this iteration's guesses, down to this depth. */
int esp_copied_find(struct esp_copied *copied, const struct esp_draft *draft,
                    const struct esp_rate *rate, int depth);

/* Chooses the number of guesses with the best gain over the cost of their rows, and whether
 * they are verified: if they are expected to gain at least `least` tokens over plain decoding,
 * and the account holds the cost. */
void esp_copied_choose(struct esp_copied *copied, const struct esp_rate *rate, double least);

/* Grows the tree; returns its expected tokens. */
double esp_copied_take(struct esp_copied *copied, struct esp_draft *draft);

/* Learns from the committed tokens. `saved`: time, in steps, that the iteration saved. */
void esp_copied_learn(struct esp_copied *copied, const struct esp_rate *rate, int right,
                      double saved);

#endif
