/* goodput_copied.h - a tree of guesses made without the draft model (retrieval.h). Drafter
 * goodput can use it instead of a drafted tree; drafter recycle has only such trees.
 *
 * The tree costs rows but no draft pass. It has its own account, separate from the draft
 * model's (goodput_account.h). Above temperature 0, each token is drawn from the target's
 * distribution, as without a tree. A node is accepted if it has the drawn token.
 */
#ifndef ESP_GOODPUT_COPIED_H
#define ESP_GOODPUT_COPIED_H

#include "engine/drafters/goodput_rate.h"
#include "engine/drafters/retrieval.h"

/* Initial balance of the account, in steps of plain decoding. It is small, because finding out
 * how often guesses are right costs little: they are compared with the committed tokens even if
 * they are not verified. */
#define ESP_COPIED_SAVINGS 0.25

struct esp_copied {
    struct esp_retrieval retrieval;
    double balance; /* balance of the account, in steps of plain decoding */
    int nodes;      /* number of guesses chosen for this iteration's tree */
    bool used;      /* true if this tree is verified */
};

/* Says which guesses to find. */
struct esp_copied_plan {
    int depth;    /* maximum depth */
    bool copy;    /* copy guesses from the text so far and from the expected text */
    bool recycle; /* guess recycled tokens (recycled.h) */
    bool free;    /* find guesses even if their rows cost more time than they save */
};

/* Finds this iteration's guesses. */
int esp_copied_find(struct esp_copied *copied, const struct esp_draft *draft,
                    const struct esp_rate *rate, const struct esp_copied_plan *plan);

/* Chooses the number of guesses for which the gain minus the cost of the rows is largest. These
 * guesses are verified if they are expected to gain at least `least` tokens over plain
 * decoding, and if their cost is at most the balance of the account. */
void esp_copied_choose(struct esp_copied *copied, const struct esp_rate *rate, double least);

/* Adds the chosen guesses to the tree. Returns the expected number of committed tokens. */
double esp_copied_take(struct esp_copied *copied, struct esp_draft *draft);

/* Updates the account. right: committed tokens that were guessed; saved: time that the
 * iteration saved, in steps of plain decoding. */
void esp_copied_learn(struct esp_copied *copied, const struct esp_rate *rate, int right,
                      double saved);

#endif
