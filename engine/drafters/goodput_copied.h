/* goodput_copied.h - the retrieved tree that drafter goodput may verify (retrieval.h), and the
 * only one of drafter recycle.
 *
 * It takes rows but no draft pass, and has an account of its own. Above temperature 0 the
 * target draws as it does without a tree, and follows the tree where it has that token.
 */
#ifndef ESP_GOODPUT_COPIED_H
#define ESP_GOODPUT_COPIED_H

#include "engine/drafters/goodput_rate.h"
#include "engine/drafters/retrieval.h"

/* Steps of plain decoding that its account starts with. Guesses are judged whether they are
 * verified or not, so little has to be spent to find out whether they are right. */
#define ESP_COPIED_SAVINGS 0.25

struct esp_copied {
    struct esp_retrieval retrieval;
    double balance; /* of its account, in steps of plain decoding */
    int nodes;      /* of this iteration's tree, if it pays */
    bool used;      /* this tree is verified */
};

/* Which guesses to find. */
struct esp_copied_plan {
    int depth;          /* at most */
    bool copy, recycle; /* from the text and the expected text; recycled tokens */
    bool free;          /* whatever their rows cost */
};

/* Finds this iteration's guesses. */
int esp_copied_find(struct esp_copied *copied, const struct esp_draft *draft,
                    const struct esp_rate *rate, const struct esp_copied_plan *plan);

/* Chooses the number of guesses with the best gain over the cost of their rows, as far as the
 * account holds that, and whether they are verified: if they are expected to gain at least
 * `least` tokens over plain decoding. */
void esp_copied_choose(struct esp_copied *copied, const struct esp_rate *rate, double least);

/* Grows the tree; returns its expected tokens. */
double esp_copied_take(struct esp_copied *copied, struct esp_draft *draft);

/* Learns from the committed tokens. `saved`: time, in steps, that the iteration saved. */
void esp_copied_learn(struct esp_copied *copied, const struct esp_rate *rate, int right,
                      double saved);

#endif
