/* ceiling.h - the highest acceptance rate of any lossless verifier at one node. */
#ifndef ESP_CEILING_H
#define ESP_CEILING_H

/* alpha*: the largest probability with which a token that follows p can be one of k independent
 * draws from q. p, q: (n). NaN if there is no memory. */
double esp_acceptance_ceiling(const double *p, const double *q, int n, int k);

#endif
