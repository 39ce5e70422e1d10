/* figure_tree.c - draws a draft tree that grows to the right; see figure.h.
 *
 * The nodes to show are chosen as for the tree pane (tree_view.h), and tidy.h places them. In
 * this placement, a column is one cell of text, and a row has two lines of text.
 */
#include "viz/figure_parts.h"

#include <math.h>
#include <stdlib.h>

#include "viz/chart.h"
#include "viz/tidy.h"
#include "viz/tree_view.h"

enum { TOKEN = 9, NUMBERS = 7, MOST_CELLS = 16, GAP = 5, PITCH = 32, HIGH = 26 };
static const double cell = TOKEN * ESP_MONO_CELL;

struct placed {
    const struct esp_figure *f;
    struct esp_drawing *d;
    const struct esp_tree_rows *rows;
    struct esp_tidy_box *box; /* (rows->count) */
    double x, y;
};

/* Writes the two lines of a node. Returns the width of the wider line, measured in cells of the
 * first line. */
static int words_of(const struct placed *p, int index, char token[256], char numbers[64])
{
    const struct esp_tree_row *row = &p->rows->row[index];
    const struct esp_iteration *it = p->f->iteration;
    const struct esp_node *node = &it->tree.nodes[row->node];
    char q[8], t[8];
    int cells;
    numbers[0] = '\0';
    if (row->kind == ESP_ROW_FOLD) {
        cells = snprintf(token, 256, "%d more", row->hidden);
        if (row->cut > 0)
            snprintf(numbers, 64, "%d cut", row->cut);
        return cells;
    }
    cells = esp_figure_token(p->f, p->d, row->kind == ESP_ROW_BONUS ? it->bonus : node->token,
                             token, MOST_CELLS);
    if (row->kind == ESP_ROW_BONUS)
        snprintf(numbers, 64, "target");
    else if (row->depth > 0 && esp_is_copied(it, row->node))
        snprintf(numbers, 64, "%s", esp_source_word(esp_source_of(it, row->node)));
    else if (row->depth > 0)
        snprintf(numbers, 64, isfinite(node->p) ? "q %s p %s" : "q %s",
                 esp_probability(q, node->q), esp_probability(t, node->p));
    const double least = esp_drawing_width(numbers, NUMBERS, ESP_TEXT_MONO) / cell;
    return cells > least ? cells : (int)ceil(least);
}

static void draw_edge(const struct placed *p, int index)
{
    const struct esp_tree_row *row = &p->rows->row[index];
    const struct esp_iteration *it = p->f->iteration;
    const struct esp_colours *colours = p->f->colours;
    const struct esp_tidy_box *to = &p->box[index], *from = &p->box[to->parent];
    const struct esp_node *node = &it->tree.nodes[row->node];
    const bool real = row->kind == ESP_ROW_NODE;
    const double q = real ? esp_draft_probability(it, row->node) : NAN;
    const bool cut = real && node->verdict == ESP_CUT,
               accepted = real && node->verdict == ESP_ACCEPTED;
    const struct esp_pen pen = {.stroke = accepted                     ? colours->accepted
                                          : row->kind == ESP_ROW_BONUS ? colours->bonus
                                                                       : colours->edge,
                                .width = isfinite(q) ? 0.6 + 4.4 * fmin(fmax(q, 0), 1) : 0.8,
                                .dashes = cut || row->kind == ESP_ROW_FOLD ? "3 2" : NULL};
    const double x = p->x + (from->x + from->width) * cell, end = p->x + to->x * cell,
                 y = p->y + from->y * PITCH + HIGH / 2.0,
                 down = p->y + to->y * PITCH + HIGH / 2.0, bend = (end - x) / 3;
    const double points[] = {x, y, x + bend, y, end - bend, down, end, down};
    esp_drawing_path(p->d, &pen, points, 4, false);
}

/* Returns the pen for the frame of a node with this verdict. */
static struct esp_pen frame_of(const struct esp_colours *colours, int verdict)
{
    static const double widths[] = {
        [ESP_UNVISITED] = 0.8, [ESP_ACCEPTED] = 2.4, [ESP_REJECTED] = 1.4, [ESP_CUT] = 0.8};
    return (struct esp_pen){.stroke = esp_colours_verdict(colours, verdict),
                            .width = widths[verdict & 3],
                            .dashes = verdict == ESP_CUT ? "3 2" : NULL};
}

static void draw_frame(const struct placed *p, int index, double x, double y, double wide)
{
    const struct esp_tree_row *row = &p->rows->row[index];
    const struct esp_node *node = &p->f->iteration->tree.nodes[row->node];
    const struct esp_colours *colours = p->f->colours;
    const bool root = row->depth == 0 && node->verdict == ESP_ACCEPTED;
    struct esp_pen pen = frame_of(colours, root ? ESP_UNVISITED : node->verdict);
    char shade[8];
    if (row->kind == ESP_ROW_FOLD)
        return;
    esp_colours_shade(colours, (double)node->confidence, shade);
    pen.fill = shade;
    if (row->kind == ESP_ROW_BONUS) {
        pen = (struct esp_pen){colours->background, colours->bonus, 0.8, NULL, NULL};
        esp_drawing_rect(p->d, &pen, x - 2, y - 2, wide + 4, HIGH + 4, 5);
    }
    esp_drawing_rect(p->d, &pen, x, y, wide, HIGH, 4);
}

