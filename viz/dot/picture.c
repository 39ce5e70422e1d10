/* picture.c - makes the nodes and edges of the picture; see picture.h.
 *
 * The graph has default attributes. A node or an edge sets an attribute only if it differs from
 * the default, which keeps the DOT file short. The nodes that are shown, and their order, are
 * the rows of the tree pane (tree_view.h). `ordering=out` keeps the edges of a node in the
 * order of their creation. In a picture that grows to the right the first edge is the lowest,
 * so rows are added from the last to the first. Nodes are created in the same order, because a
 * DOT file lists the edges node by node.
 */
#include "viz/dot/picture.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/decision.h"
#include "viz/dot/label.h"

enum { TOKEN_COLUMNS = 28, BIG = 17, SMALL = 11 };
/* A slide has room for LEAVES leaves and LEVELS levels. A wide slide has room for
 * WIDE_LEAVES leaves. */
enum { LEAVES = 20, WIDE_LEAVES = 12, LEVELS = 10 };
#define WIDE 1.5 /* least aspect ratio of a wide slide */

struct picture {
    const struct esp_iteration *it;
    const struct esp_tokens *tokens;
    const struct esp_picture_look *look;
    Agraph_t *graph, *tree; /* the tree is a cluster: its label is the legend */
    char *label;            /* (label_size) the label that is being written */
    size_t label_size;
    bool failed; /* memory ran out */
};

static void set(void *object, const char *name, const char *value)
{
    agsafeset(object, (char *)name, (char *)value, "");
}

__attribute__((format(printf, 3, 4))) static void setf(void *object, const char *name,
                                                       const char *format, ...)
{
    char value[64];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    set(object, name, value);
}

/* Begins a label in HTML-like form. Returns the file to write it to, or NULL if there is no
 * memory. */
static FILE *begin_label(struct picture *d)
{
    FILE *file = open_memstream(&d->label, &d->label_size);
    d->failed = d->failed || !file;
    return file;
}

static void end_label(struct picture *d, void *object, FILE *file)
{
    if (fclose(file) != 0) {
        d->failed = true;
    } else {
        char *kept = agstrdup_html(d->graph, d->label);
        set(object, "label", kept);
        agstrfree(d->graph, kept);
    }
    free(d->label);
}

static const char *probability(char text[8], double p)
{
    return p > 0 && p < 0.005 ? "&lt;.01" : esp_probability(text, p);
}

/* ------------------------------------------------------------------ nodes */

/* For each verdict: its name, its mark, and the width of a node's border. */
static const struct {
    const char *name, *mark, *border;
} verdicts[] = {[ESP_UNVISITED] = {"not visited", "", NULL},
                [ESP_ACCEPTED] = {"accepted", "\u2713", "3.5"},
                [ESP_REJECTED] = {"rejected", "\u2717", "2"},
                [ESP_CUT] = {"cut", "", NULL}};

static const char *colour_of(const struct picture *d, int verdict)
{
    return esp_colours_verdict(d->look->colours, verdict);
}

static void put_first_line(FILE *file, const struct picture *d, const char *mark,
                           const char *mark_colour, const char *text_colour, bool bold,
                           int32_t token)
{
    fprintf(file,
            "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\">"
            "<tr><td align=\"left\"><font point-size=\"%d\" color=\"%s\">%s",
            BIG, text_colour, bold ? "<b>" : "");
    if (*mark)
        fprintf(file, "<font color=\"%s\">%s </font>", mark_colour, mark);
    esp_label_token(file, d->tokens, token, TOKEN_COLUMNS);
    fprintf(file, "%s</font></td></tr>", bold ? "</b>" : "");
}

/* Writes the acceptance probability, then the verifier's random number. If the verifier drew
 * the token, writes the word "drawn" instead of the random number. */
static void put_decision(FILE *file, const struct picture *d, int index)
{
    struct esp_decision decision;
    char a[16], u[16];
    esp_decision_of(&decision, d->it, index);
    if (decision.kind != ESP_DECISION_TEST && decision.kind != ESP_DECISION_DRAW)
        return;
    esp_probabilities_apart(a, decision.chance, u, decision.u);
    esp_label_row(file, SMALL, colour_of(d, d->it->tree.nodes[index].verdict));
    if (decision.kind == ESP_DECISION_DRAW)
        fprintf(file, "a %s&#160;&#160; drawn", a);
    else
        fprintf(file, "a %s&#160;&#160; u %s", a, u);
    esp_label_row_end(file);
}

