/* explain.c - sentences about nodes; see explain.h. */
#include "viz/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/decision.h"
#include "viz/gauges.h"
#include "viz/safe.h"
#include "viz/say.h"

const char *esp_quote_token(char text[48], const struct esp_tokens *tokens, int32_t token)
{
    enum { SIZE = 48 };
    size_t length = 0, used = 1;
    const char *bytes = tokens->text ? tokens->text(tokens->user, token, &length) : NULL;
    struct esp_safe_unit shown;
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

static const struct esp_gauge *gauge(const struct esp_iteration *it, const char *name)
{
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++)
        if (strcmp(it->gauges[i].name, name) == 0)
            return &it->gauges[i];
    return NULL;
}

/* Why drafting a node, or below it, did not pay, with the numbers of a cost-aware drafter. */
static bool explain_price(char *text, size_t size, const struct esp_iteration *it,
                          const struct esp_node *n)
{
    const struct esp_gauge *row = gauge(it, "row"), *layer = gauge(it, "layer");
    char p[16], price[16];
    text[0] = '\0';
    if (isfinite(n->value))
        esp_probability_exact(p, n->value);
    if (n->reason == ESP_REASON_PRICE && isfinite(n->value) && row)
        snprintf(text, size, "accepted with probability %s, but a row costs %s of a token", p,
                 esp_probability_exact(price, row->after));
    else if (n->reason == ESP_REASON_LAYER && isfinite(n->value) && layer && row)
        snprintf(
            text, size,
            "accepted with probability %s, but nodes below it would gain less than they cost: "
            "a draft pass %.2g of a token, each row %.2g",
            p, layer->after, row->after);
    else if (n->reason == ESP_REASON_RETRIEVED && isfinite(n->value) && row)
        snprintf(text, size,
                 "it followed the same words before, and is accepted with probability %s; more "
                 "guesses would gain less than their rows cost, %.2g of a token each",
                 p, row->after);
    else if (n->reason == ESP_REASON_PLAIN)
        snprintf(text, size, "drafting does not pay now: this is plain decoding");
    return *text != '\0';
}

bool esp_explain_refusal(char *text, size_t size, const struct esp_iteration *it, int node)
{
    return explain_price(text, size, it, &it->tree.nodes[node]);
}

/* The two numbers of a test, with enough digits to tell them apart. */
static void say_test(char *text, size_t size, const struct esp_decision *d, bool accepted)
{
    char u[16], chance[16];
    esp_probabilities_apart(u, d->u, chance, d->chance);
    esp_say(text, size, "the random number %s (u) is %s its chance of %s", u,
            accepted           ? "below"
            : d->u > d->chance ? "above"
                               : "not below",
            chance);
}

static void explain_accepted(char *text, size_t size, const struct esp_iteration *it,
                             const struct esp_decision *d, const struct esp_tokens *tokens)
{
    char quoted[48], chance[16];
    esp_probability_exact(chance, d->chance);
    esp_say(text, size, "accepted");
    switch (d->kind) {
    case ESP_DECISION_CHOICE:
        esp_say(text, size, ": it is the target's first choice");
        break;
    case ESP_DECISION_TEST:
        esp_say(text, size, ": ");
        say_test(text, size, d, true);
        break;
    case ESP_DECISION_DRAW:
        esp_say(text, size,
                d->whole ? ": the target drew this token at random; its chance was %s (p)"
                         : ": the target drew this token at random from what rejected guesses "
                           "left; its chance there was %s",
                chance);
        break;
    case ESP_DECISION_PATH:
        esp_say(text, size, " with the path to %s: there ",
                esp_quote_token(quoted, tokens, it->tree.nodes[d->node].token));
        say_test(text, size, d, true);
        break;
    }
}

/* The token that the target drew instead of this one. */
static void say_miss(char *text, size_t size, const struct esp_decision *d, const char *drawn)
{
    char chance[16];
    esp_say(text, size, ": the target drew %s at random", drawn);
    if (!d->whole)
        esp_say(text, size, " from what rejected guesses left");
    else if (isfinite(d->chance))
        esp_say(text, size, "; the chance of this one was %s (p)",
                esp_probability_exact(chance, d->chance));
}

