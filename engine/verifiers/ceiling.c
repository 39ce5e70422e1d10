/* ceiling.c - alpha* = min over prefixes S, in ascending order of p/q, of p(S) + 1 - q(S)^k.
 *
 * For any set S of tokens: if all k drafts lie in S, which has probability q(S)^k, then the
 * token is a draft only if it is in S, which has probability p(S). So no verifier accepts more
 * often than 1 - q(S)^k + p(S). By max-flow min-cut some verifier reaches the smallest of these
 * bounds, and the S of the smallest bound is a prefix: among sets with the same q(S), the one
 * with the smallest p(S) holds the tokens of smallest p/q.
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