static void put_numbers(FILE *file, const struct picture *d, int index)
{
    const struct esp_node *n = &d->it->tree.nodes[index];
    const struct esp_colours *colours = d->look->colours;
    char q[8], p[8];
    esp_label_row(file, SMALL, n->verdict == ESP_CUT ? colours->cut : colours->number);
    if (esp_is_copied(d->it, index))
        fputs(esp_source_word(esp_source_of(d->it, index)), file);
    else
        fprintf(file, "q %s", probability(q, n->q));
    if (isfinite(n->p))
        fprintf(file, "&#160;&#160; p %s", probability(p, n->p));
    if (n->copies > 1)
        fprintf(file, "&#160;&#160; &#215;%d", n->copies);
    esp_label_row_end(file);
    put_decision(file, d, index);
    if (n->verdict == ESP_CUT) {
        esp_label_row(file, SMALL, colours->cut);
        fputs(n->reason ? "cut: " : "cut", file);
        esp_label_text(file, esp_reason_text(n->reason));
        esp_label_row_end(file);
    }
}

/* Writes the line below the token of a node that has no numbers. */
static void put_only_line(FILE *file, const char *colour, const char *text)
{
    esp_label_row(file, SMALL, colour);
    fputs(text, file);
    esp_label_row_end(file);
}

static void label_node(struct picture *d, Agnode_t *node, int index)
{
    const struct esp_node *n = &d->it->tree.nodes[index];
    const struct esp_colours *colours = d->look->colours;
    const int verdict = n->verdict & 3;
    FILE *file = begin_label(d);
    if (!file)
        return;
    if (index == 0) {
        put_first_line(file, d, "", "", colours->text, true, n->token);
        put_only_line(file, colours->number, "the text so far");
    } else {
        put_first_line(file, d, verdicts[verdict].mark, colour_of(d, verdict),
                       verdict == ESP_CUT ? colours->cut : colours->text,
                       verdict == ESP_ACCEPTED, n->token);
        put_numbers(file, d, index);
    }
    fputs("</table>", file);
    end_label(d, node, file);
}

/* Sets attributes for programs that read the DOT file: the token's text with escapes, its id,
 * and the verdict. */
static void put_data(struct picture *d, Agnode_t *node, int32_t token, const char *verdict)
{
    char *quoted = esp_label_escaped(d->tokens, token);
    if (quoted)
        set(node, "text", quoted);
    else
        d->failed = true;
    free(quoted);
    setf(node, "token", "%d", token);
    set(node, "verdict", verdict);
}

static Agnode_t *add_node(struct picture *d, int index)
{
    const struct esp_node *n = &d->it->tree.nodes[index];
    char name[16], shade[8];
    snprintf(name, sizeof name, "n%d", index);
    Agnode_t *node = agnode(d->tree, name, 1);
    label_node(d, node, index);
    esp_colours_shade(d->look->colours, n->confidence, shade);
    set(node, "fillcolor", shade);
    if (isfinite(n->confidence))
        setf(node, "confidence", "%.9g", (double)n->confidence);
    put_data(d, node, n->token, index == 0 ? "committed" : verdicts[n->verdict & 3].name);
    set(node, "color", index == 0 ? d->look->colours->accepted : colour_of(d, n->verdict));
    const char *border = verdicts[index == 0 ? ESP_ACCEPTED : n->verdict & 3].border;
    if (border)
        set(node, "penwidth", border);
    if (index == 0)
        return node;
    if (esp_source_of(d->it, index) == ESP_SOURCE_COPIED)
        setf(node, "copied", "%d", n->copied);
    else if (esp_is_copied(d->it, index))
        set(node, "source", esp_source_word(esp_source_of(d->it, index)));
    else
        setf(node, "q", "%.9g", (double)n->q);
    if (isfinite(n->p))
        setf(node, "p", "%.9g", (double)n->p);
    if (n->verdict == ESP_CUT) {
        set(node, "style", "rounded,filled,dashed");
        set(node, "reason", esp_reason_text(n->reason));
    }
    return node;
}

