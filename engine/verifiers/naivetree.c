/* naivetree.c - test the first draft; after a rejection, the token drawn may be another draft.
 *
 * The first child x is kept with probability min(1, p(x) / q(x)). Otherwise the token is drawn
 * from norm((p - q)+), and if it is one of the other children, the walk continues at that child
 * (delayed-tree-expansion, alg. 2). With one child per node it equals `naive`.
 */
#include "engine/verifiers/naivetree.h"

#include <math.h>

int esp_naivetree_solve(struct esp_verify *v, const struct esp_site *site, int32_t *token)
{
    int first = site->draws[0];
    struct esp_residual left = esp_whole;
    if (esp_verify_accept(v, first, esp_keep(v->p_of[first], v->q_of[first]))) {
        *token = v->tree->tree.nodes[first].token;
        return ESP_OK;
    }
    int status = esp_residual_refuse(v, site->node, 1, &left, NULL);
    return status < 0 ? status : esp_residual_draw(v, site->node, &left, token);
}

/* Alg. 7: the first draft is kept, or the residual is one of the k - 1 others. */
double esp_naivetree_acceptance(const double *p, const double *q, int n, int k)
{
    double rate = 0;
    for (int x = 0; x < n; x++) {
        rate += fmin(p[x], q[x]);
        if (p[x] > q[x])
            rate += (p[x] - q[x]) * (1 - pow(1 - q[x], k - 1));
    }
    return rate;
}

/* Alg. 12. */
int esp_naivetree_branching(const double *p, const double *q, int n, const int32_t *children,
                            int k, double *branch)
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

static const struct esp_param params[] = {ESP_PARAM_LOSSY, {0}};

const struct esp_verifier_ops esp_verifier_naivetree = {
    .name = "naivetree",
    .summary = "test the first draft; after a rejection, the token drawn may be another draft",
    .source = "delayed-tree-expansion, app. B.2",
    .lossless = ESP_DRAW_IID,
    .formula = "min(1, p/q)",
    .numbers = "min(1, $p/$q)",
    .where = "only the first draft is tested",
    .params = params,
    .solve = esp_naivetree_solve,
    .acceptance_rate = esp_naivetree_acceptance,
    .branching = esp_naivetree_branching,
};
