/* node.c - the node pane shows everything about one node of the tree.
 *
 *     draft (q) .71  target (p) .83  path (P) .25  confidence .38  depth 3, child 1 of 2
 *     accepted: the random number .31 (u) is below its chance of 1.0
 *     token 318, bytes 20 6b 69 6e 67
 *     accepted with probability min(1, p/q) = 1.0, u = .31
 *     below: acceptance of a child .62, at most .70 (alpha*), with these children .58
 *
 *     siblings: draft (q), target (p), → chance of acceptance
 *     > " king"   draft ███████▎ .71  target ████████▍ .83  → .83
 *       " woman"  draft █▏       .12  target ▌         .06  → .06
 *
 * If the tree has no cursor, the pane shows the node where the verifier stopped. A low pane
 * shows the numbers, the siblings and the sentence about the verdict, and the user can scroll
 * to the children. A high pane shows everything.
 */
#include "tui/view/panes/token_view.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/explain.h"
#include "viz/formula.h"
#include "viz/say.h"
#include "viz/scrolled.h"
#include "viz/wrap.h"

enum { HIGH = 10 /* a pane with at least this many rows shows everything */ };

/* Returns the node to show, or -1. */
static int chosen_node(const struct esp_iteration *it, const struct esp_look *look)
{
    if (!it || it->tree.count == 0)
        return -1;
    if (look->iteration >= 0 && look->node >= 0 && look->node < it->tree.count)
        return look->node;
    return esp_telling_node(it);
}

static void title(const struct esp_shown *s, char *text, size_t size)
{
    char quoted[48];
    int node = chosen_node(s->it, s->look);
    if (esp_looked_token(s->look, s->state) >= 0)
        esp_token_view_title(s, text, size);
    else if (node < 0)
        snprintf(text, size, "node");
    else
        snprintf(text, size, "node   %s",
                 esp_quote_token(quoted, &s->state->tokens, s->it->tree.nodes[node].token));
}

static int child_count(const struct esp_iteration *it, int parent)
{
    int count = 0;
    for (int i = 1; i < it->tree.count; i++)
        count += it->tree.nodes[i].parent == parent;
    return count;
}

/* A number with its name and symbol. If all symbols fit, each is shown in brackets after the
 * name. */
struct figure {
    const char *name, *symbol;
    char text[48];
    int style;
};

enum { MOST_FIGURES = 5 };

static int figures_of(const struct esp_iteration *it, int node,
                      struct figure figures[MOST_FIGURES])
{
    static const int confidence_styles[] = {ESP_STYLE_CONFIDENCE_LOW, ESP_STYLE_CONFIDENCE_MID,
                                            ESP_STYLE_CONFIDENCE_HIGH};
    const struct esp_node *n = &it->tree.nodes[node];
    const struct {
        const char *name, *symbol;
        double value;
    } shares[] = {{"draft", "q", esp_draft_probability(it, node)},
                  {"target", "p", n->p},
                  {"path", "P", esp_path_probability(it, node)}};
    const bool copied = esp_is_copied(it, node);
    int count = 0;
    if (copied && n->copied > 0) {
        figures[count] = (struct figure){"copied", NULL, "", ESP_STYLE_VALUE};
        snprintf(figures[count].text, sizeof figures[count].text, "%d token%s back", n->copied,
                 n->copied == 1 ? "" : "s");
        count++;
    } else if (copied) {
        figures[count] = (struct figure){"source", NULL, "", ESP_STYLE_VALUE};
        snprintf(figures[count].text, sizeof figures[count].text, "%s",
                 esp_source_word(esp_source_of(it, node)));
        count++;
    }
    for (int i = 0; node > 0 && i < 3; i++) {
        if (i != 1 && !isfinite(shares[i].value)) /* the draft gave the node no probability */
            continue;
        figures[count] = (struct figure){shares[i].name, shares[i].symbol, "", ESP_STYLE_VALUE};
        esp_probability_exact(figures[count++].text, shares[i].value);
    }
    if (isfinite(n->confidence)) {
        const int level = n->confidence >= 0.9f ? 2 : n->confidence >= 0.4f ? 1 : 0;
        figures[count] = (struct figure){"confidence", NULL, "", confidence_styles[level]};
        esp_probability_exact(figures[count++].text, n->confidence);
    }
    if (node > 0) {
        figures[count] = (struct figure){"depth", NULL, "", ESP_STYLE_VALUE};
        snprintf(figures[count].text, sizeof figures[count].text, "%d, child %d of %d",
                 n->depth, n->rank + 1, child_count(it, n->parent));
        count++;
    }
    return count;
}

