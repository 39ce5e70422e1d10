/* formula.c - fills formulas in; see formula.h. */
#include "viz/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/decision.h"

/* The entry of the list of verifiers for "name" or "name:parameters". */
static bool find_verifier(const char *verifier, struct esp_item *item)
{
    size_t length = verifier ? strcspn(verifier, ":") : 0;
    for (int i = 0; esp_item(ESP_VERIFIERS, i, item); i++)
        if (strlen(item->name) == length && strncmp(item->name, verifier, length) == 0)
            return true;
    return false;
}

static double weight_of(const struct esp_tree *tree, int node)
{
    const struct esp_node *n = &tree->nodes[node];
    if (node <= 0 || n->parent >= node)
        return 1;
    return n->q > 0 ? fmin(1, weight_of(tree, n->parent) * n->p / n->q) : 0;
}

/* q of a node without the siblings that were drawn before it. */
static double q_left(const struct esp_tree *tree, int node)
{
    const struct esp_node *n = &tree->nodes[node];
    double left = 1;
    for (int i = 1; i < tree->count; i++)
        if (tree->nodes[i].parent == n->parent && tree->nodes[i].rank < n->rank &&
            tree->nodes[i].verdict != ESP_CUT)
            left -= tree->nodes[i].q;
    return left > n->q ? n->q / left : 1;
}

static double number_of(char letter, const struct esp_tree *tree, int node)
{
    const struct esp_node *n = &tree->nodes[node];
    const double a = n->acceptance;
    switch (letter) {
    case 'p':
        return n->p;
    case 'q':
        return n->q;
    case 'l':
        return a * n->q;
    case 'Q':
        return q_left(tree, node);
    case 'L':
        return a * q_left(tree, node);
    case 'k':
        return n->p / (a * n->q);
    case 'r':
        return n->p / a;
    case 'v':
        return weight_of(tree, n->parent);
    default: /* 'w' */
        return weight_of(tree, node);
    }
}

struct text {
    char *to;
    size_t used, size;
};

static void add(struct text *text, const char *part, size_t length)
{
    if (length > text->size - 1 - text->used)
        length = text->size - 1 - text->used;
    memcpy(text->to + text->used, part, length);
    text->used += length;
    text->to[text->used] = '\0';
}

static void say(struct text *text, const char *part)
{
    add(text, part, strlen(part));
}

static void say_number(struct text *text, double value)
{
    char number[16];
    say(text,
        value > 1.05 ? esp_number(number, value, 3) : esp_probability_exact(number, value));
}

static void fill(struct text *text, const char *template, const struct esp_tree *tree, int node)
{
    while (*template) {
        size_t plain = strcspn(template, "$");
        add(text, template, plain);
        template += plain;
        if (template[0] == '$' && template[1]) {
            say_number(text, number_of(template[1], tree, node));
            template += 2;
        }
    }
}

static void say_drawn(struct text *text, const struct esp_decision *d)
{
    say(text, d->whole ? "the token drawn from p is this one: p = "
                       : "drawn from the residual of p after rejected drafts: its share is ");
    say_number(text, d->chance);
    say(text, "; u = ");
    say_number(text, d->u);
    say(text, " drew it");
}

/* Whether all numbers of the formula are known. Most are computed from the acceptance, which
 * does not determine them if it is 1 or, for some, 0. */
static bool is_known(const char *numbers, double acceptance)
{
    bool known = numbers != NULL;
    for (; numbers && *numbers; numbers++)
        if (numbers[0] == '$' && !strchr("pqQ", numbers[1]))
            known =
                known && acceptance < 0.9995 && (acceptance > 0 || !strchr("kr", numbers[1]));
    return known;
}

/* `item`: the verifier's, or NULL. */
static void say_tested(struct text *text, const struct esp_item *item,
                       const struct esp_tree *tree, int node)
{
    const struct esp_node *n = &tree->nodes[node];
    const double a = n->acceptance;
    char chance[16], u[16];
    esp_probabilities_apart(chance, a, u, n->u);
    say(text, "accepted with probability ");
    if (item) {
        say(text, item->formula);
        if (is_known(item->numbers, a)) {
            say(text, " = ");
            fill(text, item->numbers, tree, node);
        }
        say(text, " = ");
    }
    say(text, chance);
    say(text, ", u = ");
    say(text, u);
    if (item && item->where) {
        say(text, "; ");
        fill(text, item->where, tree, node);
    }
}

void esp_formula_text(char *to, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    struct text text = {to, 0, size};
    struct esp_item item;
    struct esp_decision decision;
    const bool known = find_verifier(it->verifier, &item) && item.formula;
    to[0] = '\0';
    esp_decision_of(&decision, it, node);
    if (node == 0 || !isfinite(n->acceptance))
        return;
    if (known && !isfinite(n->u)) { /* the verifier leaves nothing to chance */
        say(&text, n->verdict == ESP_ACCEPTED ? "accepted if " : "rejected unless ");
        say(&text, item.formula);
    } else if (decision.kind == ESP_DECISION_DRAW) {
        say_drawn(&text, &decision);
    } else {
        say_tested(&text, known ? &item : NULL, &it->tree, node);
    }
}

double esp_formula_goes_on(const struct esp_iteration *it, int node)
{
    double sum = 0;
    int known = 0;
    for (int i = node + 1; i < it->tree.count; i++) {
        const struct esp_node *child = &it->tree.nodes[i];
        if (child->parent != node || !isfinite(child->branching))
            continue;
        sum += child->branching;
        known++;
    }
    return known > 0 ? sum : NAN;
}

double esp_formula_tokens(const struct esp_iteration *it)
{
    const struct esp_node *nodes = it->tree.nodes;
    double sum = 1;
    for (int u = 1; u < it->tree.count; u++) {
        double reached = 1;
        if (nodes[u].verdict == ESP_CUT)
            continue;
        for (int v = u; v > 0; v = nodes[v].parent)
            reached *= nodes[v].branching;
        sum += reached;
    }
    return sum;
}
