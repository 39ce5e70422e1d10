/* naivetree.h - speculative sampling of the first child of a node, for `naive` and
 * `naivetree`. */
#ifndef ESP_NAIVETREE_H
#define ESP_NAIVETREE_H

#include "engine/verifiers/verifier.h"

int esp_naivetree_solve(struct esp_verify *verify, const struct esp_site *site, int32_t *token);
double esp_naivetree_acceptance(const double *p, const double *q, int n, int k);
int esp_naivetree_branching(const double *p, const double *q, int n, const int32_t *children,
                            int k, double *branch);

#endif