static void explain_rejected(char *text, size_t size, const struct esp_node *n,
                             const struct esp_decision *d, const struct esp_tokens *tokens)
{
    char quoted[48];
    const bool again = d->token == n->token;
    esp_quote_token(quoted, tokens, d->token);
    esp_say(text, size, "rejected");
    switch (d->kind) {
    case ESP_DECISION_CHOICE:
        esp_say(text, size, ": the target's first choice is %s",
                d->token >= 0 ? quoted : "another token");
        break;
    case ESP_DECISION_TEST:
        esp_say(text, size, ": ");
        say_test(text, size, d, false);
        if (d->token >= 0)
            esp_say(text, size,
                    again ? "; then the target drew the same token" : "; next is %s", quoted);
        break;
    case ESP_DECISION_MISS:
        if (again)
            esp_say(text, size, " without a test; then the target drew the same token");
        else
            say_miss(text, size, d, quoted);
        break;
    }
}

/* The verifier's decision on a node. */
static void explain_decision(char *text, size_t size, const struct esp_iteration *it, int node,
                             const struct esp_tokens *tokens)
{
    const struct esp_node *n = &it->tree.nodes[node];
    struct esp_decision d;
    char quoted[48] = "";
    esp_decision_of(&d, it, node);
    if (d.node >= 0)
        esp_quote_token(quoted, tokens, it->tree.nodes[d.node].token);
    if (n->verdict == ESP_ACCEPTED)
        explain_accepted(text, size, it, &d, tokens);
    else if (n->verdict == ESP_REJECTED)
        explain_rejected(text, size, n, &d, tokens);
    else if (d.kind == ESP_DECISION_ANCESTOR)
        esp_say(text, size, "not reached: %s above it was not accepted", quoted);
    else if (d.kind == ESP_DECISION_SIBLING)
        esp_say(text, size, "not tested: %s was accepted", quoted);
    else
        esp_say(text, size, "not reached by the verifier");
}

static void explain_root(char *text, size_t size, const struct esp_node *root)
{
    esp_say(text, size, "committed: the last token of the text");
    if (root->reason == ESP_REASON_PLAIN)
        esp_say(text, size, ". Drafting does not pay now");
    else if (root->reason == ESP_REASON_RETRIEVED)
        esp_say(text, size,
                ". The tree is what followed the same words before; the draft model did not "
                "run");
    else
        esp_say(text, size, ", where this tree starts");
}

static void explain_cut(char *text, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const double path = esp_path_probability(it, node);
    char p[16], why[128];
    if (explain_price(why, sizeof why, it, n)) {
        esp_say(text, size, "not drafted: %s", why);
        return;
    }
    esp_say(text, size, "cut before the target saw it%s%s", n->reason ? ": " : "",
            esp_reason_text(n->reason));
    if (isfinite(path))
        esp_say(text, size, "; its path has %s (P)", esp_probability_exact(p, path));
}

void esp_explain_node(char *text, size_t size, const struct esp_iteration *it, int stages,
                      int node, const struct esp_tokens *tokens)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const bool copied = esp_is_copied(it, node);
    char source[64];
    text[0] = '\0';
    if (node == 0)
        explain_root(text, size, n);
    else if (n->verdict == ESP_CUT)
        explain_cut(text, size, it, node);
    else if (stages <= ESP_STAGE_SELECT)
        esp_say(text, size, "%sno decision yet", copied ? "" : "drafted: ");
    else
        explain_decision(text, size, it, node, tokens);
    if (copied)
        esp_say(text, size, "; %s", esp_copied_text(source, it, node));
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

/* ------------------------------------------------------------------ step mode */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

/* Explains the number of a node's children by the draft's confidence there. */
static void say_breadth(char *text, size_t size, const struct esp_iteration *it, int node,
                        int children, const struct esp_tokens *tokens)
{
    const struct esp_gauge *high = gauge(it, "tauh"), *low = gauge(it, "taul");
    const struct esp_node *n = &it->tree.nodes[node];
    char quoted[48];
    if (!isfinite(n->confidence))
        return;
    esp_say(text, size, " After %s its best guess is %.0f %% sure",
            esp_quote_token(quoted, tokens, n->token), 100 * (double)n->confidence);
    if (high && n->confidence >= high->before)
        esp_say(text, size, ", at least the upper confidence of %.0f %% (tauh)",
                100 * high->before);
    else if (low && n->confidence < low->before)
        esp_say(text, size, ", below the lower confidence of %.0f %% (taul)",
                100 * low->before);
    else if (high && low)
        esp_say(text, size, ", between the confidences of %.0f %% (taul) and %.0f %% (tauh)",
                100 * low->before, 100 * high->before);
    esp_say(text, size, high && low ? ", so it tries %d child%s." : ". It has %d child%s.",
            children, children == 1 ? "" : "ren");
}

