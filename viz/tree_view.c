/* tree_view.c - chooses the rows of a draft tree and draws them; see tree_view.h.
 *
 * Rows are chosen greedily: first the root and the accepted path, then nodes in order of
 * interest while their rows fit, each after its parent. A node needs one row. If it has
 * children, it also needs a fold row, which says how many are hidden. If the node was the last
 * hidden child, the fold row of its parent is not needed any more.
 */
#include "viz/tree_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/safe.h"
#include "viz/say.h"
#include "viz/search.h"

struct building {
    const struct esp_iteration *it;
    const struct esp_tree_choice *choice;
    int *first, *child; /* children of node i: child[first[i]] .. child[first[i + 1] - 1] */
    int *hidden;        /* (count) how many children of a shown node are not shown */
    bool *shown;
    int rows;       /* number of rows chosen so far */
    int bonus_node; /* parent of the bonus token, or -1 */
};

static int parent_of(const struct esp_tree *tree, int node)
{
    int parent = tree->nodes[node].parent;
    return parent >= 0 && parent < node ? parent : 0;
}

static int child_count(const struct building *b, int node)
{
    return b->first[node + 1] - b->first[node];
}

/* Lists the children of each node by a counting sort. Siblings are in the order of their rank.
 */
static void list_children(struct building *b)
{
    const struct esp_tree *tree = &b->it->tree;
    for (int i = 1; i < tree->count; i++)
        b->first[parent_of(tree, i) + 1]++;
    for (int i = 0; i < tree->count; i++)
        b->first[i + 1] += b->first[i];
    for (int i = 1; i < tree->count; i++) {
        int parent = parent_of(tree, i), at = b->first[parent] + b->hidden[parent]++;
        for (; at > b->first[parent]; at--) {
            int before = b->child[at - 1];
            if (tree->nodes[before].rank <= tree->nodes[i].rank)
                break;
            b->child[at] = before;
        }
        b->child[at] = i;
    }
}

static void show(struct building *b, int node)
{
    b->shown[node] = true;
    b->rows += 1 + (child_count(b, node) > 0);
    if (node > 0 && --b->hidden[parent_of(&b->it->tree, node)] == 0)
        b->rows--;
}

static bool can_show(const struct building *b, int node, int most)
{
    int parent = parent_of(&b->it->tree, node);
    if (b->shown[node] || !b->shown[parent] ||
        (b->choice->collapsed && b->choice->collapsed[parent]))
        return false;
    int rows = b->rows + 1 + (child_count(b, node) > 0) - (b->hidden[parent] == 1);
    return most == 0 || rows <= most;
}

struct interest {
    int class, node;
    float q;
};

static int by_interest(const void *left, const void *right)
{
    const struct interest *a = left, *b = right;
    if (a->class != b->class)
        return a->class - b->class;
    if (a->q != b->q)
        return a->q > b->q ? -1 : 1;
    return a->node - b->node;
}

/* Returns the nodes in order of interest: first new nodes and their ancestors, then the other
 * nodes, sorted by verdict and cumulative draft probability. The caller frees the array.
 * Returns NULL if there is no memory. */
static struct interest *rank(const struct building *b)
{
    static const int class[] = {
        [ESP_ACCEPTED] = 1, [ESP_REJECTED] = 2, [ESP_UNVISITED] = 3, [ESP_CUT] = 4};
    const struct esp_tree *tree = &b->it->tree;
    struct interest *order = calloc((size_t)tree->count, sizeof *order);
    if (!order)
        return NULL;
    for (int i = 0; i < tree->count; i++) {
        const struct esp_node *node = &tree->nodes[i];
        order[i] = (struct interest){class[node->verdict & 3], i, node -> cumulative_log_q};
    }
    for (int i = tree->count - 1; i > 0; i--) {
        bool new = b->choice->new_depth > 0 && tree->nodes[i].depth == b->choice->new_depth;
        if (new || order[i].class == 0)
            order[i].class = order[parent_of(tree, i)].class = 0;
    }
    qsort(order, (size_t)tree->count, sizeof *order, by_interest);
    return order;
}

