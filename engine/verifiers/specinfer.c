/* specinfer.c - recursive rejection: after each rejection, the next draft is tested against
 * the residual.
 *
 * A draft x, chosen uniformly from the untested drafts, is accepted with probability min(1,
 * p(x) / q(x)). Otherwise p becomes norm((p - q)+) and the next draft is tested. If all drafts
 * are rejected, the token is drawn from the last residual (Miao et al. 2024;
 * delayed-tree-expansion, alg. 4). One random number picks the draft and tests it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/verifiers/verifier.h"

static int solve(struct esp_verify *v, const struct esp_site *site, struct esp_residual *p)
{
    int32_t left[ESP_MAX_TESTED];
    double share[ESP_MAX_TESTED], keep[ESP_MAX_TESTED], u;
    memcpy(left, site->draws, (size_t)site->count * sizeof *left);
    for (int count = site->count; count > 0; count--) {
        int which;
        for (int i = 0; i < count; i++) {
            share[i] = 1;
            keep[i] = esp_keep(esp_residual_of(v, p, left[i]), v->q_of[left[i]]);
        }
        bool accepted = esp_chance_test(&v->chance, share, keep, count, &which, &u);
        esp_verify_record(v, left[which], keep[which], u, accepted);
        if (accepted)
            return left[which];
        int status = esp_residual_refuse(v, site->node, 1, p, NULL);
        if (status < 0)
            return status;
        left[which] = left[count - 1];
    }
    return 0;
}

/* Computes the acceptance rate (delayed-tree-expansion, alg. 9). missed[x] is the probability
 * that token x is not one of the rejected drafts. */
static double acceptance_rate(const double *target, const double *q, int n, int k)
{
    double *p = malloc(2 * (size_t)n * sizeof *p), *missed = p + n, refused = 1;
    if (!p)
        return NAN;
    memcpy(p, target, (size_t)n * sizeof *p);
    for (int x = 0; x < n; x++)
        missed[x] = 1;
    for (int i = 0; i < k && refused > 0; i++) {
        double kept = 0;
        for (int x = 0; x < n; x++)
            kept += fmin(p[x], q[x]);
        refused *= fmax(1 - kept, 0);
        for (int x = 0; x < n && kept < 1; x++)
            missed[x] *= 1 - fmax(q[x] - p[x], 0) / (1 - kept);
        esp_formula_refuse(p, q, n);
    }
    double rate = 1 - refused;
    for (int x = 0; x < n; x++)
        rate += refused * p[x] * (1 - missed[x]);
    free(p);
    return rate;
}

enum { MOST_SUBSETS = 16 };

/* Computes the branching probabilities (delayed-tree-expansion, alg. 14, in forward order).
 * reach[S] is the probability that, at some step, exactly the drafts in set S are untested. The
 * residual depends only on the size of S, so larger sets are visited before smaller sets. */
static int branching(const double *target, const double *q, int n, const int32_t *children,
                     int k, double *branch)
{
    if (k > MOST_SUBSETS)
        return ESP_E_UNSUPPORTED;
    unsigned sets = 1u << k;
    double *p = malloc(((size_t)n + sets) * sizeof *p), *reach = p + n;
    double accepted[MOST_SUBSETS] = {0};
    if (!p)
        return ESP_E_MEMORY;
    memcpy(p, target, (size_t)n * sizeof *p);
    memset(reach, 0, sets * sizeof *reach);
    reach[sets - 1] = 1;
    for (int left = k; left > 0; left--) {
        for (unsigned s = 0; s < sets; s++) {
            if (__builtin_popcount(s) != left)
                continue;
            for (int i = 0; i < k; i++) {
                if (!(s >> i & 1))
                    continue;
                double keep = esp_keep(p[children[i]], q[children[i]]);
                double picked = reach[s] / left;
                accepted[i] += picked * keep;
                reach[s & ~(1u << i)] += picked * (1 - keep);
            }
        }
        esp_formula_refuse(p, q, n);
    }
    for (int i = 0; i < k; i++) {
        branch[i] = reach[0] * p[children[i]];
        for (int j = 0; j < k; j++)
            if (children[j] == children[i])
                branch[i] += accepted[j];
    }
    free(p);
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_specinfer = {
    .name = "specinfer",
    .summary = "test drafts in random order, each against the residual after earlier drafts",
    .source = "Miao et al. 2024; delayed-tree-expansion, app. B.4",
    .lossless = ESP_DRAW_IID,
    .formula = "min(1, p'/q)",
    .numbers = "min(1, $l/$q)",
    .where = "p' is the residual of p after the drafts that were rejected before",
    .solve = solve,
    .acceptance_rate = acceptance_rate,
    .branching = branching,
};