/* The draws of the entry for "name" or "name:parameters"; "" if there is none. */
static const char *draws_of(enum esp_list list, const char *spec)
{
    struct esp_item item;
    const size_t length = spec ? strcspn(spec, ":") : 0;
    for (int i = 0; esp_item(list, i, &item); i++)
        if (strlen(item.name) == length && strncmp(item.name, spec, length) == 0)
            return item.draws ? item.draws : "";
    return "";
}

/* Whether children were certainly drawn at random from the draft's distribution: above
 * temperature 0, if drafter or verifier support no other draws. */
static bool draws_at_random(const struct esp_iteration *it)
{
    const char *drafter = draws_of(ESP_DRAFTERS, it->drafter),
               *verifier = draws_of(ESP_VERIFIERS, it->verifier);
    return esp_is_sampled(it) && (strstr(drafter, "iid") || strstr(drafter, "swor")) &&
           (!strstr(drafter, "topk") || (*verifier && !strstr(verifier, "topk")));
}

static void explain_layer(char *text, size_t size, const struct esp_iteration *it,
                          const struct esp_tokens *tokens)
{
    const struct esp_tree *tree = &it->tree;
    int depth = 0, added = 0, best = -1, children = 0;
    for (int i = 1; i < tree->count; i++)
        depth = tree->nodes[i].depth > depth ? tree->nodes[i].depth : depth;
    for (int i = 1; i < tree->count; i++) {
        int parent = tree->nodes[i].parent;
        if (tree->nodes[i].depth != depth)
            continue;
        added++;
        if (best < 0 ||
            tree->nodes[parent].cumulative_log_q > tree->nodes[best].cumulative_log_q)
            best = parent;
    }
    for (int i = 1; i < tree->count; i++)
        children += tree->nodes[i].parent == best;
    esp_say(text, size, "Draft pass %d: the draft model adds %d token%s at depth %d%s.",
            it->draft_passes, added, plural(added), depth,
            draws_at_random(it) ? ", drawn at random" : "");
    if (best >= 0)
        say_breadth(text, size, it, best, children, tokens);
}

const char *esp_shape_text(char text[48], const struct esp_shape_choice *c)
{
    enum { SIZE = 48 };
    const int length = c->stem + c->branch;
    if (length == 0)
        snprintf(text, SIZE, "no draft");
    else if (c->paths == 1 || c->branch == 0)
        snprintf(text, SIZE, "chain of %d", length);
    else
        snprintf(text, SIZE, "K %d, L1 %d, L2 %d", c->paths, c->stem, c->branch);
    return text;
}

static void say_brings(char *text, size_t size, const struct esp_shape_choice *c)
{
    if (isfinite(c->tokens) && isfinite(c->seconds))
        esp_say(text, size, "%.2f tokens in %.2g ms", c->tokens, 1e3 * c->seconds);
    else
        esp_say(text, size, "an amount that is not known yet");
}

/* The chosen shape, and the next best one. */
static void say_choice(char *text, size_t size, const struct esp_iteration *it)
{
    char shape[48];
    if (it->choice_count < 1)
        return;
    const struct esp_shape_choice *taken = &it->choices[0], *next = &it->choices[1];
    esp_say(text, size, " The selector took %s: it expects it to bring ",
            esp_shape_text(shape, taken));
    say_brings(text, size, taken);
    if (it->choice_count > 1) {
        esp_say(text, size, "; next best was %s, with ", esp_shape_text(shape, next));
        say_brings(text, size, next);
    }
    esp_say(text, size, ".");
}

static int count_copied(const struct esp_iteration *it)
{
    int count = 0;
    for (int i = 1; i < it->tree.count; i++)
        count += esp_is_copied(it, i);
    return count;
}

