/* formula.h - writes the acceptance test of a node as the verifier's formula with numbers.
 *
 * The formulas are in the table of verifiers (struct esp_item). In a formula, a letter after
 * '$' stands for a number of the node. The numbers are computed from the iteration alone, so a
 * replay shows the same numbers as the live session. `a` is the recorded acceptance
 * probability:
 *
 *     $p $q  target and draft probability given the parent
 *     $l     a q       the residual of p after rejected drafts (specinfer)
 *     $Q     q / (1 - sum of q of the siblings drawn before), $L = a $Q    (swor)
 *     $k     p / (a q)                                                     (rho of spectr)
 *     $r     p / a     the distribution of the picked draft (khisti)
 *     $v $w  the weight min(1, w' p / q) of the parent and of the node     (bv)
 */
#ifndef ESP_FORMULA_H
#define ESP_FORMULA_H

#include "engine/espalier.h"

/* Finds the entry of a list for "name" or "name:parameters". Returns false if there is none.
 */
bool esp_item_of(enum esp_list list, const char *spec, struct esp_item *item);

/* Writes the test of a node as a formula, or "" if the node was neither tested nor drawn. */
void esp_formula_text(char *text, size_t size, const struct esp_iteration *it, int node);

/* Returns the probability that the verifier accepts one of the children of `node`. This is the
 * sum of the children's branching probabilities; NaN if these are unknown. */
double esp_formula_goes_on(const struct esp_iteration *it, int node);

/* Returns the number of tokens that this tree gives on average over the verifier's random
 * numbers. For each node, the branching probabilities from the root to the node are multiplied;
 * for the root this product is 1. The result is the sum of these products
 * (delayed-tree-expansion, eqs. 1 to 3). It is NaN if branching probabilities are unknown
 * because they were not requested (esp_session_explain) or the verifier has none. */
double esp_formula_tokens(const struct esp_iteration *it);

#endif
