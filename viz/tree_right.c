/* tree_right.c - draws a tree that grows to the right; see tree_right.h.
 *
 * A node is drawn as its token followed by words: probability, mark, and notes of step mode.
 * The function write_node() both counts the width of a node and draws its cells, so the width
 * always fits what is drawn.
 */
#include "viz/tree_right.h"

#include <stdlib.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/safe.h"

enum { DETAILS = 3 };

/* For each level of detail: the maximum number of columns of a token, and the number of
 * columns between a node and its children (a blank, the joint, a dash and perhaps a blank). */
static const int room_of_token[DETAILS] = {8, 14, 28}, gap_of[DETAILS] = {3, 4, 4};

/* Says where the next word is drawn. If the canvas is NULL, the columns are only counted. */
struct pen {
    struct esp_canvas *canvas;
    int x, y;
};

static void write_word(struct pen *pen, int style, const char *word)
{
    pen->x++;
    if (pen->canvas)
        esp_draw(pen->canvas, pen->x, pen->y, style, word);
    pen->x += esp_safe_width(word, strlen(word), 0);
}

static void write_token(struct pen *pen, const struct esp_tree_look *look, int detail,
                        int style, int32_t token, bool ascii)
{
    int width = esp_token_width(&look->tokens, token, ascii), room = room_of_token[detail];
    if (pen->canvas)
        esp_draw_token(pen->canvas, pen->x, pen->y, room, style, &look->tokens, token);
    pen->x += width < room ? width : room;
}

/* Writes the words after the token of a node. */
static void write_words(struct pen *pen, const struct esp_iteration *it, int index,
                        const struct esp_tree_look *look, int detail,
                        const struct esp_glyphs *glyphs)
{
    const struct esp_node *node = &it->tree.nodes[index];
    char text[16];
    if (detail == 2)
        write_word(pen, esp_node_style(it, index),
                   esp_is_copied(it, index) ? esp_source_word(esp_source_of(it, index))
                                            : esp_probability(text, node->q));
    if (look->new_depth > 0 && node->depth == look->new_depth)
        write_word(pen, ESP_STYLE_WARN, "new");
    for (int i = 1; look->numbered && detail == 2 && i < it->tree.verified; i++) {
        if (it->tree.order[i] != index)
            continue;
        snprintf(text, sizeof text, "row %d", i);
        write_word(pen, ESP_STYLE_LABEL, text);
    }
    if (node->verdict == ESP_ACCEPTED)
        write_word(pen, ESP_STYLE_ACCEPTED, glyphs->accepted);
    else if (node->verdict == ESP_REJECTED)
        write_word(pen, ESP_STYLE_REJECTED, glyphs->rejected);
    else if (node->verdict == ESP_CUT && detail > 0)
        write_word(pen, ESP_STYLE_CUT, "cut");
}

static void write_node(struct pen *pen, const struct esp_tree_row *row,
                       const struct esp_iteration *it, const struct esp_tree_look *look,
                       int detail, const struct esp_glyphs *glyphs, bool ascii)
{
    char text[48];
    int32_t token = row->kind == ESP_ROW_BONUS ? it->bonus : it->tree.nodes[row->node].token;
    int style = row->kind == ESP_ROW_BONUS ? ESP_STYLE_BONUS : esp_node_style(it, row->node);
    if (row->kind == ESP_ROW_FOLD) {
        snprintf(text, sizeof text,
                 detail < 2 ? "%d"
                 : row->cut ? "%d more (%d cut)"
                            : "%d more",
                 row->hidden, row->cut);
        if (pen->canvas)
            esp_draw(pen->canvas, pen->x, pen->y, ESP_STYLE_LABEL, glyphs->ellipsis);
        pen->x++;
        write_word(pen, ESP_STYLE_LABEL, text);
        return;
    }
    if (esp_tree_matches(look, token))
        style = ESP_STYLE_MATCH;
    if (row->depth == 0 && pen->canvas)
        esp_draw(pen->canvas, pen->x, pen->y, ESP_STYLE_EDGE, glyphs->dot);
    pen->x += row->depth == 0 ? 2 : 0;
    write_token(pen, look, detail, style, token, ascii);
    if (row->kind == ESP_ROW_BONUS)
        write_word(pen, ESP_STYLE_LABEL, "+");
    else if (row->depth > 0)
        write_words(pen, it, row->node, look, detail, glyphs);
}

/* ------------------------------------------------------------------ placing */

int esp_tree_right_place(struct esp_tree_right *right, const struct esp_tree_rows *rows,
                         const struct esp_iteration *it, const struct esp_tree_look *look,
                         int columns, bool ascii)
{
    *right = (struct esp_tree_right){.detail = DETAILS};
    right->box = calloc((size_t)rows->count, sizeof *right->box);
    if (!right->box)
        return ESP_E_MEMORY;
    do {
        right->detail--;
        for (int i = 0; i < rows->count; i++) {
            struct pen pen = {.x = 0};
            write_node(&pen, &rows->row[i], it, look, right->detail, &esp_glyphs_ascii, ascii);
            right->box[i] = (struct esp_tidy_box){rows->row[i].parent_row, pen.x, 0, 0};
        }
        int status = esp_tidy_place(right->box, rows->count, gap_of[right->detail],
                                    &right->width, &right->height);
        if (status < 0) {
            esp_tree_right_free(right);
            return status;
        }
    } while (right->width > columns && right->detail > 0);
    return 0;
}

void esp_tree_right_free(struct esp_tree_right *right)
{
    free(right->box);
    right->box = NULL;
}

/* ------------------------------------------------------------------ drawing */