static void say_drafted(char *text, size_t size, const struct esp_iteration *it)
{
    const int nodes = it->tree.count - 1, copied = count_copied(it);
    if (nodes == 0)
        esp_say(text, size, "Nothing is drafted%s%s.",
                it->tree.nodes[0].reason == ESP_REASON_PLAIN ? ": it does not pay now" : "",
                it->draft_passes > 0 ? ", though the draft model ran" : "");
    else if (copied == nodes)
        esp_say(text, size,
                "The tree is copied: %d node%s that followed the same words earlier in the "
                "text.%s",
                nodes, plural(nodes),
                it->draft_passes == 0 ? " The draft model did not run." : "");
    else
        esp_say(text, size, "The tree is drafted: %d node%s in %d pass%s of the draft model.",
                nodes, plural(nodes), it->draft_passes, it->draft_passes == 1 ? "" : "es");
    if (copied > 0 && copied < nodes)
        esp_say(text, size, " %d of them %s copied from the text instead.", copied,
                copied == 1 ? "is" : "are");
}

/* An example of a cut node, with its probability and the reason. */
static void say_cut(char *text, size_t size, const struct esp_iteration *it, int cut,
                    int example, const struct esp_tokens *tokens)
{
    const struct esp_node *n = &it->tree.nodes[example];
    const double path = esp_path_probability(it, example);
    char quoted[48], why[128];
    esp_quote_token(quoted, tokens, n->token);
    esp_say(text, size, " %d %s cut before the target sees %s", cut, cut == 1 ? "is" : "are",
            cut == 1 ? "it" : "them");
    if (isfinite(path))
        esp_say(text, size, ": the path to %s, for one, is %.2g %% likely (P)", quoted,
                100 * path);
    else
        esp_say(text, size, ": %s, for one", quoted);
    if (explain_price(why, sizeof why, it, n))
        esp_say(text, size, " (%s)", why);
    else if (n->reason)
        esp_say(text, size, " (%s)", esp_reason_text(n->reason));
    esp_say(text, size, ".");
}

static void explain_draft(char *text, size_t size, const struct esp_iteration *it,
                          const struct esp_tokens *tokens)
{
    const struct esp_tree *tree = &it->tree;
    int cut = 0, example = 0;
    for (int i = 1; i < tree->count; i++) {
        if (tree->nodes[i].verdict != ESP_CUT)
            continue;
        cut++;
        example = i;
    }
    say_drafted(text, size, it);
    say_choice(text, size, it);
    if (cut > 0)
        say_cut(text, size, it, cut, example, tokens);
    else if (it->choice_count == 0 && tree->count > 1)
        esp_say(text, size, " Nothing is cut.");
}

static void explain_select(char *text, size_t size, const struct esp_iteration *it,
                           const struct esp_tokens *tokens)
{
    enum { MOST = 4 };
    char quoted[48];
    int length = it->path_length;
    if (it->tree.count < 2) {
        esp_say(text, size, "Nothing was drafted.");
    } else if (length == 0) {
        esp_say(text, size, "The target agrees with nothing that was drafted.");
    } else {
        esp_say(text, size, "The target agrees with");
        for (int i = 0; i < length && i < MOST; i++)
            esp_say(text, size, "%s %s",
                    i == 0            ? ""
                    : i == length - 1 ? " and"
                                      : ",",
                    esp_quote_token(quoted, tokens, it->tree.nodes[it->path[i]].token));
        if (length > MOST)
            esp_say(text, size, " and %d more", length - MOST);
        esp_say(text, size, ": %d token%s accepted.", length, plural(length));
    }
    int stop = esp_telling_node(it);
    if (stop > 0 && it->tree.nodes[stop].verdict == ESP_REJECTED)
        esp_say(text, size,
                esp_is_copied(it, stop) ? " The next copied token was %s;"
                                        : " The draft's next guess was %s;",
                esp_quote_token(quoted, tokens, it->tree.nodes[stop].token));
    else if (it->tree.count > 1)
        esp_say(text, size, " There the tree ends;");
    esp_say(text, size, it->tree.count > 1 ? " the target" : " The target");
    esp_say(text, size, " adds %s of its own%s.", esp_quote_token(quoted, tokens, it->bonus),
            esp_is_sampled(it) ? ", drawn at random" : "");
}