/* Marks the nodes to show. */
static int choose(struct building *b)
{
    const struct esp_tree *tree = &b->it->tree;
    struct interest *order = rank(b);
    if (!order)
        return ESP_E_MEMORY;
    b->rows = b->bonus_node >= 0;
    show(b, 0);
    for (int i = 0; i < b->it->path_length; i++) {
        int node = b->it->path[i];
        if (node > 0 && node < tree->count && can_show(b, node, 0))
            show(b, node);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < tree->count; i++) {
            if (!can_show(b, order[i].node, b->choice->most))
                continue;
            show(b, order[i].node);
            changed = true;
        }
    }
    free(order);
    return 0;
}

static void count_hidden(const struct building *b, int node, struct esp_tree_row *fold)
{
    for (int i = b->first[node]; i < b->first[node + 1]; i++) {
        int child = b->child[i];
        if (b->shown[child])
            continue;
        fold->hidden++;
        fold->cut += b->it->tree.nodes[child].verdict == ESP_CUT;
        count_hidden(b, child, fold);
    }
}

/* Appends the row of `node` and the rows of its descendants. */
static void emit(const struct building *b, struct esp_tree_rows *rows, struct esp_tree_row row)
{
    int at = rows->count, last = -1, node = row.node;
    rows->row[rows->count++] = row;
    struct esp_tree_row below = {.parent_row = at, .depth = row.depth + 1};
    if (b->it->path_length > 0 && node == b->it->path[b->it->path_length - 1])
        rows->path_end = at;
    for (int i = b->first[node]; i < b->first[node + 1]; i++) {
        if (!b->shown[b->child[i]])
            continue;
        last = rows->count;
        below.node = b->child[i];
        emit(b, rows, below);
    }
    below.node = node;
    if (b->bonus_node == node) {
        last = rows->count;
        below.kind = ESP_ROW_BONUS;
        rows->row[rows->count++] = below;
    }
    if (b->hidden[node] > 0) {
        last = rows->count;
        below.kind = ESP_ROW_FOLD;
        count_hidden(b, node, &below);
        rows->row[rows->count++] = below;
    }
    if (last >= 0)
        rows->row[last].last = true;
}

static int build(struct building *b, struct esp_tree_rows *rows)
{
    list_children(b);
    int status = choose(b);
    if (status < 0)
        return status;
    rows->row = calloc((size_t)b->rows, sizeof *rows->row);
    if (!rows->row)
        return ESP_E_MEMORY;
    emit(b, rows, (struct esp_tree_row){.parent_row = -1, .last = true});
    return 0;
}

int esp_tree_rows_build(struct esp_tree_rows *rows, const struct esp_iteration *it,
                        const struct esp_tree_choice *choice)
{
    *rows = (struct esp_tree_rows){.count = 0};
    size_t count = (size_t)it->tree.count;
    if (it->tree.count < 1)
        return 0;
    struct building b = {.it = it, .choice = choice, .bonus_node = -1};
    if (choice->stages > ESP_STAGE_SELECT)
        b.bonus_node = it->path_length > 0 ? it->path[it->path_length - 1] : 0;
    b.first = calloc(3 * count + 2, sizeof *b.first);
    b.shown = calloc(count, sizeof *b.shown);
    b.child = b.first ? b.first + count + 2 : NULL;
    b.hidden = b.first ? b.child + count : NULL;
    int status = b.first && b.shown ? build(&b, rows) : ESP_E_MEMORY;
    free(b.first);
    free(b.shown);
    return status;
}

void esp_tree_rows_free(struct esp_tree_rows *rows)
{
    free(rows->row);
    rows->row = NULL;
    rows->count = 0;
}

bool esp_is_sampled(const struct esp_iteration *it)
{
    return isfinite(it->bonus_u) && !(it->verifier && strncmp(it->verifier, "greedy", 6) == 0);
}