/* Returns the width of a number with its name. If `symbol` is true, includes the symbol. */
static int width_of(const struct figure *figure, bool symbol)
{
    return (int)(strlen(figure->name) + 1 + strlen(figure->text)) +
           (symbol && figure->symbol ? (int)strlen(figure->symbol) + 3 : 0);
}

/* Draws the numbers in as many rows as they need. Returns the row below the numbers. */
static int draw_numbers(struct esp_canvas *canvas, const struct esp_iteration *it, int node)
{
    struct figure figures[MOST_FIGURES];
    const int count = figures_of(it, node, figures), width = canvas->view.rect.width;
    int whole = 0, x = 0, y = 0;
    for (int i = 0; i < count; i++)
        whole += width_of(&figures[i], true) + 2;
    const bool symbols = whole - 2 <= width;
    for (int i = 0; i < count; i++) {
        const struct figure *f = &figures[i];
        if (x > 0 && x + width_of(f, symbols) > width) {
            x = 0;
            y++;
        }
        x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, f->name) + 1;
        if (symbols && f->symbol)
            x = esp_drawf(canvas, x, y, ESP_STYLE_LABEL, "(%s)", f->symbol) + 1;
        x = esp_draw(canvas, x, y, f->style, f->text) + 2;
    }
    return count > 0 ? y + 1 : 0;
}

static int draw_bytes_of(struct esp_canvas *canvas, const struct esp_shown *s, int32_t token,
                         int y)
{
    size_t length = 0;
    const char *bytes = s->state->tokens.text
                            ? s->state->tokens.text(s->state->tokens.user, token, &length)
                            : NULL;
    int x = esp_drawf(canvas, 0, y, ESP_STYLE_LABEL, "token %d, bytes", token);
    for (size_t i = 0; bytes && i < length && i < 16; i++)
        x = esp_drawf(canvas, x, y, ESP_STYLE_VALUE, " %02x", (unsigned char)bytes[i]);
    if (length > 16)
        esp_draw(canvas, x + 1, y, ESP_STYLE_LABEL, canvas->glyphs->ellipsis);
    return y + 1;
}

/* Writes the values of the verifier's formulas for the children of the node. Writes "" if there
 * are none. */
static void say_below(char *text, size_t size, const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const double rate = n->acceptance_rate, these = esp_formula_goes_on(it, node);
    char number[8];
    text[0] = '\0';
    if (isfinite(rate))
        esp_say(text, size, "below: acceptance of a child %s", esp_probability(number, rate));
    else if (isfinite(these))
        esp_say(text, size, "below: acceptance of one of these children %s",
                esp_probability(number, these));
    else if (isfinite(n->ceiling))
        esp_say(text, size, "below: %s judges whole paths; acceptance of a child",
                it->verifier);
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

/* Draws the lines that only a high pane has. Returns the next free row. */
static int draw_details(struct esp_canvas *canvas, const struct esp_shown *s, int node, int y)
{
    const struct esp_node *n = &s->it->tree.nodes[node];
    char text[400];
    y = draw_bytes_of(canvas, s, n->token, y);
    esp_formula_text(text, sizeof text, s->it, node);
    if (*text)
        y = esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, text);
    if (n->copies > 1)
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "drawn %d times", n->copies);
    if (isfinite(n->value))
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "the drafter's own value: %.3g", n->value);
    if (node > 0 && n->verdict != ESP_CUT && !isfinite(n->confidence) &&
        esp_explain_refusal(text, sizeof text, s->it, node))
        y = esp_draw_paragraph(canvas, y, ESP_STYLE_LABEL, text);
    else if (node > 0 && n->verdict != ESP_CUT && !isfinite(n->confidence) && n->reason)
        esp_drawf(canvas, 0, y++, ESP_STYLE_LABEL, "no children drafted: %s",
                  esp_reason_text(n->reason));
    say_below(text, sizeof text, s->it, node);
    return (*text ? esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, text) : y) + 1;
}

/* ------------------------------------------------------------------ siblings and children */

/* Draws a bar on a scale from 0 to 1, and its number. */
static int draw_share(struct esp_canvas *canvas, int x, int y, const char *label, int style,
                      double value, int bar)
{
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, label) + 1;
    esp_draw_bar(canvas, x, y, bar, style, value);
    return esp_draw_probability(canvas, x + bar + 1, y, ESP_STYLE_VALUE, value) + 2;
}

/* The layout of the rows that show the children of a node. */
struct family {
    int parent, marked; /* `marked` is the shown node, or -1 */
    int label, bar;     /* columns */
    bool branching;
};