static Agnode_t *add_bonus(struct picture *d)
{
    const struct esp_colours *colours = d->look->colours;
    char name[] = "target";
    Agnode_t *node = agnode(d->tree, name, 1);
    FILE *file = begin_label(d);
    if (file) {
        put_first_line(file, d, "+", colours->bonus, colours->text, true, d->it->bonus);
        put_only_line(file, colours->bonus, "from the target itself");
        fputs("</table>", file);
        end_label(d, node, file);
    }
    set(node, "color", colours->bonus);
    set(node, "peripheries", "2");
    put_data(d, node, d->it->bonus, "from the target");
    return node;
}

/* Adds a fold node, which says how many children of a node are not shown. */
static Agnode_t *add_fold(struct picture *d, const struct esp_tree_row *row)
{
    char name[24];
    snprintf(name, sizeof name, "more%d", row->node);
    Agnode_t *node = agnode(d->tree, name, 1);
    if (row->cut > 0)
        setf(node, "label", "\u2026 %d more (%d cut)", row->hidden, row->cut);
    else
        setf(node, "label", "\u2026 %d more", row->hidden);
    set(node, "shape", "plaintext");
    set(node, "style", "solid");
    setf(node, "fontsize", "%d", SMALL + 1);
    set(node, "fontcolor", d->look->colours->label);
    return node;
}

static Agnode_t *add_row(struct picture *d, const struct esp_tree_row *row)
{
    return row->kind == ESP_ROW_BONUS  ? add_bonus(d)
           : row->kind == ESP_ROW_FOLD ? add_fold(d, row)
                                       : add_node(d, row->node);
}

/* ------------------------------------------------------------------ edges */

static double width_of(const struct esp_iteration *it, int node)
{
    const struct esp_node *n = &it->tree.nodes[node];
    const double q = esp_draft_probability(it, node);
    double width = 0.8 + 7.2 * (q > 0 ? fmin(q, 1) : 0);
    return n->verdict == ESP_ACCEPTED && width < 3 ? 3 : width;
}

static void add_edge(struct picture *d, Agnode_t *from, const struct esp_tree_row *row,
                     Agnode_t *to)
{
    const struct esp_node *n = &d->it->tree.nodes[row->node];
    const struct esp_colours *colours = d->look->colours;
    Agedge_t *edge = agedge(d->tree, from, to, NULL, 1);
    if (row->kind == ESP_ROW_FOLD) {
        set(edge, "style", "dotted");
        return;
    }
    bool on_path = row->kind == ESP_ROW_BONUS || n->verdict == ESP_ACCEPTED;
    if (row->kind == ESP_ROW_BONUS) {
        set(edge, "color", colours->bonus);
        set(edge, "penwidth", "3");
    } else {
        setf(edge, "penwidth", "%.2f", width_of(d->it, row->node));
        if (n->verdict == ESP_ACCEPTED)
            set(edge, "color", colours->accepted);
        if (n->verdict == ESP_CUT) {
            set(edge, "color", colours->cut);
            set(edge, "style", "dashed");
        }
    }
    if (on_path)
        set(edge, "weight", "8"); /* keeps the path straight */
}

/* Returns the number of rows without drawn children. These rows are drawn one above the
 * other. */
static int leaves(const struct esp_tree_rows *rows)
{
    int count = 0;
    for (int i = 0; i < rows->count; i++)
        count += i + 1 == rows->count || rows->row[i + 1].parent_row != i;
    return count;
}

static int choose_most(const struct picture *d, struct esp_tree_choice *choice,
                       struct esp_tree_rows *rows)
{
    const int fit = d->look->aspect >= WIDE ? WIDE_LEAVES : LEAVES;
    int status, count = d->it->tree.count;
    choice->most = count < 8 * LEAVES ? count + 1 : 8 * LEAVES;
    while ((status = esp_tree_rows_build(rows, d->it, choice)) == 0 && leaves(rows) > fit &&
           choice->most > fit) {
        esp_tree_rows_free(rows);
        choice->most = choice->most * 7 / 8;
    }
    return status;
}

/* Chooses as many rows as the drawing options allow, or as many as fit on a slide. On a slide,
 * the children of nodes at depth LEVELS or deeper are hidden, except children of accepted
 * nodes.
 */
