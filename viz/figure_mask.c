/* figure_mask.c - draws the tree attention mask; see figure.h. */
#include "viz/figure_parts.h"

#include "kernels/status.h"
#include "viz/mask.h"

/* Masks with up to LABELLED rows show the tokens of the rows. Masks with more than MOST_ROWS
 * rows are not drawn. */
enum { LABELLED = 48, MOST_ROWS = 1024 };
enum { LABEL_CELLS = 12, PREFIX = 64 };

struct picture {
    const struct esp_figure *f;
    struct esp_drawing *d;
    struct esp_mask mask;
    double x, y, cell; /* corner of the tree's part of the mask; size of a cell */
    bool labelled;
};

static double side(const struct picture *p)
{
    return p->cell * p->mask.rows;
}

/* Fills the cells that are set in the mask. Adjacent cells of a row become one rectangle. */
static void draw_cells(const struct picture *p)
{
    const struct esp_pen ancestor = {.fill = p->f->colours->course},
                         own = {.fill = p->f->colours->text};
    for (int i = 0; i < p->mask.rows; i++) {
        const double y = p->y + i * p->cell;
        for (int j = 0, end; j < i; j = end + 1) {
            for (end = j; end < i && esp_mask_sees(&p->mask, i, end);)
                end++;
            if (end > j)
                esp_drawing_rect(p->d, &ancestor, p->x + j * p->cell, y, (end - j) * p->cell,
                                 p->cell, 0);
        }
        esp_drawing_rect(p->d, &own, p->x + i * p->cell, y, p->cell, p->cell, 0);
    }
}

static void draw_grid(const struct picture *p)
{
    const struct esp_pen faint = {.stroke = p->f->colours->edge, .width = 0.4};
    const double all = side(p);
    for (int i = 0; p->labelled && i <= p->mask.rows; i++) {
        const double at = i * p->cell;
        esp_drawing_line(p->d, &faint, p->x, p->y + at, p->x + all, p->y + at);
        esp_drawing_line(p->d, &faint, p->x + at, p->y, p->x + at, p->y + all);
    }
}

/* Draws a frame around each block: thick if the block is not empty, otherwise dashed. Returns
 * the number of blocks that are not empty, and sets *all to the number of all blocks. */
static int draw_blocks(const struct picture *p, int *all)
{
    const struct esp_pen frame = {.stroke = p->f->colours->accepted, .width = 1.6},
                         empty = {
                             .stroke = p->f->colours->frame, .width = 0.6, .dashes = "3 2"};
    const int blocks = (p->mask.rows + ESP_MASK_BLOCK - 1) / ESP_MASK_BLOCK;
    int used = 0;
    for (int pass = 0; pass < 2; pass++) /* first dashed frames, then thick frames over them */
        for (int i = 0; i < blocks * blocks; i++) {
            const int row = i / blocks, column = i % blocks;
            const double x = p->x + column * ESP_MASK_BLOCK * p->cell,
                         y = p->y + row * ESP_MASK_BLOCK * p->cell;
            const bool seen = esp_mask_block(&p->mask, row, column);
            const double right = p->x + side(p), bottom = p->y + side(p),
                         wide = ESP_MASK_BLOCK * p->cell;
            used += seen && pass == 1;
            if (seen == (pass == 1))
                esp_drawing_rect(p->d, seen ? &frame : &empty, x, y,
                                 x + wide < right ? wide : right - x,
                                 y + wide < bottom ? wide : bottom - y, 0);
        }
    *all = blocks * blocks;
    return used;
}

static void draw_labels(const struct picture *p)
{
    const struct esp_tree *tree = &p->f->iteration->tree;
    const struct esp_colours *colours = p->f->colours;
    const int size = p->cell < 9 ? FIGURE_SMALL - 2 : FIGURE_SMALL;
    char text[256];
    for (int i = 0; p->labelled && i < p->mask.rows; i++) {
        const struct esp_node *node = &tree->nodes[tree->order[i]];
        const bool accepted = i == 0 || node->verdict == ESP_ACCEPTED;
        const int flags = ESP_TEXT_MONO | (accepted ? ESP_TEXT_BOLD : 0);
        const char *colour = i == 0     ? colours->text
                             : accepted ? colours->accepted
                                        : colours->label;
        const double middle = (i + 0.5) * p->cell + 0.32 * size;
        esp_figure_token(p->f, p->d, node->token, text, LABEL_CELLS);
        esp_drawing_text(p->d, p->x - PREFIX - 10, p->y + middle, size, ESP_ANCHOR_END, flags,
                         colour, text);
        esp_drawing_text(p->d, p->x + middle, p->y - 5, size, ESP_ANCHOR_START,
                         flags | ESP_TEXT_UPWARDS, colour, text);
    }
}