static void draw_node(const struct placed *p, int index)
{
    const struct esp_tree_row *row = &p->rows->row[index];
    const struct esp_node *node = &p->f->iteration->tree.nodes[row->node];
    const struct esp_colours *colours = p->f->colours;
    const double x = p->x + p->box[index].x * cell, y = p->y + p->box[index].y * PITCH,
                 wide = p->box[index].width * cell;
    const bool accepted =
        row->kind == ESP_ROW_NODE && row->depth > 0 && node->verdict == ESP_ACCEPTED;
    char token[256], numbers[64];
    words_of(p, index, token, numbers);
    const bool one = !*numbers;
    draw_frame(p, index, x, y, wide);
    esp_drawing_text(p->d, x + cell, y + (one ? 16 : 12), TOKEN, ESP_ANCHOR_START,
                     ESP_TEXT_MONO | (accepted || row->depth == 0 ? ESP_TEXT_BOLD : 0),
                     row->kind == ESP_ROW_FOLD ? colours->label : colours->text, token);
    esp_drawing_text(p->d, x + cell, y + 21.5, NUMBERS, ESP_ANCHOR_START, ESP_TEXT_MONO,
                     colours->number, numbers);
    const double at = x + wide - 1.5 * cell;
    if (row->kind == ESP_ROW_BONUS)
        esp_figure_mark(p->d, ESP_MARK_PLUS, colours->bonus, at, y + 12, 6);
    else if (accepted)
        esp_figure_mark(p->d, ESP_MARK_CHECK, colours->accepted, at, y + 12, 6);
    else if (row->kind == ESP_ROW_NODE && node->verdict == ESP_REJECTED)
        esp_figure_mark(p->d, ESP_MARK_CROSS, colours->rejected, at, y + 12, 5.5);
}

/* Draws the legend, which explains frames, shades and letters. */
static double draw_key(const struct esp_figure *f, struct esp_drawing *d, double y)
{
    static const char *const words[] = {"accepted", "rejected", "not tested",
                                        "cut: the target never saw it", "the target's own"};
    const struct esp_colours *colours = f->colours;
    const struct esp_pen pens[] = {frame_of(colours, ESP_ACCEPTED),
                                   frame_of(colours, ESP_REJECTED),
                                   frame_of(colours, ESP_UNVISITED),
                                   frame_of(colours, ESP_CUT),
                                   {.stroke = colours->bonus, .width = 0.8}};
    double x = FIGURE_EDGE;
    y += 8;
    for (int i = 0; i < 5; i++) {
        esp_drawing_rect(d, &pens[i], x, y - 8, 16, 10, 3);
        if (i == 0)
            esp_figure_mark(d, ESP_MARK_CHECK, colours->accepted, x + 5, y, 6);
        if (i == 1)
            esp_figure_mark(d, ESP_MARK_CROSS, colours->rejected, x + 5.5, y - 0.5, 5);
        if (i == 4) {
            esp_drawing_rect(d, &pens[i], x - 2, y - 10, 20, 14, 4);
            esp_figure_mark(d, ESP_MARK_PLUS, colours->bonus, x + 5, y, 6);
        }
        esp_figure_small(f, d, x + 22, y, ESP_ANCHOR_START, "%s", words[i]);
        x += 22 + esp_drawing_width(words[i], FIGURE_SMALL, 0) + 12;
    }
    d->width = x + 2 > d->width ? x + 2 : d->width;
    y += 15;
    esp_figure_small(f, d, FIGURE_EDGE, y, ESP_ANCHOR_START,
                     "q: the draft's probability (edge width); p: the target's; shade: "
                     "how sure the draft is at a node");
    return y + 4;
}

static int draw(struct placed *p)
{
    char token[256], numbers[64];
    int width, height;
    p->box = calloc((size_t)p->rows->count + 1, sizeof *p->box);
    if (!p->box)
        return ESP_E_MEMORY;
    for (int i = 0; i < p->rows->count; i++)
        p->box[i] = (struct esp_tidy_box){p->rows->row[i].parent_row,
                                          words_of(p, i, token, numbers) + 4, 0, 0};
    int status = esp_tidy_place(p->box, p->rows->count, GAP, &width, &height);
    if (status == 0) {
        for (int i = 1; i < p->rows->count; i++)
            draw_edge(p, i);
        for (int i = 0; i < p->rows->count; i++)
            draw_node(p, i);
        const double right = p->x + width * cell + FIGURE_EDGE;
        p->d->width = right > p->d->width ? right : p->d->width;
        p->y += height * PITCH;
    }
    free(p->box);
    return status;
}

int esp_figure_tree(const struct esp_figure *f, struct esp_drawing *d, double x, double y,
                    int most)
{
    const struct esp_tree_choice choice = {.stages = ESP_STAGES, .most = most};
    struct esp_tree_rows rows;
    struct placed p = {.f = f, .d = d, .rows = &rows, .x = x, .y = y};
    int status = esp_tree_rows_build(&rows, f->iteration, &choice);
    if (status < 0)
        return status;
    status = draw(&p);
    esp_tree_rows_free(&rows);
    if (f->caption != ESP_CAPTION_NONE)
        p.y = draw_key(f, d, p.y + 6);
    d->height = p.y + FIGURE_EDGE;
    return status;
}

int esp_figure_of_tree(const struct esp_figure *f, struct esp_drawing *d, char *err,
                       size_t errlen)
{
    (void)err, (void)errlen;
    enum { MOST = 48 };
    const struct esp_iteration *it = f->iteration;
    char title[96], words[160];
    int cut = it->tree.count - it->tree.verified;
    snprintf(title, sizeof title, "Draft tree of iteration %d", it->index);
    snprintf(words, sizeof words, "%d nodes drafted, %d cut, %d accepted", it->tree.count - 1,
             cut, it->path_length);
    const double y = esp_figure_caption(f, d, title, words);
    return esp_figure_tree(f, d, FIGURE_EDGE, y, f->nodes < 0 ? MOST : f->nodes);
}
