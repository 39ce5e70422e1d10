/* node.c - the node inspector: everything that is known about one node of the tree.
 *
 *     q .71  p .83  P .25  confidence .38  depth 3, child 1/2
 *     accepted: u = .31 is below its chance of 1.0
 *     token 318, bytes 20 6b 69 6e 67
 *     accepted with probability min(1, p/q) = 1.0, u = .31
 *     below: a child is accepted .62, at most .70 (alpha*), with these children .58
 *
 *     siblings: the draft's q, the target's p, → how likely each is accepted
 *     > " king"   q ███████▎ .71   p ████████▍ .83   → .83
 *       " woman"  q █▏       .12   p ▌         .06   → .06
 *
 * Without a cursor in the tree it looks at the node where the verifier stopped. A low pane has
 * the numbers, the sentence and the siblings; a high one shows the children too.
 */
#include "tui/view/pane.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/formula.h"
#include "viz/wrap.h"

enum { HIGH = 10 /* rows of a pane that shows everything */ };

/* The node to show, or -1. */
static int chosen_node(const struct esp_iteration *it, const struct esp_look *look)
{
    if (!it || it->tree.count == 0)
        return -1;
    if (look->iteration >= 0 && look->node >= 0 && look->node < it->tree.count)
        return look->node;
    return esp_telling_node(it);
}

static void title(const struct esp_state *state, const struct esp_look *look, char *text,
                  size_t size)
{
    int stages;
    char quoted[48];
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    int node = chosen_node(it, look);
    if (node < 0)
        snprintf(text, size, "node");
    else
        snprintf(text, size, "node   %s",
                 esp_quote_token(quoted, &state->tokens, it->tree.nodes[node].token));
}

static int draw_probability(struct esp_canvas *canvas, int x, int y, const char *label,
                            double value)
{
    char text[16];
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, label) + 1;
    return esp_draw(canvas, x, y, ESP_STYLE_VALUE, esp_probability_exact(text, value)) + 2;
}

static int child_count(const struct esp_iteration *it, int parent)
{
    int count = 0;
    for (int i = 1; i < it->tree.count; i++)
        count += it->tree.nodes[i].parent == parent;
    return count;
}

static void draw_numbers(struct esp_canvas *canvas, const struct esp_iteration *it, int node)
{
    static const int confidence_styles[] = {ESP_STYLE_CONFIDENCE_LOW, ESP_STYLE_CONFIDENCE_MID,
                                            ESP_STYLE_CONFIDENCE_HIGH};
    const struct esp_node *n = &it->tree.nodes[node];
    char text[16];
    int x = 0;
    if (node > 0) {
        x = draw_probability(canvas, x, 0, "q", n->q);
        x = draw_probability(canvas, x, 0, "p", n->p);
        x = draw_probability(canvas, x, 0, "P", exp(n->cumulative_log_q));
    }
    x = esp_draw(canvas, x, 0, ESP_STYLE_LABEL, "confidence") + 1;
    int level = n->confidence >= 0.9f ? 2 : n->confidence >= 0.4f ? 1 : 0;
    x = esp_draw(canvas, x, 0, confidence_styles[level],
                 esp_probability_exact(text, n->confidence)) +
        2;
    if (node > 0)
        esp_drawf(canvas, x, 0, ESP_STYLE_LABEL, "depth %d, child %d/%d", n->depth, n->rank + 1,
                  child_count(it, n->parent));
}

static int draw_bytes_of(struct esp_canvas *canvas, const struct esp_state *state,
                         int32_t token, int y)
{
    size_t length = 0;
    const char *bytes =
        state->tokens.text ? state->tokens.text(state->tokens.user, token, &length) : NULL;
    int x = esp_drawf(canvas, 0, y, ESP_STYLE_LABEL, "token %d, bytes", token);
    for (size_t i = 0; bytes && i < length && i < 16; i++)
        x = esp_drawf(canvas, x, y, ESP_STYLE_VALUE, " %02x", (unsigned char)bytes[i]);
    if (length > 16)
        esp_draw(canvas, x + 1, y, ESP_STYLE_LABEL, canvas->glyphs->ellipsis);
    return y + 1;
}

