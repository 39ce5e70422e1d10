/* tree_value.c - computes the mean number of tokens that a tree gains under a verifier; see
 * tree_value.h. */
#include "engine/train/tree_value.h"

#include <math.h>
#include <string.h>

#include "kernels/status.h"

static const double NOTHING = 1e-30; /* if a sum is smaller, p equals q up to rounding */

bool esp_tree_has_value(const struct esp_verifier_ops *rule)
{
    return (rule->branching && !rule->single_path && (rule->lossless & ESP_DRAW_IID)) ||
           rule == esp_verifier_find("traversal");
}

/* Describes a tree of independent draws. Node 0 is the root. */
struct tree {
    int count;
    struct node {
        int parent, depth;
        int32_t token;
        int row; /* the row with the distributions after this node */
        int draws;
        int draw[ESP_ACTION_PATHS]; /* children in drawing order, with repetitions */
        /* As in traversal.c: the node's weight, a and b of its residual max(0, a p - b q), and
         * the index of the next draw to test. */
        double weight, a, b;
        int next;
        bool entered;
    } node[ESP_ACTION_ROWS];
};

/* Adds a draw of `token` below `parent`: a new child with this row, or one more draw of an
 * existing child. Returns the child. */
static int draw(struct tree *tree, int parent, int32_t token, int row)
{
    struct node *above = &tree->node[parent];
    int child = -1;
    for (int i = 0; i < above->draws; i++)
        if (tree->node[above->draw[i]].token == token)
            child = above->draw[i];
    if (child < 0) {
        child = tree->count++;
        tree->node[child] = (struct node){
            .parent = parent, .depth = above->depth + 1, .token = token, .row = row};
    }
    above->draw[above->draws++] = child;
    return child;
}

/* ------------------------------------------------------------------ node by node */

/* Computes the branching probability of each draw below a node. If there is only one draw,
 * every verifier that reads q is equivalent to speculative sampling (sec. 3.2, note 2). */
static int branch_of(const struct tree *tree, const struct node *node,
                     const struct esp_distributions *d, const struct esp_verifier_ops *rule,
                     double *branch)
{
    const double *p = d->p[node->row], *q = d->q[node->row];
    int32_t token[ESP_ACTION_PATHS];
    for (int i = 0; i < node->draws; i++)
        token[i] = tree->node[node->draw[i]].token;
    if (node->draws > 1 || rule->without_q)
        return rule->branching(p, q, d->n, token, node->draws, branch);
    branch[0] = esp_keep(p[token[0]], q[token[0]]);
    return ESP_OK;
}

/* reach[u] becomes the probability that the verifier accepts node u (the root: 1). The
 * verifier must have `branching`. */
static int reach_nodes(const struct tree *tree, const struct esp_distributions *d,
                       const struct esp_verifier_ops *rule, double *reach)
{
    double branch[ESP_ACTION_PATHS];
    reach[0] = 1;
    for (int u = 0; u < tree->count; u++) {
        const struct node *node = &tree->node[u];
        int status = node->draws ? branch_of(tree, node, d, rule, branch) : (int)ESP_OK;
        if (status < 0)
            return status;
        for (int i = 0; i < node->draws; i++)
            reach[node->draw[i]] = reach[u] * branch[i];
    }
    return ESP_OK;
}

/* ------------------------------------------------------------------ Traversal */

typedef double two __attribute__((vector_size(16)));
typedef long long two_bits __attribute__((vector_size(16)));

/* Returns the sum of (a p - b q)+ over all tokens. */
static double positive_sum(const double *p, const double *q, int n, double a, double b)
{
    two sum[2] = {{0, 0}, {0, 0}};
    double rest = 0;
    int x = 0;
    for (; x + 4 <= n; x += 4)
        for (int i = 0; i < 2; i++) {
            two left, right;
            memcpy(&left, p + x + 2 * i, sizeof left);
            memcpy(&right, q + x + 2 * i, sizeof right);
            left = left * a - right * b;
            sum[i] += (two)((two_bits)left & (left > 0));
        }
    for (; x < n; x++)
        rest += fmax(a * p[x] - b * q[x], 0);
    return sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1] + rest;
}

struct walk {
    const struct esp_distributions *d;
    double left;   /* probability that no node was accepted yet */
    double tokens; /* expected number of accepted nodes */
};

static void enter(struct node *node, double weight)
{
    node->weight = weight;
    node->a = 1;
    node->entered = true;
}