int esp_source_of(const struct esp_iteration *it, int node)
{
    const struct esp_node *nodes = it->tree.nodes;
    if (node == 0 || nodes[node].source != ESP_SOURCE_DRAFT)
        return node == 0 ? ESP_SOURCE_DRAFT : nodes[node].source;
    const bool all = nodes[0].reason == ESP_REASON_RETRIEVED;
    return nodes[node].copied > 0 || all ? ESP_SOURCE_COPIED : ESP_SOURCE_DRAFT;
}

bool esp_is_copied(const struct esp_iteration *it, int node)
{
    return esp_source_of(it, node) != ESP_SOURCE_DRAFT;
}

void esp_count_sources(const struct esp_iteration *it, int count[ESP_SOURCES])
{
    memset(count, 0, ESP_SOURCES * sizeof *count);
    for (int i = 1; i < it->tree.count; i++)
        count[esp_source_of(it, i)]++;
}

const char *esp_copied_text(char text[64], const struct esp_iteration *it, int node)
{
    const int back = it->tree.nodes[node].copied; /* 0 means the distance is not known */
    snprintf(text, 64, "%s", esp_source_text(esp_source_of(it, node)));
    if (back > 0)
        snprintf(text, 64, "copied from the text, %d token%s back", back, esp_plural(back));
    return text;
}

double esp_draft_probability(const struct esp_iteration *it, int node)
{
    return esp_is_copied(it, node) ? NAN : (double)it->tree.nodes[node].q;
}

double esp_path_probability(const struct esp_iteration *it, int node)
{
    for (int up = node; up > 0; up = it->tree.nodes[up].parent)
        if (esp_is_copied(it, up))
            return NAN;
    return exp(it->tree.nodes[node].cumulative_log_q);
}

int32_t esp_target_choice(const struct esp_iteration *it, int node)
{
    int previous = 0;
    for (int i = 0; i < it->path_length; i++) {
        if (previous == node)
            return it->tree.nodes[it->path[i]].token;
        previous = it->path[i];
    }
    return previous == node ? it->bonus : -1;
}

/* ------------------------------------------------------------------ drawing */

const char *esp_token_bytes_of(const struct esp_tokens *tokens, int32_t token, size_t *length)
{
    const char *bytes = tokens->text ? tokens->text(tokens->user, token, length) : NULL;
    if (!bytes)
        *length = 0;
    return bytes ? bytes : "";
}

int esp_token_width(const struct esp_tokens *tokens, int32_t token, bool ascii)
{
    size_t length;
    const char *bytes = esp_token_bytes_of(tokens, token, &length);
    return 2 + esp_safe_width(bytes, length, ESP_SAFE_QUOTED | (ascii ? ESP_SAFE_ASCII : 0));
}

int esp_draw_token(struct esp_canvas *canvas, int x, int y, int room, int style,
                   const struct esp_tokens *tokens, int32_t token)
{
    size_t length;
    const char *bytes = esp_token_bytes_of(tokens, token, &length);
    if (room < 3)
        return x;
    x = esp_draw(canvas, x, y, style, "\"");
    x = esp_draw_bytes(canvas, x, y, room - 2, style, ESP_SAFE_QUOTED, bytes, length);
    return esp_draw(canvas, x, y, style, "\"");
}

bool esp_tree_matches(const struct esp_tree_look *look, int32_t token)
{
    size_t length;
    const char *bytes = esp_token_bytes_of(&look->tokens, token, &length);
    return look->search && esp_search_forward(bytes, length, 0, look->search) >= 0;
}

int esp_node_style(const struct esp_iteration *it, int node)
{
    static const int styles[] = {[ESP_UNVISITED] = ESP_STYLE_UNVISITED,
                                 [ESP_ACCEPTED] = ESP_STYLE_ACCEPTED,
                                 [ESP_REJECTED] = ESP_STYLE_REJECTED,
                                 [ESP_CUT] = ESP_STYLE_CUT};
    return node == 0 ? ESP_STYLE_COMMITTED : styles[it->tree.nodes[node].verdict & 3];
}