/* What the verifier's formulas say about what is below the node; "" if nothing. */
static void say_below(char *text, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const double rate = n->acceptance_rate, these = esp_formula_goes_on(it, node);
    char number[8];
    text[0] = '\0';
    if (isfinite(rate))
        esp_say(text, size, "below: a child is accepted %s", esp_probability(number, rate));
    else if (isfinite(these))
        esp_say(text, size, "below: one of these children is accepted %s",
                esp_probability(number, these));
    else if (isfinite(n->ceiling))
        esp_say(text, size, "below: %s judges whole paths; a child is accepted", it->verifier);
    if (isfinite(n->ceiling))
        esp_say(text, size,
                isfinite(rate) || isfinite(these) ? ", at most %s (alpha*)"
                                                  : " at most %s (alpha*)",
                esp_probability(number, n->ceiling));
    if (isfinite(rate) && fabs(these - rate) > 0.005)
        esp_say(text, size, ", with these children %s", esp_probability(number, these));
    const double tokens = node == 0 ? esp_formula_tokens(it) : NAN;
    if (isfinite(tokens) && *text)
        esp_say(text, size, "; this tree gives %.2f tokens on average", tokens);
}

/* Lines that only a high pane has; returns the next row. */
static int draw_details(struct esp_canvas *canvas, const struct esp_state *state,
                        const struct esp_iteration *it, int node, int y)
{
    const struct esp_node *n = &it->tree.nodes[node];
    char text[400];
    y = draw_bytes_of(canvas, state, n->token, y);
    esp_formula_text(text, sizeof text, it, node);
    if (*text)
        y = esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, text);
    if (n->copies > 1)
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "drawn %d times", n->copies);
    if (isfinite(n->value))
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "the drafter's own value: %.3g", n->value);
    if (node > 0 && n->verdict != ESP_CUT && !isfinite(n->confidence) &&
        esp_explain_refusal(text, sizeof text, it, node))
        y = esp_draw_paragraph(canvas, y, ESP_STYLE_LABEL, text);
    else if (node > 0 && n->verdict != ESP_CUT && !isfinite(n->confidence) && n->reason)
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "no children drafted: %s",
                  esp_reason_text(n->reason));
    say_below(text, sizeof text, it, node);
    return (*text ? esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, text) : y) + 1;
}

/* ------------------------------------------------------------------ siblings and children */

/* A probability in three columns; a small one has a digit more, in a fourth column. */
static const char *share_text(char text[8], double p)
{
    if (!(p > 0 && p < 0.0095))
        return esp_probability(text, p);
    snprintf(text, 8, "%.3f", p);
    return memmove(text, text + 1, strlen(text));
}

static int draw_share(struct esp_canvas *canvas, int x, int y, const char *label, int style,
                      double value, double most, int bar)
{
    char text[8];
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, label) + 1;
    esp_draw_bar(canvas, x, y, bar, style, most > 0 ? value / most : 0);
    x += bar + 1;
    esp_draw(canvas, x, y, ESP_STYLE_VALUE, share_text(text, value));
    return x + 6;
}

/* What the rows of one family share. */
struct family {
    int parent, marked; /* marked: the node looked at, or -1 */
    int label, bar;     /* columns */
    bool branching;
    double most;
};

static struct family family_of(const struct esp_canvas *canvas, const struct esp_state *state,
                               const struct esp_iteration *it, int parent, int marked)
{
    enum { SHARE = 9, BRANCHING = 6 };
    struct family f = {.parent = parent, .marked = marked, .label = 4};
    const struct esp_node *nodes = it->tree.nodes;
    int width = canvas->view.rect.width;
    for (int i = 1; i < it->tree.count; i++) {
        if (nodes[i].parent != parent)
            continue;
        int token = esp_token_width(&state->tokens, nodes[i].token, canvas->ascii_text);
        f.label = token > f.label ? token : f.label;
        f.most = fmax(f.most, fmax(nodes[i].q, isfinite(nodes[i].p) ? nodes[i].p : 0));
        f.branching = f.branching || isfinite(nodes[i].branching);
    }
    f.label = f.label > width / 3 ? width / 3 : f.label;
    f.bar = (width - f.label - 4 - 2 * SHARE + 2 - (f.branching ? BRANCHING + 2 : 0)) / 2;
    f.bar = f.bar > 40 ? 40 : f.bar;
    return f;
}

