/* node.c - the node inspector: everything that is known about one node of the tree.
 *
 *     q .71  p .83  P .25  confidence .38  depth 3, child 1/2
 *     accepted: it is the target's first choice
 *     > " king"   q ███████▎ .71   p ████████▍ .83
 *       " woman"  q █▏       .12   p ▌        .06
 *
 * Without a cursor in the tree it looks at the node where the verifier stopped. In a high pane
 * there are more lines: the token's bytes, the acceptance test, the policy's value.
 */
#include "pane.h"

#include <math.h>
#include <string.h>

#include "chart.h"
#include "explain.h"

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
    char text[8];
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, label) + 1;
    return esp_draw(canvas, x, y, ESP_STYLE_VALUE, esp_probability(text, value)) + 2;
}

static int sibling_count(const struct esp_iteration *it, int node)
{
    int count = 0;
    for (int i = 1; i < it->tree.count; i++)
        count += it->tree.nodes[i].parent == it->tree.nodes[node].parent;
    return count;
}

static void draw_numbers(struct esp_canvas *canvas, const struct esp_iteration *it, int node)
{
    static const int confidence_styles[] = {ESP_STYLE_CONFIDENCE_LOW, ESP_STYLE_CONFIDENCE_MID,
                                            ESP_STYLE_CONFIDENCE_HIGH};
    const struct esp_node *n = &it->tree.nodes[node];
    char text[8];
    int x = 0;
    if (node > 0) {
        x = draw_probability(canvas, x, 0, "q", n->q);
        x = draw_probability(canvas, x, 0, "p", n->p);
        x = draw_probability(canvas, x, 0, "P", exp(n->cumulative_log_q));
    }
    x = esp_draw(canvas, x, 0, ESP_STYLE_LABEL, "confidence") + 1;
    int level = n->confidence >= 0.9f ? 2 : n->confidence >= 0.4f ? 1 : 0;
    x = esp_draw(canvas, x, 0, confidence_styles[level], esp_probability(text, n->confidence)) +
        2;
    if (node > 0)
        esp_drawf(canvas, x, 0, ESP_STYLE_LABEL, "depth %d, child %d/%d", n->depth, n->rank + 1,
                  sibling_count(it, node));
}

/* Lines that only a high pane has; returns the next row. */
static int draw_details(struct esp_canvas *canvas, const struct esp_state *state,
                        const struct esp_iteration *it, int node, int y)
{
    const struct esp_node *n = &it->tree.nodes[node];
    char text[160];
    size_t length = 0;
    const char *bytes = state->tokens.text
                            ? state->tokens.text(state->tokens.user, n->token, &length)
                            : NULL;
    int x = esp_drawf(canvas, 0, y, ESP_STYLE_LABEL, "token %d, bytes", n->token);
    for (size_t i = 0; bytes && i < length && i < 16; i++)
        x = esp_drawf(canvas, x, y, ESP_STYLE_VALUE, " %02x", (unsigned char)bytes[i]);
    if (length > 16)
        esp_draw(canvas, x + 1, y, ESP_STYLE_LABEL, canvas->glyphs->ellipsis);
    y++;
    esp_explain_test(text, sizeof text, it, node);
    if (*text)
        esp_draw_bytes(canvas, 0, y++, canvas->view.rect.width, ESP_STYLE_TEXT, 0, text,
                       strlen(text));
    if (n->copies > 1)
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "drawn %d times", n->copies);
    if (isfinite(n->value))
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "the policy's own value: %.3g", n->value);
    if (node > 0 && n->verdict != ESP_CUT && !isfinite(n->confidence) && n->reason)
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "no children drafted: %s",
                  esp_reason_text(n->reason));
    return y + 1;
}

static int draw_share(struct esp_canvas *canvas, int x, int y, const char *label, int style,
                      double value, double most, int bar)
{
    char text[8];
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, label) + 1;
    esp_draw_bar(canvas, x, y, bar, style, most > 0 ? value / most : 0);
    x += bar + 1;
    return esp_draw(canvas, x, y, ESP_STYLE_VALUE, esp_probability(text, value)) + 2;
}

/* The node and its siblings by rank: what the draft thought of each, and what the target
 * thinks. */
static void draw_siblings(struct esp_canvas *canvas, const struct esp_state *state,
                          const struct esp_iteration *it, int node, int y)
{
    const struct esp_node *nodes = it->tree.nodes;
    int height = canvas->view.rect.height, width = canvas->view.rect.width, label = 4;
    int parent = nodes[node].parent, count = sibling_count(it, node);
    int first = nodes[node].rank - (height - y - 1);
    double most = 0;
    if (node == 0)
        return;
    first = first < 0 ? 0 : first;
    for (int i = 1; i < it->tree.count; i++) {
        if (nodes[i].parent != parent)
            continue;
        int token = esp_token_width(&state->tokens, nodes[i].token, canvas->ascii_text);
        label = token > label ? token : label;
        most = fmax(most, fmax(nodes[i].q, isfinite(nodes[i].p) ? nodes[i].p : 0));
    }
    label = label > width / 3 ? width / 3 : label;
    int bar = (width - label - 2 - 2 - 2 * 8) / 2;
    for (int i = 1; i < it->tree.count && count > 0; i++) {
        int row = y + nodes[i].rank - first;
        if (nodes[i].parent != parent || nodes[i].rank < first || row >= height)
            continue;
        if (i == node)
            esp_draw(canvas, 0, row, ESP_STYLE_KEY, ">");
        esp_draw_token(canvas, 2, row, label, i == node ? ESP_STYLE_VALUE : ESP_STYLE_LABEL,
                       &state->tokens, nodes[i].token);
        int x =
            draw_share(canvas, label + 4, row, "q", ESP_STYLE_BAR_DRAFT, nodes[i].q, most, bar);
        draw_share(canvas, x, row, "p", ESP_STYLE_BAR_VERIFY, nodes[i].p, most, bar);
    }
}

static void draw(struct esp_canvas *canvas, const struct esp_state *state,
                 const struct esp_look *look, const struct esp_pane_view *view)
{
    int stages, width = canvas->view.rect.width, height = canvas->view.rect.height;
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
    esp_draw_bytes(canvas, 0, 1, width, ESP_STYLE_TEXT, 0, text, strlen(text));
    int y = height >= 10 ? draw_details(canvas, state, it, node, 2) : 2;
    draw_siblings(canvas, state, it, node, y);
}

const struct esp_pane_ops esp_pane_node = {
    .name = "node",
    .summary = "one node: its probabilities, its siblings, what became of it and why",
    .title = title,
    .draw = draw,
};
