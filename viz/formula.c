/* formula.c - fills in formulas; see formula.h. */
#include "viz/formula.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/decision.h"
#include "viz/say.h"

bool esp_item_of(enum esp_list list, const char *spec, struct esp_item *item)
{
    size_t length = spec ? strcspn(spec, ":") : 0;
    for (int i = 0; esp_item(list, i, item); i++)
        if (strlen(item->name) == length && strncmp(item->name, spec, length) == 0)
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

/* Returns the q of a node after the siblings drawn before it are removed from the
 * distribution. */
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
    const double a = n->acceptance,
                 q = letter == 'Q' || letter == 'L' ? q_left(tree, node) : (double)n->q;
    switch (letter) {
    case 'p':
        return n->p;
    case 'q':
    case 'Q':
        return q;
    case 'l':
    case 'L':
        return a * q;
    case 'k':
        return n->p / (a * q);
    case 'r':
        return n->p / a;
    default: /* 'v', 'w' */
        return weight_of(tree, letter == 'v' ? n->parent : node);
    }
}

/* Holds a text to which sentences are appended. */
struct text {
    char *to;
    size_t size;
};

static const char *number_text(char number[16], double value)
{
    return value > 1.05 ? esp_number(number, value, 3) : esp_probability_exact(number, value);
}

/* Copies the template. A letter after '$' is replaced by a number of the node. */
static void fill(const struct text *text, const char *template, const struct esp_tree *tree,
                 int node)
{
    char number[16];
    while (*template) {
        const size_t plain = strcspn(template, "$");
        esp_say(text->to, text->size, "%.*s", (int)plain, template);
        template += plain;
        if (template[0] == '$' && template[1]) {
            esp_say(text->to, text->size, "%s",
                    number_text(number, number_of(template[1], tree, node)));
            template += 2;
        }
    }
}

static void say_drawn(const struct text *text, const struct esp_decision *d)
{
    char chance[16], u[16];
    esp_say(text->to, text->size, "%s%s; u = %s drew it",
            d->whole ? "the token drawn from p is this one: p = "
                     : "drawn from the residual of p after rejected drafts: its share is ",
            number_text(chance, d->chance), number_text(u, d->u));
}

/* Returns whether all numbers of the formula are known. Most numbers are computed from the
 * acceptance. An acceptance of 1 does not determine them, and an acceptance of 0 does not
 * determine $k and $r. */
static bool is_known(const char *numbers, double acceptance)
{
    bool known = numbers != NULL;
    for (; numbers && *numbers; numbers++)
        if (numbers[0] == '$' && !strchr("pqQ", numbers[1]))
            known =
                known && acceptance < 0.9995 && (acceptance > 0 || !strchr("kr", numbers[1]));
    return known;
}

/* Writes how a node was tested. `item` is the verifier's entry in the table, or NULL. */
static void say_tested(const struct text *text, const struct esp_item *item,
                       const struct esp_tree *tree, int node)
{
    const struct esp_node *n = &tree->nodes[node];
    const double a = n->acceptance;
    char chance[16], u[16];
    esp_probabilities_apart(chance, a, u, n->u);
    esp_say(text->to, text->size, "accepted with probability %s", item ? item->formula : "");
    if (item && is_known(item->numbers, a)) {
        esp_say(text->to, text->size, " = ");
        fill(text, item->numbers, tree, node);
    }
    esp_say(text->to, text->size, "%s%s, u = %s", item ? " = " : "", chance, u);
    if (item && item->where) {
        esp_say(text->to, text->size, "; ");
        fill(text, item->where, tree, node);
    }
}

void esp_formula_text(char *to, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const struct text text = {to, size};
    struct esp_item item;
    struct esp_decision decision;
    const bool known = esp_item_of(ESP_VERIFIERS, it->verifier, &item) && item.formula;
    to[0] = '\0';
    esp_decision_of(&decision, it, node);
    if (node == 0 || !isfinite(n->acceptance))
        return;
    if (known && !isfinite(n->u)) { /* the verifier drew no random number */
        esp_say(to, size, "%s %s",
                n->verdict == ESP_ACCEPTED ? "accepted if" : "rejected unless", item.formula);
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
