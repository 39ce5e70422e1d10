/* formulas.c - evaluates a verifier's formulas at the nodes of a tree.
 *
 * A verifier decides at random, once per iteration. The display also shows the probabilities of
 * its decisions. For this, the verifier's formulas (verifier.h) are evaluated at every node
 * with children, before the verifier runs and changes the rows of p and q. Unlike verifiers,
 * formulas need whole rows on the host. They are therefore evaluated only on request. Nodes are
 * processed in flattened order, until their rows would have more than MOST_VALUES values.
 *
 * The acceptance rate and the ceiling are averages over independent draws of the children
 * (delayed-tree-expansion, def. 5.1). If the children are the likeliest tokens, only the
 * verifier is random: the rate is the sum of the branching probabilities, and the ceiling is
 * the summed p of the children.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/verifiers/verifier.h"

/* The maximum number of values of p, and of q, for which formulas are evaluated. With this many
 * values, the formulas take at most 1/3 s. */
enum { MOST_VALUES = 1 << 21 };

struct arrays {
    int n;
    float *row;    /* (n) */
    double *p, *q; /* (n) */
};

static int read_row(const struct esp_verify *v, struct esp_rows *rows, int which,
                    const struct arrays *a, double *to)
{
    int status = v->ops->read_row(rows, which, a->row);
    for (int x = 0; x < a->n; x++)
        to[x] = a->row[x];
    return status;
}

void esp_formula_refuse(double *p, const double *q, int n)
{
    double sum = 0;
    for (int x = 0; x < n; x++)
        sum += fmax(p[x] - q[x], 0);
    for (int x = 0; x < n && sum > 0; x++)
        p[x] = fmax(p[x] - q[x], 0) / sum;
}

/* Sets the branching probability of each child. Returns the sum over the children; a child that
 * was drawn repeatedly is added only once. */
static double set_branching(struct esp_verify *v, const struct esp_verifier_ops *ops,
                            const struct arrays *a, const int32_t *draws, int count)
{
    struct esp_node *nodes = v->tree->tree.nodes;
    int32_t tokens[ESP_MAX_TESTED];
    double branch[ESP_MAX_TESTED], sum = 0;
    for (int i = 0; i < count; i++)
        tokens[i] = nodes[draws[i]].token;
    if (!ops->branching || ops->branching(a->p, a->q, a->n, tokens, count, branch) < 0)
        return NAN;
    for (int i = 0; i < count; i++) {
        struct esp_node *child = &nodes[draws[i]];
        if (isnan(child->branching))
            sum += branch[i];
        child->branching = (float)branch[i];
    }
    return sum;
}

static double p_of_children(const struct esp_verify *v, int node)
{
    double sum = 0;
    for (int c = v->tree->first_child[node]; c >= 0; c = v->tree->next_sibling[c])
        if (v->tree->tree.nodes[c].verdict != ESP_CUT)
            sum += v->p_of[c];
    return sum;
}

static int explain_node(struct esp_verify *v, const struct esp_verifier_ops *ops, int node,
                        const struct arrays *a)
{
    struct esp_node *record = &v->tree->tree.nodes[node];
    int32_t draws[ESP_MAX_TESTED];
    int q_row = v->q ? v->q_row[node] : -1;
    int count = esp_tree_draws(v->tree, node, draws, ESP_MAX_TESTED);
    if (count == 0 || count > ESP_MAX_TESTED)
        return ESP_OK;
    if (q_row < 0 && !ops->without_q) { /* if the children were not drawn from q, only the token
                                           drawn from p decides */
        for (int i = 0; i < count; i++)
            v->tree->tree.nodes[draws[i]].branching = (float)v->p_of[draws[i]];
        return ESP_OK;
    }
    int status = read_row(v, v->p, v->tree->row[node], a, a->p);
    if (status == ESP_OK && q_row >= 0)
        status = read_row(v, v->q, q_row, a, a->q);
    if (status == ESP_OK && v->measure && q_row >= 0)
        status = esp_tree_measure_add(v->measure, record, a->p, a->q, a->n);
    if (status < 0 || !v->explain)
        return status;
    double sum = set_branching(v, ops, a, draws, count);
    if (v->draws == ESP_DRAW_TOPK) {
        record->acceptance_rate = (float)sum;
        record->ceiling = (float)p_of_children(v, node);
    } else if (v->draws == ESP_DRAW_IID && q_row >= 0) {
        record->ceiling = (float)esp_acceptance_ceiling(a->p, a->q, a->n, count);
        if (ops->acceptance_rate)
            record->acceptance_rate = (float)ops->acceptance_rate(a->p, a->q, a->n, count);
    }
    return ESP_OK;
}

int esp_verify_explain(struct esp_verify *v, const struct esp_verifier_ops *ops)
{
    const struct esp_tree *tree = &v->tree->tree;
    double start = esp_clock();
    size_t n = (size_t)v->p->vocabulary;
    struct arrays a = {.n = (int)n, .p = malloc(n * (2 * sizeof *a.p + sizeof *a.row))};
    int status = ESP_OK, left = MOST_VALUES / (int)n;
    if (!a.p)
        return ESP_OK;
    a.q = a.p + n;
    a.row = (float *)(a.q + n);
    for (int i = 0; status == ESP_OK && i < tree->verified && left > 0; i++) {
        int node = tree->order[i];
        if (v->tree->first_child[node] < 0)
            continue;
        left--;
        status = explain_node(v, ops, node, &a);
    }
    free(a.p);
    v->explained_seconds = esp_clock() - start;
    return status;
}
