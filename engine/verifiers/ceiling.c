/* ceiling.c - computes the ceiling alpha*: the minimum of p(S) + 1 - q(S)^k over all prefixes
 * S of the tokens in ascending order of p/q.
 *
 * Take any set S of tokens. With probability q(S)^k all k drafts are in S. In this case the
 * token that a verifier returns can be a draft only if it is in S, which has probability p(S).
 * So no verifier accepts a draft more often than 1 - q(S)^k + p(S). By the max-flow min-cut
 * theorem, some verifier reaches the smallest of these bounds. The set S with the smallest
 * bound is a prefix: of all sets with the same q(S), the set of the tokens with the smallest
 * p/q has the smallest p(S).
 */
#include "engine/verifiers/verifier.h"

#include <math.h>
#include <stdlib.h>

struct pair {
    double p, q;
};

static int by_ratio(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    double left = x->p * y->q, right = y->p * x->q;
    return (left > right) - (left < right);
}

double esp_acceptance_ceiling(const double *p, const double *q, int n, int k)
{
    struct pair *order = malloc((size_t)n * sizeof *order);
    double best = 1, p_sum = 0, q_sum = 0;
    int count = 0;
    if (!order)
        return NAN;
    for (int x = 0; x < n; x++)
        if (q[x] > 0)
            order[count++] = (struct pair){p[x], q[x]};
    qsort(order, (size_t)count, sizeof *order, by_ratio);
    for (int i = 0; i < count; i++) {
        p_sum += order[i].p;
        q_sum += order[i].q;
        best = fmin(best, p_sum + 1 - pow(fmin(q_sum, 1), k));
    }
    free(order);
    return best;
}