/* Draws a wide column for the text before the tree, which every row sees. */
static void draw_prefix(const struct picture *p)
{
    const struct esp_colours *colours = p->f->colours;
    const double x = p->x - PREFIX - 4;
    const struct esp_pen all = {.fill = colours->course},
                         gap = {.stroke = colours->background, .width = 5};
    esp_drawing_rect(p->d, &all, x, p->y, PREFIX, side(p), 0);
    esp_drawing_line(p->d, &gap, x + PREFIX / 2.0 + 3, p->y - 1, x + PREFIX / 2.0 - 3,
                     p->y + side(p) + 1);
    const int before = p->f->iteration->position - 1; /* without the root */
    esp_figure_small(p->f, p->d, x + PREFIX / 2.0, p->y - 14, ESP_ANCHOR_MIDDLE, "the text");
    esp_figure_small(p->f, p->d, x + PREFIX / 2.0, p->y - 5, ESP_ANCHOR_MIDDLE, "%d tokens",
                     before > 0 ? before : 0);
}

/* Draws a sample cell and its meaning. */
static void draw_sample(const struct picture *p, const struct esp_pen *pen, double x, double y,
                        const char *text)
{
    esp_drawing_rect(p->d, pen, x, y - 8, 9, 9, 0);
    esp_figure_small(p->f, p->d, x + 14, y, ESP_ANCHOR_START, "%s", text);
}

static void draw_key(const struct picture *p, int used, int all)
{
    const struct esp_colours *colours = p->f->colours;
    const struct esp_pen own = {.fill = colours->text}, ancestor = {.fill = colours->course},
                         frame = {.stroke = colours->accepted, .width = 1.6};
    const double x = FIGURE_EDGE, y = p->y + side(p) + 20;
    char text[96];
    snprintf(text, sizeof text, "block of 32 x 32 that is not empty: %d of %d", used, all);
    draw_sample(p, &own, x, y, "the row itself");
    draw_sample(p, &ancestor, x + 90, y, "seen: its ancestors");
    draw_sample(p, &frame, x, y + 15, text);
    p->d->height = y + 15 + FIGURE_EDGE;
}

static void draw(struct picture *p)
{
    const struct esp_figure *f = p->f;
    const double label = p->labelled ? LABEL_CELLS * (FIGURE_SMALL * ESP_MONO_CELL) : 0;
    char title[96], words[160];
    int all;
    p->d->width = 0;
    snprintf(title, sizeof title, "Tree attention mask of iteration %d", f->iteration->index);
    snprintf(words, sizeof words, "%d rows%s%s%s", p->mask.rows, f->order ? " in " : "",
             f->order ? f->order : "", f->order ? " order" : "");
    p->y = esp_figure_caption(f, p->d, title, words) + (label > 14 ? label : 14) + 8;
    p->x = FIGURE_EDGE + label + PREFIX + 14;
    draw_cells(p);
    draw_grid(p);
    const int used = draw_blocks(p, &all);
    draw_labels(p);
    draw_prefix(p);
    p->d->height = p->y + side(p) + FIGURE_EDGE;
    const double wide = p->x + side(p) + FIGURE_EDGE,
                 least = f->caption != ESP_CAPTION_NONE ? 260 + 2 * FIGURE_EDGE : 0;
    p->d->width = wide > least ? wide : least;
    if (f->caption != ESP_CAPTION_NONE)
        draw_key(p, used, all);
}

int esp_figure_mask(const struct esp_figure *f, struct esp_drawing *d, char *err, size_t errlen)
{
    struct picture p = {.f = f, .d = d};
    const int rows = f->iteration->tree.verified;
    if (rows > MOST_ROWS)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "this mask has %d rows; figures of masks have at most %d", rows,
                        MOST_ROWS);
    if (!esp_mask_open(&p.mask, &f->iteration->tree))
        return ESP_E_MEMORY;
    p.labelled = rows <= LABELLED;
    p.cell = p.labelled ? 400.0 / (rows < 28 ? 28 : rows) : 480.0 / rows;
    draw(&p);
    esp_mask_close(&p.mask);
    return ESP_OK;
}
