/* measure_node.c - adds a node of a verified tree to a measurement; see engine/tree_measure.h.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/tree_measure.h"
#include "engine/verifiers/verifier.h"

static int likeliest(const double *p, int n)
{
    int best = 0;
    for (int x = 1; x < n; x++)
        best = p[x] > p[best] ? x : best;
    return best;
}

static void add_depth(struct esp_depth_measure *d, const struct esp_tree_measure *m,
                      const double *p, const double *q, int n)
{
    for (int x = 0; x < n; x++)
        d->distance += fabs(p[x] - q[x]);
    d->ceiling += esp_acceptance_ceiling(p, q, n, m->draws);
    for (int i = 0; i < ESP_MEASURE_RULES && m->rules[i]; i++) {
        const struct esp_verifier_ops *rule = m->rules[i];
        d->rate[i] += rule->acceptance_rate && !rule->single_path
                          ? rule->acceptance_rate(p, q, n, m->draws)
                          : NAN;
    }
    d->nodes++;
}

static int add_guess(struct esp_rank_measure *r, const double *p, const double *q, int n)
{
    if (r->count == r->room) {
        const int room = r->room ? 2 * r->room : 256;
        struct esp_next_guess *guess = realloc(r->guess, (size_t)room * sizeof *guess);
        if (!guess)
            return ESP_E_MEMORY;
        r->guess = guess;
        r->room = room;
    }
    const int best = likeliest(p, n);
    r->guess[r->count++] =
        (struct esp_next_guess){.confidence = (float)q[best], .right = likeliest(q, n) == best};
    return ESP_OK;
}

int esp_tree_measure_add(struct esp_tree_measure *m, const struct esp_node *node,
                         const double *p, const double *q, int n)
{
    if (node->depth < ESP_MEASURE_DEPTHS)
        add_depth(&m->depth[node->depth], m, p, q, n);
    return node->depth == 1 && node->rank >= 0 && node->rank < ESP_MEASURE_RANKS
               ? add_guess(&m->rank[node->rank], p, q, n)
               : (int)ESP_OK;
}
