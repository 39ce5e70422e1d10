/* swor.c - tests children that were drawn without replacement (dyspec, alg. 3; Sequoia, Chen
 * et al. 2024).
 *
 * This is recursive rejection with a draft distribution that shrinks at every rejection. At
 * first P = p and Q = q. Child s, in drawing order, is accepted with probability min(1, P(s) /
 * Q(s)). Otherwise P becomes norm((P - Q)+) and s is removed from Q; the next child was drawn
 * from this Q. If no child is accepted, the token is drawn from P. The tests end at a child
 * with Q(s) = 0, because it cannot have been drawn from Q.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/verifiers/verifier.h"

static int solve(struct esp_verify *v, const struct esp_site *site, struct esp_residual *left)
{
    for (int i = 0; i < site->count; i++) {
        int child = site->draws[i];
        if (!(v->q_of[child] > 0))
            break;
        if (esp_verify_accept(v, child, esp_keep(v->p_of[child], v->q_of[child])))
            return child;
        int status = esp_residual_refuse(v, site->node, 1, left, NULL);
        if (status == ESP_OK)
            status = esp_residual_remove(v, site->node, child, left);
        if (status < 0)
            return status;
    }
    return 0;
}

/* Computes the branching probabilities, given the children in drawing order. They are exact,
 * because the children are tested in this order. */
static int branching(const double *target, const double *draft, int n, const int32_t *children,
                     int k, double *branch)
{
    double *p = malloc(2 * (size_t)n * sizeof *p), *q = p + n, refused = 1;
    if (!p)
        return ESP_E_MEMORY;
    memcpy(p, target, (size_t)n * sizeof *p);
    memcpy(q, draft, (size_t)n * sizeof *q);
    for (int i = 0; i < k; i++) {
        double keep = esp_keep(p[children[i]], q[children[i]]), q_sum = 0;
        branch[i] = refused * keep;
        refused *= 1 - keep;
        esp_formula_refuse(p, q, n);
        q[children[i]] = 0;
        for (int x = 0; x < n; x++)
            q_sum += q[x];
        for (int x = 0; x < n && q_sum > 0; x++)
            q[x] /= q_sum;
    }
    for (int i = 0; i < k; i++)
        branch[i] += refused * p[children[i]];
    free(p);
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_swor = {
    .name = "swor",
    .summary = "test children drawn without replacement, each against the current residual",
    .source = "dyspec, alg. 3; Sequoia",
    .differs = "the tests end if q has no probability left, as in dyspec, app. A.3. Sequoia "
               "continues the tests",
    .lossless = ESP_DRAW_SWOR,
    .preferred = ESP_DRAW_SWOR,
    .formula = "min(1, P/Q)",
    .numbers = "min(1, $L/$Q)",
    .where = "P and Q are the residuals of p and q after the rejected siblings",
    .solve = solve,
    .branching = branching,
};
