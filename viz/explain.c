/* explain.c - sentences about nodes; see explain.h. */
#include "explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chart.h"
#include "safe.h"

const char *esp_quote_token(char text[48], const struct esp_tokens *tokens, int32_t token)
{
    enum { SIZE = 48 };
    size_t length = 0, used = 1;
    const char *bytes = tokens->text ? tokens->text(tokens->user, token, &length) : NULL;
    struct esp_shown shown;
    text[0] = '"';
    for (size_t i = 0; bytes && i < length;) {
        i += esp_safe_next(bytes + i, length - i, ESP_SAFE_QUOTED, &shown);
        size_t more = strlen(shown.text);
        if (used + more + 5 > SIZE) {
            used += (size_t)snprintf(text + used, SIZE - used, "...");
            break;
        }
        memcpy(text + used, shown.text, more);
        used += more;
    }
    text[used] = '"';
    text[used + 1] = '\0';
    return text;
}

static bool is_greedy(const struct esp_iteration *it)
{
    return it->verifier && strncmp(it->verifier, "greedy", 6) == 0;
}

/* The nearest ancestor that the verifier did not accept, or the root. */
static int turned_away_at(const struct esp_iteration *it, int node)
{
    int at = it->tree.nodes[node].parent;
    while (at > 0 && it->tree.nodes[at].verdict != ESP_REJECTED &&
           it->tree.nodes[at].verdict != ESP_UNVISITED)
        at = it->tree.nodes[at].parent;
    return at > 0 ? at : 0;
}

static void explain_unvisited(char *text, size_t size, const struct esp_iteration *it, int node,
                              const struct esp_tokens *tokens)
{
    char quoted[48];
    int parent = it->tree.nodes[node].parent, at = turned_away_at(it, node);
    int32_t chosen = esp_target_choice(it, parent);
    if (at > 0)
        snprintf(text, size, "not reached: %s above it was not accepted",
                 esp_quote_token(quoted, tokens, it->tree.nodes[at].token));
    else if (chosen >= 0)
        snprintf(text, size, "not tried: %s came first",
                 esp_quote_token(quoted, tokens, chosen));
    else
        snprintf(text, size, "not reached by the verifier");
}

static void explain_rejected(char *text, size_t size, const struct esp_iteration *it, int node,
                             const struct esp_tokens *tokens)
{
    const struct esp_node *n = &it->tree.nodes[node];
    int32_t chosen = esp_target_choice(it, n->parent);
    char quoted[48] = "another token", u[8], a[8];
    if (chosen >= 0)
        esp_quote_token(quoted, tokens, chosen);
    if (is_greedy(it))
        snprintf(text, size, "rejected: the target's first choice is %s", quoted);
    else if (isfinite(n->u) && isfinite(n->acceptance))
        snprintf(text, size, "rejected: u = %s is not below %s; the text goes on with %s",
                 esp_probability(u, n->u), esp_probability(a, n->acceptance), quoted);
    else
        snprintf(text, size, "rejected: the target's sample is %s", quoted);
}

void esp_explain_node(char *text, size_t size, const struct esp_iteration *it, int stages, int node,
                      const struct esp_tokens *tokens)
{
    const struct esp_node *n = &it->tree.nodes[node];
    char p[8], u[8], a[8];
    if (node == 0)
        snprintf(text, size, "committed: the last token of the text, where this tree starts");
    else if (n->verdict == ESP_CUT)
        snprintf(text, size, "cut before the target saw it%s%s (P = %s)", n->reason ? ": " : "",
                 esp_reason_text(n->reason), esp_probability(p, exp(n->cumulative_log_q)));
    else if (stages <= ESP_STAGE_SELECT)
        snprintf(text, size, "drafted: no decision yet");
    else if (n->verdict == ESP_REJECTED)
        explain_rejected(text, size, it, node, tokens);
    else if (n->verdict != ESP_ACCEPTED)
        explain_unvisited(text, size, it, node, tokens);
    else if (is_greedy(it))
        snprintf(text, size, "accepted: it is the target's first choice");
    else if (isfinite(n->u) && isfinite(n->acceptance))
        snprintf(text, size, "accepted: u = %s is below %s", esp_probability(u, n->u),
                 esp_probability(a, n->acceptance));
    else
        snprintf(text, size, "accepted: the target's sample is this token");
}

/* min(1, p/q) is shown as such only where it is what the rule computed: after rejected siblings, and
 * in rules with several drafts, p and q are not those of the node any more. */
void esp_explain_test(char *text, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    char p[8], q[8], a[8], u[8] = "";
    double ratio = n->q > 0 ? fmin(1, n->p / n->q) : NAN;
    text[0] = '\0';
    if (node == 0 || !isfinite(n->acceptance) || is_greedy(it))
        return;
    esp_probability(a, n->acceptance);
    if (fabs(ratio - n->acceptance) < 1e-3)
        snprintf(text, size, "accepted with probability min(1, p/q) = min(1, %s/%s) = %s",
                 esp_probability(p, n->p), esp_probability(q, n->q), a);
    else
        snprintf(text, size, "accepted with probability %s (%s)", a, it->verifier);
    if (isfinite(n->u))
        snprintf(text + strlen(text), size - strlen(text), "; drawn u = %s",
                 esp_probability(u, n->u));
}

int esp_telling_node(const struct esp_iteration *it)
{
    int last = it->path_length > 0 ? it->path[it->path_length - 1] : 0;
    int first_child = 0;
    for (int i = 1; i < it->tree.count; i++) {
        const struct esp_node *node = &it->tree.nodes[i];
        if (node->parent == last && node->verdict == ESP_REJECTED)
            return i;
        if (node->parent == 0 && first_child == 0)
            first_child = i;
    }
    return last > 0 ? last : first_child;
}