static void draw_member(struct esp_canvas *canvas, const struct esp_state *state,
                        const struct esp_iteration *it, int node, const struct family *f, int y)
{
    const struct esp_node *n = &it->tree.nodes[node];
    char text[8];
    bool marked = node == f->marked;
    if (marked)
        esp_draw(canvas, 0, y, ESP_STYLE_KEY, ">");
    esp_draw_token(canvas, 2, y, f->label, marked ? ESP_STYLE_VALUE : ESP_STYLE_LABEL,
                   &state->tokens, n->token);
    int x =
        draw_share(canvas, f->label + 4, y, "q", ESP_STYLE_BAR_DRAFT, n->q, f->most, f->bar);
    x = draw_share(canvas, x, y, "p", ESP_STYLE_BAR_VERIFY, n->p, f->most, f->bar);
    if (!f->branching)
        return;
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, canvas->glyphs->arrow) + 1;
    esp_draw(canvas, x, y, ESP_STYLE_VALUE, share_text(text, n->branching));
}

/* Children of one node by rank, in at most `rows` rows: what the draft thought of each, what
 * the target thinks, how likely the verifier accepts it. Returns the next row. */
static int draw_family(struct esp_canvas *canvas, const struct esp_state *state,
                       const struct esp_iteration *it, int parent, int marked, int y, int rows)
{
    const struct esp_node *nodes = it->tree.nodes;
    struct family f = family_of(canvas, state, it, parent, marked);
    int first = marked >= 0 ? nodes[marked].rank - (rows - 1) : 0, last = y;
    first = first < 0 ? 0 : first;
    for (int i = 1; i < it->tree.count; i++) {
        int row = nodes[i].rank - first;
        if (nodes[i].parent != parent || row < 0 || row >= rows)
            continue;
        draw_member(canvas, state, it, i, &f, y + row);
        last = y + row + 1 > last ? y + row + 1 : last;
    }
    return last;
}

/* In a high pane: siblings and children, each below a heading. */
static void draw_families(struct esp_canvas *canvas, const struct esp_state *state,
                          const struct esp_iteration *it, int node, int y)
{
    int parent = it->tree.nodes[node].parent, left = canvas->view.rect.height - y;
    int children = child_count(it, node), siblings = node > 0 ? child_count(it, parent) : 0;
    if (siblings > 0) {
        int rows = children > 0 && siblings + children + 3 > left ? (left - 3) / 2 : left - 1;
        bool branching = isfinite(it->tree.nodes[node].branching);
        esp_drawf(canvas, 0, y, ESP_STYLE_LABEL,
                  branching
                      ? "siblings: the draft's q, the target's p, %s how likely each "
                        "is accepted"
                      : "siblings: the draft's q, the target's p",
                  canvas->glyphs->arrow);
        y = draw_family(canvas, state, it, parent, node, y + 1, rows > 1 ? rows : 1) + 1;
    }
    if (children > 0 && y + 1 < canvas->view.rect.height) {
        esp_draw(canvas, 0, y, ESP_STYLE_LABEL, "children");
        draw_family(canvas, state, it, node, -1, y + 1, canvas->view.rect.height - y - 1);
    }
}

/* Numbers, sentence, siblings, and what is below if there is a row left. */
static void draw_low(struct esp_canvas *canvas, const struct esp_state *state,
                     const struct esp_iteration *it, int node, const char *sentence)
{
    int width = canvas->view.rect.width, height = canvas->view.rect.height, y = 2;
    char text[160];
    esp_draw_bytes(canvas, 0, 1, width, ESP_STYLE_TEXT, 0, sentence, strlen(sentence));
    if (node > 0)
        y = draw_family(canvas, state, it, it->tree.nodes[node].parent, node, y, height - y);
    say_below(text, sizeof text, it, node);
    esp_draw_bytes(canvas, 0, y, width, ESP_STYLE_TEXT, 0, text, strlen(text));
}

static void draw(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    int node = chosen_node(it, look);
    char text[160];
    (void)view;
    if (node < 0) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "One node of the tree is explained here.");
        return;
    }
    draw_numbers(canvas, it, node);
    esp_explain_node(text, sizeof text, it, stages, node, &state->tokens);
    if (canvas->view.rect.height < HIGH) {
        draw_low(canvas, state, it, node, text);
        return;
    }
    int y = esp_draw_paragraph(canvas, 1, ESP_STYLE_TEXT, text);
    draw_families(canvas, state, it, node, draw_details(canvas, state, it, node, y));
}

const struct esp_pane_ops esp_pane_node = {
    .name = "node",
    .summary = "one node: its probabilities, its siblings, what became of it and why",
    .title = title,
    .draw = draw,
};