struct drawing {
    struct esp_canvas *canvas;
    const struct esp_tree_right *right;
    const struct esp_tree_rows *rows;
    const struct esp_iteration *it;
    int x, y;          /* column and row at the top left */
    int *first, *last; /* (rows->count) first and last child, or -1 */
};

static bool is_accepted(const struct drawing *d, int row)
{
    const struct esp_tree_row *r = &d->rows->row[row];
    return r->kind == ESP_ROW_BONUS ||
           (r->kind == ESP_ROW_NODE &&
            (row == 0 || d->it->tree.nodes[r->node].verdict == ESP_ACCEPTED));
}

/* Draws the vertical line that joins the children of a row. */
static void draw_joint(const struct drawing *d, int parent)
{
    const struct esp_glyphs *glyphs = d->canvas->glyphs;
    const struct esp_tidy_box *box = d->right->box, *p = &box[parent];
    int x = p->x + p->width + 1 - d->x, first = d->first[parent], last = d->last[parent];
    int child = first;
    for (int y = box[first].y; y <= box[last].y; y++) {
        int lines = (y > box[first].y ? ESP_LINE_UP : 0) |
                    (y < box[last].y ? ESP_LINE_DOWN : 0) | (y == p->y ? ESP_LINE_LEFT : 0);
        while (child < last && (box[child].y < y || d->rows->row[child].parent_row != parent))
            child++;
        if (box[child].y == y && d->rows->row[child].parent_row == parent)
            lines |= ESP_LINE_RIGHT;
        if (y - d->y < 0 || y - d->y >= d->canvas->view.rect.height)
            continue;
        esp_draw(d->canvas, x, y - d->y, ESP_STYLE_EDGE, glyphs->lines[lines]);
    }
}

/* Draws the horizontal part of the edge to a row. If the edge is on the accepted path, the
 * whole edge is highlighted. */
static void draw_edge(const struct drawing *d, int row)
{
    const struct esp_glyphs *glyphs = d->canvas->glyphs;
    const struct esp_tree_row *r = &d->rows->row[row];
    const struct esp_tidy_box *to = &d->right->box[row], *from = &d->right->box[r->parent_row];
    bool cut = r->kind == ESP_ROW_NODE && d->it->tree.nodes[r->node].verdict == ESP_CUT;
    int x = from->x + from->width + 1 - d->x;
    esp_draw(d->canvas, x + 1, to->y - d->y, ESP_STYLE_EDGE,
             cut ? glyphs->dash : glyphs->lines[ESP_LINE_LEFT | ESP_LINE_RIGHT]);
    if (!is_accepted(d, row) || !is_accepted(d, r->parent_row))
        return;
    int top = from->y < to->y ? from->y : to->y, bottom = from->y + to->y - top;
    esp_draw_restyle(d->canvas, (struct esp_rect){x, top - d->y, 1, bottom - top + 1},
                     ESP_STYLE_ACCEPTED);
    esp_draw_restyle(d->canvas, (struct esp_rect){x, to->y - d->y, 2, 1}, ESP_STYLE_ACCEPTED);
}

/* Marks rows that extend beyond the left or the right edge of the view. */
static void draw_ends(const struct drawing *d)
{
    struct esp_canvas *canvas = d->canvas;
    int width = canvas->view.rect.width, gap = gap_of[d->right->detail];
    for (int i = 0; i < d->rows->count; i++) {
        const struct esp_tidy_box *b = &d->right->box[i];
        int start = b->x - d->x - (i > 0 ? gap - 1 : 0), end = b->x + b->width - d->x;
        if (start < width && end > width)
            esp_draw(canvas, width - 1, b->y - d->y, ESP_STYLE_LABEL, canvas->glyphs->ellipsis);
        if (start < 0 && end > 0)
            esp_draw(canvas, 0, b->y - d->y, ESP_STYLE_LABEL, canvas->glyphs->ellipsis);
    }
}

static void draw_all(const struct drawing *d, const struct esp_tree_look *look)
{
    int count = d->rows->count;
    for (int i = 0; i < count; i++)
        d->first[i] = d->last[i] = -1;
    for (int i = 1; i < count; i++) {
        int parent = d->rows->row[i].parent_row;
        d->first[parent] = d->first[parent] < 0 ? i : d->first[parent];
        d->last[parent] = i;
    }
    for (int i = 0; i < count; i++)
        if (d->first[i] >= 0)
            draw_joint(d, i);
    for (int i = 0; i < count; i++) {
        const struct esp_tidy_box *b = &d->right->box[i];
        struct pen pen = {d->canvas, b->x - d->x, b->y - d->y};
        if (i > 0)
            draw_edge(d, i);
        write_node(&pen, &d->rows->row[i], d->it, look, d->right->detail, d->canvas->glyphs,
                   d->canvas->ascii_text);
        if (i == look->cursor)
            esp_draw_restyle(d->canvas,
                             (struct esp_rect){b->x - d->x, b->y - d->y, b->width, 1},
                             ESP_STYLE_SELECTION);
    }
    draw_ends(d);
}

void esp_tree_right_draw(struct esp_canvas *canvas, const struct esp_tree_right *right,
                         const struct esp_tree_rows *rows, const struct esp_iteration *it,
                         const struct esp_tree_look *look, int x, int y)
{
    struct drawing d = {canvas, right, rows, it, x, y, NULL, NULL};
    d.first = malloc(2 * (size_t)rows->count * sizeof *d.first);
    if (!d.first)
        return;
    d.last = d.first + rows->count;
    draw_all(&d, look);
    free(d.first);
}
