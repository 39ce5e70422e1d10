/* nss.c - naive sampling: samples from the target and follows the token if it was drafted
 * (Miao et al. 2024).
 *
 * It does not use the draft's probabilities, so it is exact for every tree, however the nodes
 * were chosen. For trees of the likeliest tokens it is the only exact verifier
 * (delayed-tree-expansion, alg. 1).
 */
#include <math.h>

#include "engine/verifiers/verifier.h"

static int solve(struct esp_verify *v, const struct esp_site *site, struct esp_residual *left)
{
    (void)v, (void)site, (void)left;
    return 0;
}

/* Returns the probability that the token drawn from p is one of the k independent drafts
 * (delayed-tree-expansion, alg. 6). */
static double acceptance_rate(const double *p, const double *q, int n, int k)
{
    double rate = 0;
    for (int x = 0; x < n; x++)
        rate += p[x] * (1 - pow(1 - q[x], k));
    return rate;
}

/* Computes the branching probabilities (delayed-tree-expansion, alg. 11). */
static int branching(const double *p, const double *q, int n, const int32_t *children, int k,
                     double *branch)
{
    (void)q, (void)n;
    for (int i = 0; i < k; i++)
        branch[i] = p[children[i]];
    return ESP_OK;
}

const struct esp_verifier_ops esp_verifier_nss = {
    .name = "nss",
    .summary = "sample from the target and follow the token if it was drafted",
    .source = "Miao et al. 2024; delayed-tree-expansion, app. B.1",
    .lossless = ESP_DRAW_TOPK | ESP_DRAW_IID | ESP_DRAW_SWOR,
    .preferred = ESP_DRAW_TOPK,
    .without_q = true,
    .formula = "p",
    .numbers = "$p",
    .where = "the token drawn from p is this one",
    .solve = solve,
    .acceptance_rate = acceptance_rate,
    .branching = branching,
};