/* Columns that all rows share, so that numbers are aligned. */
struct columns {
    int step;   /* columns per level */
    int label;  /* columns of the widest label with its indentation */
    int number; /* column at which probabilities start */
    int note;   /* column at which marks and notes start */
};

static struct columns columns_of(const struct esp_canvas *canvas,
                                 const struct esp_tree_rows *rows,
                                 const struct esp_iteration *it,
                                 const struct esp_tree_look *look)
{
    enum { GAP = 2, NUMBER = 3, MARK = 3 };
    int width = canvas->view.rect.width, height = canvas->view.rect.height;
    struct columns c = {.step = 3};
    for (; c.step > 1; c.step--) {
        int widest = 0;
        for (int i = look->first; i < rows->count && i < look->first + height; i++) {
            const struct esp_tree_row *row = &rows->row[i];
            int32_t token =
                row->kind == ESP_ROW_BONUS ? it->bonus : it->tree.nodes[row->node].token;
            int label = row->kind == ESP_ROW_FOLD
                            ? 2
                            : esp_token_width(&look->tokens, token, canvas->ascii_text);
            if (row->depth * c.step + label > widest && row->depth > 0)
                widest = row->depth * c.step + label;
        }
        c.label = widest;
        if (widest + GAP + NUMBER + MARK <= width)
            break;
    }
    int most = width - (GAP + NUMBER + MARK);
    if (c.label > most)
        c.label = most;
    c.number = c.label + GAP;
    c.note = c.number + NUMBER + 2;
    return c;
}

/* Draws the edges at the left of a row: the edge of its node, and the edges of the node's
 * ancestors if they continue in later rows. */
static void draw_edges(struct esp_canvas *canvas, const struct esp_tree_rows *rows, int index,
                       int y, int step, bool dashed)
{
    const struct esp_glyphs *glyphs = canvas->glyphs;
    const struct esp_tree_row *row = &rows->row[index];
    int x = (row->depth - 1) * step;
    int corner = ESP_LINE_UP | ESP_LINE_RIGHT | (row->last ? 0 : ESP_LINE_DOWN);
    esp_draw(canvas, x, y, ESP_STYLE_EDGE, glyphs->lines[corner]);
    if (step > 1)
        esp_draw(canvas, x + 1, y, ESP_STYLE_EDGE,
                 dashed ? glyphs->dash : glyphs->lines[ESP_LINE_LEFT | ESP_LINE_RIGHT]);
    for (int up = row->parent_row; up > 0; up = rows->row[up].parent_row) {
        x = (rows->row[up].depth - 1) * step;
        if (!rows->row[up].last)
            esp_draw(canvas, x, y, ESP_STYLE_EDGE, glyphs->lines[ESP_LINE_UP | ESP_LINE_DOWN]);
    }
}

/* Draws the marks and words to the right of the probability. */
static void draw_note(struct esp_canvas *canvas, const struct esp_iteration *it, int index,
                      int x, int y, const struct esp_tree_look *look)
{
    const struct esp_node *node = &it->tree.nodes[index];
    int room = canvas->view.rect.width - x;
    if (look->new_depth > 0 && node->depth == look->new_depth) {
        esp_draw(canvas, x, y, ESP_STYLE_WARN, "new");
        return;
    }
    for (int i = 1; look->numbered && i < it->tree.verified; i++)
        if (it->tree.order[i] == index)
            esp_drawf(canvas, x, y, ESP_STYLE_LABEL, "row %d", i);
    if (node->verdict == ESP_ACCEPTED && index > 0)
        esp_draw(canvas, x, y, ESP_STYLE_ACCEPTED, canvas->glyphs->accepted);
    if (node->verdict == ESP_REJECTED)
        esp_draw(canvas, x, y, ESP_STYLE_REJECTED, canvas->glyphs->rejected);
    const char *source = esp_source_word(esp_source_of(it, index));
    const int width = (int)strlen(source) + 2;
    if (esp_is_copied(it, index) && node->verdict != ESP_CUT && !look->numbered &&
        room > width) {
        esp_draw(canvas, x + 3, y, ESP_STYLE_LABEL, source);
        x += width;
        room -= width;
    }
    if (node->verdict == ESP_REJECTED) {
        int32_t wanted = esp_target_choice(it, node->parent);
        if (look->stages > ESP_STAGE_SELECT && wanted >= 0 && node->rank == 0 && room > 16) {
            x = esp_draw(canvas, x + 3, y, ESP_STYLE_LABEL, "target: ");
            esp_draw_token(canvas, x, y, room - 11, ESP_STYLE_REJECTED, &look->tokens, wanted);
        }
    }
    if (node->verdict == ESP_CUT) {
        const char *reason = esp_reason_text(node->reason);
        x = esp_draw(canvas, x, y, ESP_STYLE_CUT, "cut");
        if (*reason && room >= 5 + (int)strlen(reason))
            esp_drawf(canvas, x, y, ESP_STYLE_CUT, ": %s", reason);
    }
}

