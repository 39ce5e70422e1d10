/* decision.h - finds the facts of the iteration that explain a node's verdict.
 *
 * All sentences about verdicts are made from these facts, so that a test can compare the
 * sentences with the facts.
 */
#ifndef ESP_DECISION_H
#define ESP_DECISION_H

#include "engine/espalier.h"

enum esp_decision_kind {
    /* There is no decision: the node is the root, was cut, or was not reached by the verifier,
     * or the recording lacks the numbers. */
    ESP_DECISION_NONE,
    ESP_DECISION_CHOICE,  /* temperature 0: accepted if it is the target's likeliest token */
    ESP_DECISION_TEST,    /* a random number was compared: accepted if and only if u < chance */
    ESP_DECISION_DRAW,    /* this token was drawn from the target's distribution */
    ESP_DECISION_MISS,    /* another token, `token`, was drawn from the target's distribution */
    ESP_DECISION_PATH,    /* accepted with the whole path to `node`, which passed its test */
    ESP_DECISION_SIBLING, /* not tested, because its sibling `node` was accepted */
    ESP_DECISION_ANCESTOR, /* not reached, because its ancestor `node` was not accepted */
};

struct esp_decision {
    int kind;
    /* For TEST and PATH, these are the two numbers that were compared. For DRAW, and for MISS
     * if known, `chance` is the probability of this token in the distribution from which the
     * verifier drew. All other values are NaN. */
    double u, chance;
    /* DRAW and MISS: the token was drawn from the target's whole distribution, not from its
     * residual after rejected drafts. */
    bool whole;
    int node;      /* for PATH, SIBLING and ANCESTOR; otherwise -1 */
    int32_t token; /* the text's token after the parent; -1: the parent is not in the text */
};

void esp_decision_of(struct esp_decision *decision, const struct esp_iteration *it, int node);

#endif