static void explain_adapt(char *text, size_t size, const struct esp_iteration *it)
{
    enum { MOST = 2 /* values that are named */ };
    int moved = 0;
    char before[16], after[16], name[64];
    const struct esp_gauge *hope = gauge(it, "expected"), *got = gauge(it, "obtained");
    if (hope && got)
        esp_say(text, size, "%.2f tokens were expected, %.0f came. ", hope->after, got->after);
    if (it->deepest > 0)
        esp_say(text, size, "%d of %d %s levels were accepted.", it->path_length, it->deepest,
                count_copied(it) == it->tree.count - 1 ? "copied" : "drafted");
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++) {
        const struct esp_gauge *g = &it->gauges[i];
        if (g->before == g->after || g == hope || g == got)
            continue;
        if (moved++ < MOST)
            esp_say(text, size, "%s %s goes from %s to %s", moved > 1 ? ", the" : " The",
                    esp_gauge_full_name(name, it, g->name), esp_number(before, g->before, 3),
                    esp_number(after, g->after, 3));
    }
    if (moved > MOST)
        esp_say(text, size, ", and %d more move", moved - MOST);
    const struct esp_gauge *depth = gauge(it, "D0");
    if (moved > 0 && depth && depth->after != depth->before)
        esp_say(text, size, ": the next tree may be %s.",
                depth->after > depth->before ? "deeper" : "less deep");
    else if (moved > 0)
        esp_say(text, size, ".");
    else
        esp_say(text, size,
                it->gauge_count > 0 ? " No threshold moves." : " This drafter does not adapt.");
}

static void explain_commit(char *text, size_t size, const struct esp_iteration *it, int dropped)
{
    const bool one = it->committed_count == 1;
    esp_say(text, size, "%d token%s the text. The KV cache keeps %s", it->committed_count,
            one ? " joins" : "s join",
            one ? "its row where it is" : "their rows where they are");
    if (dropped > 0)
        esp_say(text, size, " and drops %s of the other %d node%s",
                dropped == 1 ? "that" : "those", dropped, plural(dropped));
    esp_say(text, size, ".");
}

static void explain_stage(char *text, size_t size, const struct esp_iteration *it, int stage,
                          const struct esp_tokens *tokens)
{
    int nodes =
        it->tree.verified > 0 ? it->tree.verified - 1 : 0; /* a recording may hold anything */
    int dropped = nodes > it->path_length ? nodes - it->path_length : 0;
    switch (stage) {
    case ESP_STAGE_DRAFT:
        explain_draft(text, size, it, tokens);
        break;
    case ESP_STAGE_FLATTEN:
        esp_say(
            text, size,
            "The root and %d node%s are put in one row, parents first. A mask lets each see "
            "only its own ancestors, so that one pass can check every path at once.",
            nodes, plural(nodes));
        break;
    case ESP_STAGE_VERIFY:
        esp_say(text, size, "The target computed the root and %d node%s in one pass", nodes,
                plural(nodes));
        if (it->seconds[ESP_STAGE_VERIFY] > 0)
            esp_say(text, size, " of %.2g ms.", 1e3 * it->seconds[ESP_STAGE_VERIFY]);
        else
            esp_say(text, size, ". Plain decoding takes a pass for every token.");
        if (it->baseline > 0 && it->seconds[ESP_STAGE_VERIFY] > 0)
            esp_say(text, size, " Plain decoding takes a pass of %.2g ms for every token.",
                    1e3 * it->baseline);
        break;
    case ESP_STAGE_SELECT:
        explain_select(text, size, it, tokens);
        break;
    case ESP_STAGE_COMMIT:
        explain_commit(text, size, it, dropped);
        break;
    default:
        explain_adapt(text, size, it);
        break;
    }
}

void esp_explain_stop(char *text, size_t size, const struct esp_iteration *it, int type,
                      int stages, const struct esp_tokens *tokens)
{
    text[0] = '\0';
    if (type == ESP_EVENT_LAYER)
        explain_layer(text, size, it, tokens);
    else
        explain_stage(text, size, it, stages - 1, tokens);
}