static void draw_row(struct esp_canvas *canvas, const struct esp_tree_rows *rows, int index,
                     int y, const struct esp_iteration *it, const struct esp_tree_look *look,
                     const struct columns *c)
{
    const struct esp_tree_row *row = &rows->row[index];
    const struct esp_node *node = &it->tree.nodes[row->node];
    bool cut = row->kind == ESP_ROW_NODE && node->verdict == ESP_CUT;
    bool match = esp_tree_matches(look, node->token);
    int x = row->depth * c->step;
    int room = c->label - x > 5 ? c->label - x : 5;
    char text[48];
    if (row->depth > 0)
        draw_edges(canvas, rows, index, y, c->step, cut);
    if (row->kind == ESP_ROW_FOLD) {
        snprintf(text, sizeof text, row->cut ? "%s %d more (%d cut)" : "%s %d more",
                 canvas->glyphs->ellipsis, row->hidden, row->cut);
        esp_draw(canvas, x, y, ESP_STYLE_LABEL, text);
    } else if (row->kind == ESP_ROW_BONUS) {
        const int left = canvas->view.rect.width - c->note;
        int style = esp_tree_matches(look, it->bonus) ? ESP_STYLE_MATCH : ESP_STYLE_BONUS;
        esp_draw_token(canvas, x, y, room, style, &look->tokens, it->bonus);
        esp_draw(canvas, c->note, y, ESP_STYLE_LABEL,
                 left < 18                          ? "+"
                 : left >= 24 && esp_is_sampled(it) ? "+  drawn from the target"
                                                    : "+  from the target");
    } else if (row->depth == 0) {
        x = esp_draw(canvas, 0, y, ESP_STYLE_EDGE, canvas->glyphs->dot) + 1;
        x = esp_draw_token(canvas, x, y, canvas->view.rect.width - x - 12,
                           match ? ESP_STYLE_MATCH : ESP_STYLE_COMMITTED, &look->tokens,
                           node->token);
        esp_draw(canvas, x + 1, y, ESP_STYLE_LABEL, "committed");
    } else {
        int style = esp_node_style(it, row->node);
        esp_draw_token(canvas, x, y, room, match ? ESP_STYLE_MATCH : style, &look->tokens,
                       node->token);
        esp_draw_probability(canvas, c->number, y, style, esp_draft_probability(it, row->node));
        draw_note(canvas, it, row->node, c->note, y, look);
    }
}

void esp_tree_rows_draw(struct esp_canvas *canvas, const struct esp_tree_rows *rows,
                        const struct esp_iteration *it, const struct esp_tree_look *look)
{
    struct columns c = columns_of(canvas, rows, it, look);
    for (int y = 0; y < canvas->view.rect.height; y++) {
        int index = look->first + y;
        if (index < 0 || index >= rows->count)
            continue;
        draw_row(canvas, rows, index, y, it, look, &c);
        if (index == look->cursor)
            esp_draw_restyle(canvas, (struct esp_rect){0, y, canvas->view.rect.width, 1},
                             ESP_STYLE_SELECTION);
    }
}
