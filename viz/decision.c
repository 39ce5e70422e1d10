/* decision.c - finds the reason for a node's verdict; see decision.h.
 *
 * A node has two numbers, u and acceptance, with two possible meanings. If the verifier tested
 * the node, it compared u with the acceptance. If it drew this token from a distribution
 * (`drawn`), u selected one of the tokens in it. Then the acceptance is only the probability of
 * this token, and u can be above it.
 */
#include "viz/decision.h"

#include <math.h>
#include <string.h>

#include "viz/tree_view.h"

static bool is_greedy(const struct esp_iteration *it)
{
    return it->verifier && strncmp(it->verifier, "greedy", 6) == 0;
}

/* Returns whether the token was drawn. Early recordings lack the flag `drawn`. In them, a token
 * that was accepted although u is not below the acceptance must have been drawn. */
static bool is_drawn(const struct esp_node *n)
{
    return n->drawn || (n->verdict == ESP_ACCEPTED && n->u >= n->acceptance);
}

static bool is_tested(const struct esp_node *n)
{
    return isfinite(n->u) && isfinite(n->acceptance) && !is_drawn(n);
}

/* Returns whether the token after `parent` was drawn from the target's whole distribution. This
 * is true if no child of `parent` was tested. If the drawn token is a child, it must also have
 * been drawn with its target probability. */
static bool drew_from_all(const struct esp_iteration *it, int parent)
{
    for (int i = parent + 1; i < it->tree.count; i++) {
        const struct esp_node *n = &it->tree.nodes[i];
        if (n->parent != parent || !isfinite(n->u))
            continue;
        if (is_tested(n) || fabs(n->acceptance - n->p) > 1e-3 * n->p)
            return false;
    }
    return true;
}

/* Returns the first node below `node` on the accepted path that passed a test, or -1. */
static int tested_below(const struct esp_iteration *it, int node)
{
    for (int i = it->tree.nodes[node].depth; i < it->path_length; i++)
        if (is_tested(&it->tree.nodes[it->path[i]]))
            return it->path[i];
    return -1;
}

static void of_accepted(struct esp_decision *d, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    if (is_greedy(it)) {
        d->kind = ESP_DECISION_CHOICE;
    } else if (isfinite(n->u) && isfinite(n->acceptance)) {
        d->kind = is_drawn(n) ? ESP_DECISION_DRAW : ESP_DECISION_TEST;
        d->u = n->u;
        d->chance = n->acceptance;
        d->whole = is_drawn(n) && drew_from_all(it, n->parent);
    } else if ((d->node = tested_below(it, node)) >= 0) {
        d->kind = ESP_DECISION_PATH;
        d->u = it->tree.nodes[d->node].u;
        d->chance = it->tree.nodes[d->node].acceptance;
    }
}

static void of_rejected(struct esp_decision *d, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    if (is_greedy(it)) {
        d->kind = ESP_DECISION_CHOICE;
    } else if (is_tested(n)) {
        d->kind = ESP_DECISION_TEST;
        d->u = n->u;
        d->chance = n->acceptance;
    } else if (d->token >= 0) {
        d->kind = ESP_DECISION_MISS;
        d->whole = drew_from_all(it, n->parent);
        d->chance = d->whole ? n->p : NAN;
    }
}

/* Returns the nearest ancestor that the verifier did not accept, or -1. */
static int refused_ancestor(const struct esp_iteration *it, int node)
{
    int at = it->tree.nodes[node].parent;
    while (at > 0 && it->tree.nodes[at].verdict == ESP_ACCEPTED)
        at = it->tree.nodes[at].parent;
    return at > 0 ? at : -1;
}

static int accepted_sibling(const struct esp_iteration *it, int node)
{
    for (int i = 0; i < it->path_length; i++)
        if (it->path[i] != node &&
            it->tree.nodes[it->path[i]].parent == it->tree.nodes[node].parent)
            return it->path[i];
    return -1;
}

static void of_unvisited(struct esp_decision *d, const struct esp_iteration *it, int node)
{
    if ((d->node = refused_ancestor(it, node)) >= 0)
        d->kind = ESP_DECISION_ANCESTOR;
    else if ((d->node = accepted_sibling(it, node)) >= 0)
        d->kind = ESP_DECISION_SIBLING;
}

void esp_decision_of(struct esp_decision *d, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    *d = (struct esp_decision){ESP_DECISION_NONE, NAN, NAN, false, -1, -1};
    if (node == 0 || n->verdict == ESP_CUT)
        return;
    d->token = esp_target_choice(it, n->parent);
    if (n->verdict == ESP_ACCEPTED)
        of_accepted(d, it, node);
    else if (n->verdict == ESP_REJECTED)
        of_rejected(d, it, node);
    else
        of_unvisited(d, it, node);
}
