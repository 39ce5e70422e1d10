/* decision.h - the reason of a node's verdict, as facts of the iteration.
 *
 * All sentences about verdicts are made from these facts, so that a test can compare the two.
 */
#ifndef ESP_DECISION_H
#define ESP_DECISION_H

#include "engine/espalier.h"

enum esp_decision_kind {
    /* None: the root, a cut node, a node that the verifier did not reach, or a recording that
     * lacks the numbers. */
    ESP_DECISION_NONE,
    ESP_DECISION_CHOICE,   /* temperature 0: whether it is the target's first choice */
    ESP_DECISION_TEST,     /* a random number: accepted if and only if u < chance */
    ESP_DECISION_DRAW,     /* the token drawn from the target's distribution is this one, */
    ESP_DECISION_MISS,     /* or it is another one, `token` */
    ESP_DECISION_PATH,     /* accepted with the whole path to `node`, which passed its test */
    ESP_DECISION_SIBLING,  /* not tested: sibling `node` was accepted */
    ESP_DECISION_ANCESTOR, /* not reached: ancestor `node` was not accepted */
};

struct esp_decision {
    int kind;
    /* Test or path: the two numbers compared. Draw, and miss if known: the probability of this
     * token in the distribution of the draw. Otherwise NaN. */
    double u, chance;
    /* Draw or miss: from the target's whole distribution, not from its residual after rejected
     * drafts. */
    bool whole;
    int node; /* of path, sibling and ancestor; else -1 */
    int32_t
        token; /* the one that follows the parent in the text; -1: the parent is not in it */
};

void esp_decision_of(struct esp_decision *decision, const struct esp_iteration *it, int node);

#endif
