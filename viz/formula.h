/* formula.h - the acceptance test of a node as its verifier's formula, with numbers filled in.
 *
 * The formulas stand in the table of verifiers (struct esp_item); here a letter after '$'
 * becomes a number of the node, computed from the iteration alone, so that a replay shows what
 * the live session did. With a the recorded probability of acceptance:
 *
 *     $p $q  target and draft probability at the parent
 *     $l     a q       what refused drafts left of p (specinfer)
 *     $Q     q / (1 - sum of q of the siblings drawn before), $L = a $Q    (swor)
 *     $k     p / (a q)                                                     (rho of spectr)
 *     $r     p / a     the law of the draft that was picked (khisti)
 *     $v $w  the weight min(1, w' p / q) of the parent and of the node     (bv)
 */
#ifndef ESP_FORMULA_H
#define ESP_FORMULA_H

#include "engine/espalier.h"

/* "" if the node was neither tested nor drawn. */
void esp_formula_text(char *text, size_t size, const struct esp_iteration *it, int node);

/* Probability that the verifier accepts one of the children of `node` as they are: the sum of
 * their branching probabilities; NaN if they are not known. */
double esp_formula_goes_on(const struct esp_iteration *it, int node);

/* Tokens that the verifier commits on this tree on average over its random numbers: the sum
 * over nodes of the product of branching probabilities on the way there, the root's being 1
 * (delayed-tree-expansion, eqs. 1 to 3). NaN where branching is not known: it was not asked for
 * (esp_session_explain), or the verifier has none. */
double esp_formula_tokens(const struct esp_iteration *it);

#endif