static int choose_rows(const struct picture *d, struct esp_tree_rows *rows)
{
    const struct esp_tree *tree = &d->it->tree;
    struct esp_tree_choice choice = {.stages = ESP_STAGES, .most = d->look->most};
    if (choice.most >= 0)
        return esp_tree_rows_build(rows, d->it, &choice);
    bool *deep = calloc((size_t)tree->count, sizeof *deep);
    if (!deep)
        return ESP_E_MEMORY;
    for (int i = 0; i < tree->count; i++)
        deep[i] = tree->nodes[i].depth >= LEVELS && tree->nodes[i].verdict != ESP_ACCEPTED;
    choice.collapsed = deep;
    int status = choose_most(d, &choice, rows);
    free(deep);
    return status;
}

static void add_tree(struct picture *d)
{
    struct esp_tree_rows rows = {.count = 0};
    Agnode_t **node = NULL;
    d->failed = d->failed || choose_rows(d, &rows) < 0;
    if (!d->failed && rows.count > 0)
        node = calloc((size_t)rows.count, sizeof *node);
    d->failed = d->failed || !node;
    for (int i = rows.count - 1; !d->failed && i >= 0; i--)
        node[i] = add_row(d, &rows.row[i]);
    for (int i = rows.count - 1; !d->failed && i > 0; i--)
        add_edge(d, node[rows.row[i].parent_row], &rows.row[i], node[i]);
    if (node)
        esp_tree_rows_free(&rows);
    free(node);
}

/* ------------------------------------------------------------------ the whole picture */

static void declare(struct picture *d)
{
    static const struct {
        int kind;
        const char *name, *value;
    } defaults[] = {
        {AGRAPH, "rankdir", "LR"},       {AGRAPH, "ordering", "out"},
        {AGRAPH, "nodesep", "0.16"},     {AGRAPH, "ranksep", "0.6"},
        {AGRAPH, "pad", "0.35"},         {AGRAPH, "labeljust", "l"},
        {AGNODE, "shape", "box"},        {AGNODE, "style", "rounded,filled"},
        {AGNODE, "margin", "0.1,0.055"}, {AGNODE, "height", "0.3"},
        {AGNODE, "width", "0.3"},        {AGEDGE, "arrowhead", "none"},
        {AGEDGE, "tailport", "e"},       {AGEDGE, "headport", "w"},
    };
    static const char font[] = "DejaVu Sans,Verdana,sans-serif";
    const struct esp_colours *colours = d->look->colours;
    char shade[8];
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        agattr(d->graph, defaults[i].kind, (char *)defaults[i].name, (char *)defaults[i].value);
    for (int kind = AGRAPH; kind <= AGEDGE; kind++)
        agattr(d->graph, kind, "fontname", (char *)font);
    agattr(d->graph, AGRAPH, "bgcolor", (char *)colours->background);
    agattr(d->graph, AGRAPH, "fontcolor", (char *)colours->text);
    agattr(d->graph, AGRAPH, "labelloc", "t");
    agattr(d->graph, AGRAPH, "peripheries", "0");
    esp_colours_shade(colours, 0, shade);
    agattr(d->graph, AGNODE, "fillcolor", shade);
    agattr(d->graph, AGNODE, "color", (char *)colours->frame);
    agattr(d->graph, AGEDGE, "color", (char *)colours->edge);
}

static void label_graph(struct picture *d, Agraph_t *graph,
                        void (*put)(FILE *, const struct esp_iteration *,
                                    const struct esp_picture_look *))
{
    FILE *file = begin_label(d);
    if (!file)
        return;
    put(file, d->it, d->look);
    end_label(d, graph, file);
}

Agraph_t *esp_picture(const struct esp_iteration *it, const struct esp_tokens *tokens,
                      const struct esp_picture_look *look)
{
    struct picture d = {.it = it, .tokens = tokens, .look = look};
    char name[] = "espalier", cluster[] = "cluster_tree";
    d.graph = agopen(name, Agstrictdirected, NULL);
    if (!d.graph)
        return NULL;
    declare(&d);
    d.tree = agsubg(d.graph, cluster, 1);
    if (look->caption != ESP_CAPTION_NONE) {
        label_graph(&d, d.graph, esp_picture_caption);
        label_graph(&d, d.tree, esp_picture_legend);
    }
    set(d.tree, "labelloc", "b");
    add_tree(&d);
    if (d.failed) {
        agclose(d.graph);
        return NULL;
    }
    return d.graph;
}
