/* explain.c - writes sentences about nodes; see explain.h. */
#include "viz/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/decision.h"
#include "viz/formula.h"
#include "viz/gauges.h"
#include "viz/safe.h"
#include "viz/say.h"

const char *esp_quote_token(char text[48], const struct esp_tokens *tokens, int32_t token)
{
    enum { SIZE = 48 };
    size_t length, used = 1;
    const char *bytes = esp_token_bytes_of(tokens, token, &length);
    struct esp_safe_unit shown;
    text[0] = '"';
    for (size_t i = 0; i < length;) {
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

/* Holds a text to which sentences are added, and the iteration that the sentences describe. */
struct talk {
    char *text;
    size_t size;
    const struct esp_iteration *it;
    const struct esp_tokens *tokens;
    int nodes; /* number of drafted nodes that the target computed */
    char quoted[48];
};

#define say(talk, ...) esp_say((talk)->text, (talk)->size, __VA_ARGS__)

/* Returns the token in quotes. The result is valid until the next call. */
static const char *quote(struct talk *t, int32_t token)
{
    return esp_quote_token(t->quoted, t->tokens, token);
}

static const char *quote_node(struct talk *t, int node)
{
    return quote(t, t->it->tree.nodes[node].token);
}

/* Explains why drafting this node, or nodes below it, did not pay, with the numbers of a
 * cost-aware drafter. */
bool esp_explain_refusal(char *text, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_gauge *row = esp_gauge_find(it, "row"),
                           *layer = esp_gauge_find(it, "layer");
    const struct esp_node *n = &it->tree.nodes[node];
    const bool valued = isfinite(n->value) && row;
    char p[16], price[16];
    text[0] = '\0';
    esp_probability_exact(p, n->value);
    if (n->reason == ESP_REASON_PRICE && valued)
        snprintf(text, size,
                 "accepted with probability %s, but its row costs as much time as %s tokens", p,
                 esp_probability_exact(price, row->after));
    else if (n->reason == ESP_REASON_LAYER && valued && layer)
        snprintf(
            text, size,
            "accepted with probability %s, but nodes below it would gain less than they cost: "
            "a draft pass %.2g of a token, each row %.2g",
            p, layer->after, row->after);
    else if (n->reason == ESP_REASON_RETRIEVED && valued)
        snprintf(text, size,
                 "it is accepted with probability %s; more guesses would gain less than their "
                 "rows cost, %.2g of a token each",
                 p, row->after);
    else if (n->reason == ESP_REASON_PLAIN)
        snprintf(text, size, "drafting does not pay now: this is plain decoding");
    return *text != '\0';
}

/* Appends the two numbers of a test, with enough digits to tell them apart. */
static void say_test(struct talk *t, const struct esp_decision *d, bool accepted)
{
    char u[16], chance[16];
    esp_probabilities_apart(u, d->u, chance, d->chance);
    say(t, "the random number %s (u) is %s its chance of %s", u,
        accepted           ? "below"
        : d->u > d->chance ? "above"
                           : "not below",
        chance);
}

static void explain_accepted(struct talk *t, const struct esp_decision *d)
{
    char chance[16];
    esp_probability_exact(chance, d->chance);
    say(t, "accepted");
    switch (d->kind) {
    case ESP_DECISION_CHOICE:
        say(t, ": it is the target's first choice");
        break;
    case ESP_DECISION_TEST:
        say(t, ": ");
        say_test(t, d, true);
        break;
    case ESP_DECISION_DRAW:
        say(t,
            d->whole ? ": the target drew this token at random; its chance was %s (p)"
                     : ": the target drew this token at random from the probability that the "
                       "rejected guesses left; its chance there was %s",
            chance);
        break;
    case ESP_DECISION_PATH:
        say(t, " with the path to %s: there ", quote_node(t, d->node));
        say_test(t, d, true);
        break;
    }
}

/* Says which token the target drew instead of this one. */
static void say_miss(struct talk *t, const struct esp_decision *d)
{
    char chance[16];
    say(t, ": the target drew %s at random", quote(t, d->token));
    if (!d->whole)
        say(t, " from the probability that the rejected guesses left");
    else if (isfinite(d->chance))
        say(t, "; the chance of this one was %s (p)", esp_probability_exact(chance, d->chance));
}

static void explain_rejected(struct talk *t, const struct esp_node *n,
                             const struct esp_decision *d)
{
    static const char again[] = "; then the target drew the same token";
    say(t, "rejected");
    switch (d->kind) {
    case ESP_DECISION_CHOICE:
        say(t, ": the target's first choice is %s",
            d->token >= 0 ? quote(t, d->token) : "another token");
        break;
    case ESP_DECISION_TEST:
        say(t, ": ");
        say_test(t, d, false);
        if (d->token == n->token)
            say(t, "%s", again);
        else if (d->token >= 0)
            say(t, "; next is %s", quote(t, d->token));
        break;
    case ESP_DECISION_MISS:
        if (d->token == n->token)
            say(t, " without a test%s", again);
        else
            say_miss(t, d);
        break;
    }
}

/* Explains the verifier's decision on a node. */
static void explain_decision(struct talk *t, int node)
{
    const struct esp_node *n = &t->it->tree.nodes[node];
    struct esp_decision d;
    esp_decision_of(&d, t->it, node);
    if (n->verdict == ESP_ACCEPTED)
        explain_accepted(t, &d);
    else if (n->verdict == ESP_REJECTED)
        explain_rejected(t, n, &d);
    else if (d.kind == ESP_DECISION_ANCESTOR)
        say(t, "not reached: %s above it was not accepted", quote_node(t, d.node));
    else if (d.kind == ESP_DECISION_SIBLING)
        say(t, "not tested: %s was accepted", quote_node(t, d.node));
    else
        say(t, "not reached by the verifier");
}

static void explain_root(struct talk *t, const struct esp_node *root)
{
    say(t, "committed: the last token of the text%s",
        root->reason == ESP_REASON_PLAIN       ? ". Drafting does not pay now"
        : root->reason == ESP_REASON_RETRIEVED ? ". The tree was found without the draft model"
                                               : ", where this tree starts");
}

static void explain_cut(struct talk *t, int node)
{
    const struct esp_node *n = &t->it->tree.nodes[node];
    const double path = esp_path_probability(t->it, node);
    char p[16], why[128];
    if (esp_explain_refusal(why, sizeof why, t->it, node)) {
        say(t, "not drafted: %s", why);
        return;
    }
    say(t, "cut before the target saw it%s%s", n->reason ? ": " : "",
        esp_reason_text(n->reason));
    if (isfinite(path))
        say(t, "; its path has %s (P)", esp_probability_exact(p, path));
}

void esp_explain_node(char *text, size_t size, const struct esp_iteration *it, int stages,
                      int node, const struct esp_tokens *tokens)
{
    struct talk t = {text, size, it, tokens, 0, ""};
    const struct esp_node *n = &it->tree.nodes[node];
    const bool copied = esp_is_copied(it, node);
    char source[64];
    text[0] = '\0';
    if (node == 0)
        explain_root(&t, n);
    else if (n->verdict == ESP_CUT)
        explain_cut(&t, node);
    else if (stages <= ESP_STAGE_SELECT)
        say(&t, "%sno decision yet", copied ? "" : "drafted: ");
    else
        explain_decision(&t, node);
    if (copied)
        say(&t, "; %s", esp_copied_text(source, it, node));
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

/* Explains why the node got so many children, by comparing the draft's confidence with the
 * thresholds. */
static void say_breadth(struct talk *t, int node, int children)
{
    const struct esp_gauge *high = esp_gauge_find(t->it, "tauh"),
                           *low = esp_gauge_find(t->it, "taul");
    const struct esp_node *n = &t->it->tree.nodes[node];
    const double upper = high ? 100 * high->before : 0, lower = low ? 100 * low->before : 0;
    if (!isfinite(n->confidence))
        return;
    say(t, " Its best guess after %s is %.0f %% likely", quote_node(t, node),
        100 * (double)n->confidence);
    if (high && n->confidence >= high->before)
        say(t, ", at least the upper confidence of %.0f %% (tauh)", upper);
    else if (low && n->confidence < low->before)
        say(t, ", below the lower confidence of %.0f %% (taul)", lower);
    else if (high && low)
        say(t, ", between the confidences of %.0f %% (taul) and %.0f %% (tauh)", lower, upper);
    say(t, high && low ? ", so it tries %d child%s." : ". It has %d child%s.", children,
        children == 1 ? "" : "ren");
}

/* Finds the drafter or verifier that `spec` names in a list. Returns the ways of drawing
 * children that it supports; "" if there is no such entry. */
static const char *draws_of(enum esp_list list, const char *spec)
{
    struct esp_item item;
    return esp_item_of(list, spec, &item) && item.draws ? item.draws : "";
}

/* Returns whether children were certainly drawn at random from the draft's distribution. This
 * is certain above temperature 0 if the drafter or the verifier supports no other way of
 * drawing. */
static bool draws_at_random(const struct esp_iteration *it)
{
    const char *drafter = draws_of(ESP_DRAFTERS, it->drafter),
               *verifier = draws_of(ESP_VERIFIERS, it->verifier);
    return esp_is_sampled(it) && (strstr(drafter, "iid") || strstr(drafter, "swor")) &&
           (!strstr(drafter, "topk") || (*verifier && !strstr(verifier, "topk")));
}

static void explain_layer(struct talk *t)
{
    const struct esp_tree *tree = &t->it->tree;
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
    say(t, "Draft pass %d: the draft model adds %d token%s at depth %d%s.", t->it->draft_passes,
        added, esp_plural(added), depth, draws_at_random(t->it) ? ", drawn at random" : "");
    if (best >= 0)
        say_breadth(t, best, children);
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

static void say_brings(struct talk *t, const struct esp_shape_choice *c)
{
    if (isfinite(c->tokens) && isfinite(c->seconds))
        say(t, "%.2f tokens in %.2g ms", c->tokens, 1e3 * c->seconds);
    else
        say(t, "an amount that is not known yet");
}

/* Says which shape was chosen, and which shape was next best. */
static void say_choice(struct talk *t)
{
    const struct esp_shape_choice *taken = &t->it->choices[0], *next = &t->it->choices[1];
    char shape[48];
    if (t->it->choice_count < 1)
        return;
    say(t, " The selector took %s, which it expects to give ", esp_shape_text(shape, taken));
    say_brings(t, taken);
    if (t->it->choice_count > 1) {
        say(t, "; next best was %s, with ", esp_shape_text(shape, next));
        say_brings(t, next);
    }
    say(t, ".");
}

static int count_copied(const struct esp_iteration *it)
{
    int count[ESP_SOURCES];
    esp_count_sources(it, count);
    return it->tree.count - 1 - count[ESP_SOURCE_DRAFT];
}

/* Returns the source of all nodes of the tree, or ESP_SOURCES if they have several sources. */
static int only_source(const struct esp_iteration *it, const int count[ESP_SOURCES])
{
    int only = 0;
    while (only < ESP_SOURCES && count[only] != it->tree.count - 1)
        only++;
    return only;
}

/* Explains a tree without drafted nodes. */
static void say_found(struct talk *t, const int count[ESP_SOURCES])
{
    const int nodes = t->it->tree.count - 1, only = only_source(t->it, count);
    const char *between = "";
    if (only == ESP_SOURCE_COPIED)
        say(t,
            "The tree is copied: %d node%s that followed the same words earlier in the text.",
            nodes, esp_plural(nodes));
    else if (only < ESP_SOURCES)
        say(t, "The tree is %s: %d node%s.", esp_source_text(only), nodes, esp_plural(nodes));
    else
        say(t, "The tree has %d nodes: ", nodes);
    for (int i = 0; i < ESP_SOURCES && only == ESP_SOURCES; i++) {
        if (count[i] > 0)
            say(t, "%s%d %s", between, count[i], esp_source_text(i));
        between = count[i] > 0 ? ", " : between;
    }
    say(t, "%s%s", only == ESP_SOURCES ? "." : "",
        t->it->draft_passes == 0 ? " The draft model did not run." : "");
}

static void say_drafted(struct talk *t)
{
    const int nodes = t->it->tree.count - 1, copied = count_copied(t->it),
              passes = t->it->draft_passes;
    int count[ESP_SOURCES];
    esp_count_sources(t->it, count);
    if (nodes == 0)
        say(t, "Nothing is drafted%s%s.",
            t->it->tree.nodes[0].reason == ESP_REASON_PLAIN ? ": it does not pay now" : "",
            passes > 0 ? ", though the draft model ran" : "");
    else if (copied == nodes)
        say_found(t, count);
    else
        say(t, "The tree is drafted: %d node%s in %d pass%s of the draft model.", nodes,
            esp_plural(nodes), passes, passes == 1 ? "" : "es");
    for (int i = ESP_SOURCE_DRAFT + 1; i < ESP_SOURCES && copied < nodes; i++)
        if (count[i] > 0)
            say(t, " %d of them %s %s instead.", count[i], count[i] == 1 ? "is" : "are",
                esp_source_text(i));
}

/* Says how many nodes were cut. Names one of them as an example, with its probability and the
 * reason. */
static void say_cut(struct talk *t, int cut, int example)
{
    const struct esp_node *n = &t->it->tree.nodes[example];
    const double path = esp_path_probability(t->it, example);
    char why[128];
    say(t,
        cut == 1 ? " %d is cut before the target sees it"
                 : " %d are cut before the target sees them",
        cut);
    if (isfinite(path))
        say(t, ": for example, the path to %s is %.2g %% likely (P)", quote(t, n->token),
            100 * path);
    else
        say(t, ": for example, %s", quote(t, n->token));
    if (esp_explain_refusal(why, sizeof why, t->it, example))
        say(t, " (%s)", why);
    else if (n->reason)
        say(t, " (%s)", esp_reason_text(n->reason));
    say(t, ".");
}

static void explain_draft(struct talk *t)
{
    const struct esp_tree *tree = &t->it->tree;
    int cut = 0, example = 0;
    for (int i = 1; i < tree->count; i++) {
        if (tree->nodes[i].verdict != ESP_CUT)
            continue;
        cut++;
        example = i;
    }
    say_drafted(t);
    say_choice(t);
    if (cut > 0)
        say_cut(t, cut, example);
    else if (t->it->choice_count == 0 && tree->count > 1)
        say(t, " Nothing is cut.");
}

static void say_path(struct talk *t)
{
    enum { MOST = 4 };
    const int length = t->it->path_length;
    say(t, "The target agrees with");
    for (int i = 0; i < length && i < MOST; i++)
        say(t, "%s %s",
            i == 0            ? ""
            : i == length - 1 ? " and"
                              : ",",
            quote_node(t, t->it->path[i]));
    if (length > MOST)
        say(t, " and %d more", length - MOST);
    say(t, ": %d token%s accepted.", length, esp_plural(length));
}

static void explain_select(struct talk *t)
{
    const bool drafted = t->it->tree.count > 1;
    const int stop = esp_telling_node(t->it);
    if (!drafted)
        say(t, "Nothing was drafted.");
    else if (t->it->path_length == 0)
        say(t, "The target agrees with nothing that was drafted.");
    else
        say_path(t);
    if (stop > 0 && t->it->tree.nodes[stop].verdict == ESP_REJECTED)
        say(t,
            esp_is_copied(t->it, stop) ? " The next %s token was %s;"
                                       : " The %s's next guess was %s;",
            esp_source_word(esp_source_of(t->it, stop)), quote_node(t, stop));
    else if (drafted)
        say(t, " There the tree ends;");
    say(t, " %s target adds %s of its own%s.", drafted ? "the" : "The", quote(t, t->it->bonus),
        esp_is_sampled(t->it) ? ", drawn at random" : "");
}

static void explain_adapt(struct talk *t)
{
    enum { MOST = 2 /* at most this many values are named */ };
    const struct esp_iteration *it = t->it;
    int moved = 0;
    char before[16], after[16], name[64];
    const struct esp_gauge *hope = esp_gauge_find(it, "expected"),
                           *got = esp_gauge_find(it, "obtained"),
                           *depth = esp_gauge_find(it, "D0");
    if (hope && got)
        say(t, "%.2f tokens were expected, %.0f were committed. ", hope->after, got->after);
    if (it->deepest > 0)
        say(t, "%d of %d %s levels were accepted.", it->path_length, it->deepest,
            count_copied(it) == it->tree.count - 1 ? "copied" : "drafted");
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++) {
        const struct esp_gauge *g = &it->gauges[i];
        if (g->before == g->after || g == hope || g == got)
            continue;
        if (moved++ < MOST)
            say(t, "%s %s goes from %s to %s", moved > 1 ? ", the" : " The",
                esp_gauge_full_name(name, it, g->name), esp_number(before, g->before, 3),
                esp_number(after, g->after, 3));
    }
    if (moved > MOST)
        say(t, ", and %d more", moved - MOST);
    if (moved > 0 && depth && depth->after != depth->before)
        say(t, ": the next tree may be %s.",
            depth->after > depth->before ? "deeper" : "less deep");
    else
        say(t, moved > 0             ? "."
               : it->gauge_count > 0 ? " No threshold moves."
                                     : " This drafter does not adapt.");
}

static void explain_commit(struct talk *t)
{
    const int committed = t->it->committed_count, dropped = t->nodes - t->it->path_length;
    say(t,
        committed == 1
            ? "%d token joins the text. The KV cache keeps its row where it is"
            : "%d tokens join the text. The KV cache keeps their rows where they are",
        committed);
    if (dropped > 0)
        say(t, " and drops %s of the other %d node%s", dropped == 1 ? "that" : "those", dropped,
            esp_plural(dropped));
    say(t, ".");
}

/* Writes how many times all states were accessed, for example "read once" or "not read".
 * `bytes` is the number of bytes that were accessed in total. */
static void say_times(struct talk *t, const char *done, int64_t bytes)
{
    const double times = (double)bytes / (double)t->it->state_bytes;
    if (bytes == 0)
        say(t, " not %s", done);
    else if (bytes == t->it->state_bytes)
        say(t, " %s once", done);
    else
        say(t, " %s %.3g times", done, times);
}

static void explain_states(struct talk *t)
{
    const struct esp_iteration *it = t->it;
    if (it->state_bytes <= 0)
        return;
    say(t, " For all %d rows, the states of its recurrent layers (%.3g MB) were",
        it->tree.verified, 1e-6 * (double)it->state_bytes);
    say_times(t, "read", it->state_read);
    say(t, " and");
    say_times(t, "written", it->state_written);
    say(t, ".");
}

static void explain_verify(struct talk *t)
{
    const double pass = 1e3 * t->it->seconds[ESP_STAGE_VERIFY];
    say(t, "The target computed the root and %d node%s in one pass", t->nodes,
        esp_plural(t->nodes));
    if (pass > 0)
        say(t, " of %.2g ms.", pass);
    else
        say(t, ". Plain decoding takes a pass for every token.");
    if (t->it->baseline > 0 && pass > 0)
        say(t, " Plain decoding takes a pass of %.2g ms for every token.",
            1e3 * t->it->baseline);
    explain_states(t);
}

static void explain_flatten(struct talk *t)
{
    say(t,
        "The root and %d node%s become the rows of one batch, parents first. A mask lets each "
        "row see only its own ancestors, so one pass can check all paths.",
        t->nodes, esp_plural(t->nodes));
}

void esp_explain_stop(char *text, size_t size, const struct esp_iteration *it, int type,
                      int stages, const struct esp_tokens *tokens)
{
    static void (*const of_stage[ESP_STAGES])(struct talk *) = {
        [ESP_STAGE_DRAFT] = explain_draft,   [ESP_STAGE_FLATTEN] = explain_flatten,
        [ESP_STAGE_VERIFY] = explain_verify, [ESP_STAGE_SELECT] = explain_select,
        [ESP_STAGE_COMMIT] = explain_commit, [ESP_STAGE_ADAPT] = explain_adapt,
    };
    const int rows = it->tree.verified; /* can be 0 in a recording */
    struct talk t = {text, size, it, tokens, rows > 0 ? rows - 1 : 0, ""};
    text[0] = '\0';
    if (type == ESP_EVENT_LAYER)
        explain_layer(&t);
    else
        of_stage[stages > 0 ? stages - 1 : ESP_STAGE_ADAPT](&t);
}