static struct family family_of(const struct esp_canvas *canvas, const struct esp_shown *s,
                               int parent, int marked)
{
    enum { SHARES = 2 * (1 + 1 + 3 + 2) + 5 + 6 /* "draft", "target" */, BRANCHING = 5 };
    struct family f = {.parent = parent, .marked = marked, .label = 4};
    const struct esp_node *nodes = s->it->tree.nodes;
    int width = canvas->view.rect.width;
    for (int i = 1; i < s->it->tree.count; i++) {
        if (nodes[i].parent != parent)
            continue;
        int token = esp_token_width(&s->state->tokens, nodes[i].token, canvas->ascii_text);
        f.label = token > f.label ? token : f.label;
        f.branching = f.branching || isfinite(nodes[i].branching);
    }
    f.label = f.label > width / 3 ? width / 3 : f.label;
    f.bar = (width - f.label - 4 - SHARES + 2 - (f.branching ? BRANCHING + 2 : 0)) / 2;
    f.bar = f.bar > 40 ? 40 : f.bar < 0 ? 0 : f.bar;
    return f;
}

static void draw_member(struct esp_canvas *canvas, const struct esp_shown *s, int node,
                        const struct family *f, int y)
{
    const struct esp_node *n = &s->it->tree.nodes[node];
    bool marked = node == f->marked;
    if (marked)
        esp_draw(canvas, 0, y, ESP_STYLE_KEY, ">");
    esp_draw_token(canvas, 2, y, f->label, marked ? ESP_STYLE_VALUE : ESP_STYLE_LABEL,
                   &s->state->tokens, n->token);
    int x = draw_share(canvas, f->label + 4, y, "draft", ESP_STYLE_BAR_DRAFT,
                       esp_draft_probability(s->it, node), f->bar);
    x = draw_share(canvas, x, y, "target", ESP_STYLE_BAR_VERIFY, n->p, f->bar);
    if (!f->branching)
        return;
    x = esp_draw(canvas, x, y, ESP_STYLE_LABEL, canvas->glyphs->arrow) + 1;
    esp_draw_probability(canvas, x, y, ESP_STYLE_VALUE, n->branching);
}

/* Draws the children of a node, sorted by rank, in at most `rows` rows. Each row has the draft
 * probability, the target probability and the branching of a child. The last row says how many
 * children do not fit. If there is only one row, this number is at its end. Returns the next
 * free row. */
static int draw_family(struct esp_canvas *canvas, const struct esp_shown *s, int parent,
                       int marked, int y, int rows)
{
    const struct esp_node *nodes = s->it->tree.nodes;
    struct family f = family_of(canvas, s, parent, marked);
    const int count = child_count(s->it, parent);
    const bool counted = count > rows;
    if (counted && rows > 1)
        rows--;
    int first = marked >= 0 ? nodes[marked].rank - (rows - 1) : 0, last = y;
    first = first < 0 ? 0 : first;
    if (first + rows > count)
        first = count > rows ? count - rows : 0;
    for (int i = 1; i < s->it->tree.count; i++) {
        int row = nodes[i].rank - first;
        if (nodes[i].parent != parent || row < 0 || row >= rows)
            continue;
        draw_member(canvas, s, i, &f, y + row);
        last = y + row + 1 > last ? y + row + 1 : last;
    }
    if (counted) {
        char text[32];
        snprintf(text, sizeof text, " + %d more", count - rows);
        if (rows > 1)
            esp_draw(canvas, 1, last++, ESP_STYLE_LABEL, text);
        else
            esp_draw_right(canvas, canvas->view.rect.width, y, ESP_STYLE_LABEL, text);
    }
    return last;
}

/* Draws the siblings and the children, each below a heading. A high pane shows them. */
static void draw_families(struct esp_canvas *canvas, const struct esp_shown *s, int node, int y)
{
    int parent = s->it->tree.nodes[node].parent, left = canvas->view.rect.height - y;
    int children = child_count(s->it, node),
        siblings = node > 0 ? child_count(s->it, parent) : 0;
    if (siblings > 0) {
        int rows = children > 0 && siblings + children + 3 > left ? (left - 3) / 2 : left - 1;
        bool branching = isfinite(s->it->tree.nodes[node].branching);
        esp_drawf(canvas, 0, y, ESP_STYLE_LABEL,
                  branching ? "siblings: draft (q), target (p), %s chance of acceptance"
                            : "siblings: draft (q), target (p)",
                  canvas->glyphs->arrow);
        y = draw_family(canvas, s, parent, node, y + 1, rows > 1 ? rows : 1) + 1;
    }
    if (children > 0 && y + 1 < canvas->view.rect.height) {
        esp_draw(canvas, 0, y, ESP_STYLE_LABEL, "children");
        draw_family(canvas, s, node, -1, y + 1, canvas->view.rect.height - y - 1);
    }
}

