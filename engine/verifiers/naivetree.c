/* naivetree.c - tests the first draft; after a rejection, the token drawn may be another draft.
 * Verifier `naive` does the same with a tree that is a single path.
 *
 * The first child x is accepted with probability min(1, p(x) / q(x)). Otherwise the token is
 * drawn from norm((p - q)+). If this token is one of the other children, the walk continues at
 * that child (delayed-tree-expansion, alg. 2).
 *
 * With one child per node, the token drawn after a rejection is never the rejected child. So
 * the first rejection ends the path. This is speculative sampling (Leviathan et al. 2023, Chen
 * et al. 2023), which has the name `naive` in delayed-tree-expansion, sec. 3.1.
 */
#include <math.h>

#include "engine/verifiers/verifier.h"

static int solve(struct esp_verify *v, const struct esp_site *site, struct esp_residual *left)
{
    const int first = site->draws[0];
    if (esp_verify_accept(v, first, esp_keep(v->p_of[first], v->q_of[first])))
        return first;
    return esp_residual_refuse(v, site->node, 1, left, NULL);
}

/* Returns the probability that the first draft is accepted, or that the token drawn from the
 * residual is one of the other k - 1 drafts (delayed-tree-expansion, alg. 7). */
static double acceptance_rate(const double *p, const double *q, int n, int k)
{
    double rate = 0;
    for (int x = 0; x < n; x++) {
        rate += fmin(p[x], q[x]);
        if (p[x] > q[x])
            rate += (p[x] - q[x]) * (1 - pow(1 - q[x], k - 1));
    }
    return rate;
}

/* Computes the branching probabilities (delayed-tree-expansion, alg. 12). */
static int branching(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch)
{
    int32_t first = children[0];
    double keep = esp_keep(p[first], q[first]), left = 0;
    for (int x = 0; x < n; x++)
        left += fmax(p[x] - q[x], 0);
    for (int i = 0; i < k; i++) {
        int32_t x = children[i];
        branch[i] = left > 0 ? (1 - keep) * fmax(p[x] - q[x], 0) / left : 0;
        if (x == first)
            branch[i] += keep;
    }
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_naivetree = {
    .name = "naivetree",
    .summary = "test the first draft; after a rejection, draw a token (maybe another draft)",
    .source = "delayed-tree-expansion, app. B.2",
    .lossless = ESP_DRAW_IID,
    .formula = "min(1, p/q)",
    .numbers = "min(1, $p/$q)",
    .where = "only the first draft is tested",
    .solve = solve,
    .acceptance_rate = acceptance_rate,
    .branching = branching,
};

const struct esp_verifier_ops esp_verifier_naive = {
    .name = "naive",
    .summary = "speculative sampling, token by token, along one path",
    .source = "Leviathan et al. 2023, Chen et al. 2023",
    .lossless = ESP_DRAW_IID,
    .single_path = true,
    .formula = "min(1, p/q)",
    .numbers = "min(1, $p/$q)",
    .solve = solve,
    .acceptance_rate = acceptance_rate,
    .branching = branching,
};