static void test(struct walk *w, const struct node *node, double acceptance)
{
    w->tokens += w->left * acceptance * node->depth;
    w->left *= 1 - acceptance;
}

static void delete_leaf(const struct walk *w, struct node *node)
{
    const double weight = node->weight, a = weight * node->a, b = weight * node->b + 1;
    const double sum = positive_sum(w->d->p[node->row], w->d->q[node->row], w->d->n, a, b);
    if (sum > NOTHING) {
        node->a = a / sum;
        node->b = b / sum;
    }
    node->weight = sum > 0 ? sum / (sum + (1 - weight)) : 0;
}

/* Returns E[tau + 1 | tree] for verifier `traversal` and a tree that was just built. */
static double traverse(struct tree *tree, const struct esp_distributions *d)
{
    struct walk w = {.d = d, .left = 1};
    struct node *at = tree->node;
    enter(at, 1);
    while (w.left > 0) {
        if (at->next < at->draws) {
            struct node *child = &tree->node[at->draw[at->next++]];
            const double q = d->q[at->row][child->token];
            const double p = fmax(at->a * d->p[at->row][child->token] - at->b * q, 0);
            const double weight = esp_keep(at->weight * p, q);
            if (!child->entered) {
                enter(child, weight);
                at = child;
                continue;
            }
            test(&w, child, weight);
        } else if (at->parent < 0) {
            break;
        } else {
            test(&w, at, at->weight);
            at = &tree->node[at->parent];
        }
        delete_leaf(&w, at);
    }
    return w.tokens + 1;
}

/* ------------------------------------------------------------------ all actions */

int esp_rollout_row(int stem, int path, int at)
{
    return ESP_ROLLOUT_STEM + (stem * ESP_ACTION_PATHS + path) * (ESP_ACTION_LENGTH - 1) + at;
}

static void build(struct tree *tree, const struct esp_rollouts *r, struct esp_action action)
{
    int end = 0;
    tree->count = 1;
    tree->node[0] = (struct node){.parent = -1};
    for (int i = 0; i < action.stem; i++)
        end = draw(tree, end, r->stem[i], i + 1);
    for (int k = 0; k < action.paths; k++)
        for (int i = 0, node = end; i < action.branch; i++)
            node = draw(tree, node, r->path[action.stem][k][i],
                        esp_rollout_row(action.stem, k, i));
}

/* Computes the values of trees that differ from `longest` only in the length of their paths:
 * value[L2] is for paths of L2 tokens after the branching node. For a verifier that decides
 * node by node, one tree is enough, because its decisions do not depend on deeper nodes. */
static int value_beginnings(const struct esp_rollouts *r, const struct esp_distributions *d,
                            const struct esp_verifier_ops *rule, struct esp_action longest,
                            double value[ESP_ACTION_LENGTH + 1])
{
    struct tree tree;
    double reach[ESP_ACTION_ROWS];
    for (int i = 0; i <= longest.branch && !rule->branching; i++) {
        build(&tree, r, (struct esp_action){longest.paths, longest.stem, i});
        value[i] = traverse(&tree, d);
    }
    if (!rule->branching)
        return ESP_OK;
    build(&tree, r, longest);
    int status = reach_nodes(&tree, d, rule, reach);
    for (int i = 0; i <= longest.branch; i++) {
        value[i] = 0;
        for (int u = 0; u < tree.count && status == ESP_OK; u++)
            value[i] += tree.node[u].depth <= longest.stem + i ? reach[u] : 0;
    }
    return status;
}

int esp_action_values(const struct esp_rollouts *r, const struct esp_distributions *d,
                      const struct esp_verifier_ops *rule, float value[ESP_ACTIONS])
{
    memset(value, 0, ESP_ACTIONS * sizeof *value);
    for (int k = 1; k <= ESP_ACTION_PATHS; k++)
        for (int stem = 0; stem <= ESP_ACTION_LENGTH; stem++) {
            double values[ESP_ACTION_LENGTH + 1];
            /* If `chain` is true, the tree is a chain of `stem` tokens. */
            const bool chain = k == 1 && stem < ESP_ACTION_LENGTH;
            const struct esp_action longest = {k, stem, chain ? 0 : ESP_ACTION_LENGTH};
            int status = value_beginnings(r, d, rule, longest, values);
            if (status < 0)
                return status;
            for (int branch = 0; branch <= longest.branch; branch++) {
                const int a = esp_action_index((struct esp_action){k, stem, branch});
                if (esp_action_canonical(a))
                    value[a] = (float)values[branch];
            }
        }
    return ESP_OK;
}