/* Draws what a low pane shows: the sentence about the verdict, and the siblings. If a row is
 * left, also draws the values of the verifier's formulas for the children. */
static void draw_low(struct esp_canvas *canvas, const struct esp_shown *s, int node,
                     const char *sentence, int y)
{
    const int height = canvas->view.rect.height;
    char text[400];
    y = esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, sentence);
    if (node > 0 && y < height)
        y = draw_family(canvas, s, s->it->tree.nodes[node].parent, node, y, height - y);
    say_below(text, sizeof text, s->it, node);
    if (y < height)
        esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, text);
}

static void draw_high(struct esp_canvas *canvas, const struct esp_shown *s, int node,
                      const char *sentence)
{
    int y = draw_numbers(canvas, s->it, node);
    y = esp_draw_paragraph(canvas, y, ESP_STYLE_TEXT, sentence);
    draw_families(canvas, s, node, draw_details(canvas, s, node, y));
}

/* Draws everything about a node on a new canvas with as many rows as needed. Returns the number
 * of rows. The caller must close the canvas `page`. */
static int draw_page(struct esp_canvas *page, const struct esp_canvas *like,
                     const struct esp_shown *s, int width)
{
    enum { MOST = 200 };
    char text[400];
    const int node = chosen_node(s->it, s->look);
    if (node < 0 || esp_scrolled_open(page, like, width, MOST) < 0)
        return 0;
    esp_explain_node(text, sizeof text, s->it, s->stages, node, &s->state->tokens);
    draw_high(page, s, node, text);
    return esp_scrolled_rows(page);
}

static void draw_scrolled(struct esp_canvas *canvas, const struct esp_shown *s, int scroll)
{
    struct esp_canvas page = {.width = 0};
    const int rows = draw_page(&page, canvas, s, canvas->view.rect.width);
    const int most = rows - canvas->view.rect.height;
    if (rows > 0)
        esp_scrolled_show(canvas, &page, rows, scroll < most ? scroll : most > 0 ? most : 0);
    esp_canvas_close(&page);
}

static void draw(struct esp_canvas *canvas, const struct esp_shown *s)
{
    int node = chosen_node(s->it, s->look);
    char text[400];
    if (esp_looked_token(s->look, s->state) >= 0) {
        esp_token_view_draw(canvas, s);
        return;
    }
    if (node < 0) {
        esp_draw(canvas, 0, 0, ESP_STYLE_LABEL, "One node of the tree is explained here.");
        return;
    }
    if (s->view->scroll > 0) {
        draw_scrolled(canvas, s, s->view->scroll);
        return;
    }
    esp_explain_node(text, sizeof text, s->it, s->stages, node, &s->state->tokens);
    if (canvas->view.rect.height < HIGH)
        draw_low(canvas, s, node, text, draw_numbers(canvas, s->it, node));
    else
        draw_high(canvas, s, node, text);
}

/* Scrolls the pane if it is too low for its contents. */
static bool request(const struct esp_shown *s, int action)
{
    struct esp_canvas page = {.width = 0};
    const struct esp_canvas like = {.glyphs = &esp_glyphs_full};
    if (esp_looked_token(s->look, s->state) >= 0)
        return esp_token_view_request(s, action);
    const int most = draw_page(&page, &like, s, s->width) - s->height;
    esp_canvas_close(&page);
    return esp_pane_scroll(s->view, action, s->height - 1, most) && most > 0;
}

static bool click(const struct esp_shown *s, int x, int y)
{
    return esp_looked_token(s->look, s->state) >= 0 && esp_token_view_click(s, x, y);
}

/* Sets *point to the end of the path to the shown node. If a token of the text is shown, sets
 * *point to the chosen alternative. */
static bool point(const struct esp_shown *s, struct esp_branch_point *point)
{
    return esp_looked_token(s->look, s->state) >= 0 ? esp_token_view_point(s, point)
                                                    : esp_pane_tree.point(s, point);
}

const struct esp_pane_ops esp_pane_node = {
    .name = "node",
    .summary = "one node: its probabilities, its siblings, its outcome and the reason; or a "
               "token of the text: its origin, and the target's alternatives",
    .title = title,
    .draw = draw,
    .request = request,
    .click = click,
    .point = point,
};
