/* retrieval.c - see retrieval.h. */
#include "engine/drafters/retrieval.h"

#include <math.h>

static const double KEPT = 0.97; /* decay per tested position */
static const double WEIGHT = 2;  /* promised guesses that the prior counts as */
static const double MOST = 0.98; /* maximum rate */

static int class_of(int match)
{
    int class = 0;
    for (int most = 1; most < match && class < ESP_MATCH_CLASSES - 1; most *= 2)
        class ++;
    return class;
}

int esp_retrieval_find(struct esp_retrieval *r, const struct esp_draft *d,
                       struct esp_guess_plan *plan)
{
    plan->nodes = plan->nodes < d->tree->room ? plan->nodes : d->tree->room;
    plan->depth = plan->depth < d->max_depth ? plan->depth : d->max_depth;
    r->count = r->match = 0;
    int status = esp_suffix_read(&r->suffix, d->text, d->text_length);
    if (status == ESP_OK)
        r->count = esp_suffix_guess(&r->suffix, plan, r->guesses, &r->match);
    r->class = class_of(r->match);
    return status;
}

int32_t esp_retrieval_parent(const struct esp_retrieval *r, int i)
{
    return r->guesses[i].parent < 0 ? 0 : r->node[r->guesses[i].parent];
}

struct esp_node *esp_retrieval_add(struct esp_retrieval *r, struct esp_draft *d, int i)
{
    const struct esp_guess *g = &r->guesses[i];
    struct esp_node *nodes = d->tree->tree.nodes;
    const int32_t parent = esp_retrieval_parent(r, i);
    r->node[i] = esp_tree_add(d->tree, parent, g->token, g->q);
    if (r->node[i] < 0)
        return NULL;
    nodes[parent].reason = ESP_REASON_NONE;
    nodes[r->node[i]].copied = esp_suffix_back(&r->suffix, g);
    return &nodes[r->node[i]];
}

double esp_retrieval_rate(const struct esp_retrieval *r, const struct esp_guess *guess)
{
    const double right = r->right[r->class] + r->prior * WEIGHT;
    return fmin((double)guess->q * (right / (r->promised[r->class] + WEIGHT)), MOST);
}

int esp_retrieval_learn(struct esp_retrieval *r, const int32_t *committed, int count)
{
    const int class = r->class;
    int at = -1, depth = 0;
    while (r->count > 0 && depth < count) {
        double promised = 0;
        int next = -1;
        for (int i = at + 1; i < r->count; i++) {
            const struct esp_guess *g = &r->guesses[i];
            if (g->parent != at)
                continue;
            promised += (double)g->q;
            if (g->token == committed[depth])
                next = i;
        }
        if (promised <= 0)
            break;
        r->right[class] = KEPT * r->right[class] + (next >= 0);
        r->promised[class] = KEPT * r->promised[class] + promised;
        if (next < 0)
            break;
        at = next;
        depth++;
    }
    return depth;
}

void esp_retrieval_close(struct esp_retrieval *r)
{
    esp_suffix_close(&r->suffix);
    r->count = 0;
}
