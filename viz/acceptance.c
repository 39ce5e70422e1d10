/* acceptance.c - counts drafted and accepted tokens; see acceptance.h. */
#include "viz/acceptance.h"

#include <math.h>

#include "viz/formula.h"
#include "viz/tree_view.h"

static void count(struct esp_trial_counts *t, const struct esp_iteration *it, int index,
                  bool accepted)
{
    const struct esp_node *node = &it->tree.nodes[index];
    const double q = esp_draft_probability(it, index);
    t->tried++;
    t->accepted += accepted;
    if (isfinite(q)) { /* q is unknown for a copied token and in some recordings */
        t->q += q;
        t->with_q++;
    }
    if (isfinite(node->p)) {
        t->p += node->p;
        t->with_p++;
    }
}

static int bin_of(double q)
{
    int bin = (int)(q * ESP_ACCEPT_BINS);
    return bin < 0 ? 0 : bin < ESP_ACCEPT_BINS ? bin : ESP_ACCEPT_BINS - 1;
}

/* Counts the children of node `parent`, which the verifier reached. `next` is the child that
 * the verifier accepted, or -1. */
static void count_children(struct esp_acceptance *a, const struct esp_iteration *it, int parent,
                           int next)
{
    const struct esp_tree *tree = &it->tree;
    int depth = tree->nodes[parent].depth, children = 0;
    for (int u = parent + 1; u < tree->count; u++) {
        const struct esp_node *node = &tree->nodes[u];
        if (node->parent != parent || node->verdict == ESP_CUT)
            continue;
        children++;
        if (node->rank >= 0 && node->rank < ESP_ACCEPT_RANKS)
            count(&a->rank[node->rank], it, u, u == next);
        count(&a->source[esp_source_of(it, u)], it, u, u == next);
        if (isfinite(esp_draft_probability(it, u)))
            count(&a->share[bin_of(node->q)], it, u, u == next);
    }
    if (children > 0 && depth < ESP_ACCEPT_DEPTHS) {
        a->depth[depth].tried++;
        a->depth[depth].accepted += next >= 0;
    }
}

static void count_node(struct esp_acceptance *a, const struct esp_iteration *it, int index)
{
    const struct esp_node *node = &it->tree.nodes[index];
    const int depth = node->depth;
    if (node->verdict == ESP_CUT || depth < 0)
        return;
    if (depth >= 1 && depth <= ESP_ACCEPT_DEPTHS)
        a->depth[depth - 1].nodes++;
    if (depth >= 1 && node->rank >= 0 && node->rank < ESP_ACCEPT_RANKS)
        a->rank[node->rank].nodes++;
    if (depth >= 1)
        a->source[esp_source_of(it, index)].nodes++;
    if (depth >= 1 && isfinite(esp_draft_probability(it, index)))
        a->share[bin_of(node->q)].nodes++;
    if (depth < ESP_ACCEPT_DEPTHS && isfinite(node->acceptance_rate) &&
        isfinite(node->ceiling)) {
        a->depth[depth].rated++;
        a->depth[depth].rate += node->acceptance_rate;
        a->depth[depth].ceiling += node->ceiling;
    }
}

/* Returns how many blocks of 32 rows are needed for `rows` rows (see
 * esp_iteration.mask_blocks). */
static int blocks_of(int rows)
{
    return rows > 0 ? (rows + 31) / 32 : 0;
}

void esp_acceptance_add(struct esp_acceptance *a, const struct esp_iteration *it)
{
    const struct esp_tree *tree = &it->tree;
    const int length = it->path_length;
    const int drafted =
        tree->verified > 0 ? tree->verified - 1 : 0; /* 0 is possible in a recording */
    for (int i = 0; i <= length; i++)
        count_children(a, it, i == 0 ? 0 : it->path[i - 1], i < length ? it->path[i] : -1);
    for (int u = 0; u < tree->count; u++)
        count_node(a, it, u);
    a->length[length < ESP_ACCEPT_DEPTHS ? length : ESP_ACCEPT_DEPTHS]++;
    a->iterations++;
    a->drafted += drafted;
    a->most_nodes = drafted > a->most_nodes ? drafted : a->most_nodes;
    a->accepted += length;
    a->deepest += it->deepest;
    a->prefix_blocks += (int64_t)blocks_of(it->position - 1) * blocks_of(it->tree.verified);
    a->mask_blocks += it->mask_blocks;
    double expected = esp_formula_tokens(it);
    if (drafted > 0 && isfinite(expected)) {
        a->known++;
        a->expected += expected;
        a->obtained += length + 1;
    }
}

double esp_acceptance_error(const struct esp_acceptance *a)
{
    double sum = 0;
    int64_t tried = 0;
    for (int i = 0; i < ESP_ACCEPT_BINS; i++) {
        sum += fabs((double)a->share[i].accepted - a->share[i].q);
        tried += a->share[i].tried;
    }
    return tried > 0 ? sum / (double)tried : NAN;
}
