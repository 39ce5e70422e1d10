/* tidy.c - places the boxes of a tree; see tidy.h.
 *
 * Boxes are visited from the last to the first, so children come before their parent. The
 * subtrees of a box are placed below each other. Each subtree is moved up until its outline
 * touches the outline above, and the two outlines are merged. An outline says which range of
 * rows a subtree occupies at each column, from left to right. It starts at the edge to the
 * parent, so it covers the edges, too. Its rows are relative to the subtree's root. Building an
 * outline for every box takes time count * depth at worst, which is negligible for trees that
 * fit on a screen.
 */
#include "viz/tidy.h"

#include <stdlib.h>

#include "engine/espalier.h"

/* A piece of an outline: from the end of the previous piece to column `end`, the subtree is
 * within rows top..bottom. */
struct piece {
    int end, top, bottom;
};

struct outline {
    struct piece *piece; /* (count) */
    int count;
};

/* Returns the smallest distance between the two roots, in rows, at which the outlines do not
 * meet. */
static int distance(const struct outline *above, const struct outline *below)
{
    int least = 1;
    for (int i = 0, j = 0; i < above->count && j < below->count;) {
        int rows = above->piece[i].bottom + 1 - below->piece[j].top;
        int end = above->piece[i].end, other = below->piece[j].end;
        least = rows > least ? rows : least;
        i += end <= other;
        j += other <= end;
    }
    return least;
}

/* Makes `above` the outline of both subtrees. `down`: number of rows from the upper root to the
 * lower root. */
static int join(struct outline *above, const struct outline *below, int down)
{
    int count = 0, i = 0, j = 0;
    struct piece *both = malloc((size_t)(above->count + below->count) * sizeof *both);
    if (!both)
        return ESP_E_MEMORY;
    while (i < above->count || j < below->count) {
        const struct piece *a = i < above->count ? &above->piece[i] : NULL;
        const struct piece *b = j < below->count ? &below->piece[j] : NULL;
        struct piece next = {.end = !b || (a && a->end < b->end) ? a->end : b->end};
        next.top = a ? a->top : b->top + down;
        next.bottom = b ? b->bottom + down : a->bottom;
        i += a && a->end == next.end;
        j += b && b->end == next.end;
        both[count++] = next;
    }
    free(above->piece);
    *above = (struct outline){both, count};
    return 0;
}

/* Makes the outline of a box and its descendants. The box ends at column `end`; the
 * descendants have the outline `children`. Row 0 of `children` is `up` rows above the box. */
static int put_in_front(struct outline *outline, const struct outline *children, int end,
                        int up)
{
    outline->piece = malloc(((size_t)children->count + 1) * sizeof *outline->piece);
    outline->count = children->count + 1;
    if (!outline->piece)
        return ESP_E_MEMORY;
    outline->piece[0] = (struct piece){end, 0, 0};
    for (int i = 0; i < children->count; i++) {
        const struct piece *piece = &children->piece[i];
        outline->piece[i + 1] = (struct piece){piece->end, piece->top - up, piece->bottom - up};
    }
    return 0;
}

struct placing {
    struct esp_tidy_box *box; /* until finish(), y is relative to the parent */
    int *first_child, *next_sibling;
    struct outline *outline;
};

static int place_children(struct placing *p, int at)
{
    struct outline all = {.count = 0};
    int first = p->first_child[at], last = 0, status = 0;
    int end = p->box[at].x + p->box[at].width + (first < 0);
    for (int c = first; c >= 0 && status == 0; c = p->next_sibling[c]) {
        struct outline *own = &p->outline[c];
        if (c == first) {
            all = *own;
            own->piece = NULL;
        } else {
            last = distance(&all, own);
            status = join(&all, own, last);
        }
        p->box[c].y = last;
        free(own->piece);
        own->piece = NULL;
    }
    for (int c = first; c >= 0; c = p->next_sibling[c])
        p->box[c].y -= last / 2;
    if (status == 0)
        status = put_in_front(&p->outline[at], &all, end, last / 2);
    free(all.piece);
    return status;
}

/* Converts the rows of the boxes, which are relative to their parents, into rows of the
 * drawing. Computes the width and height of the drawing. */
static void finish(struct esp_tidy_box *box, int count, const struct outline *outline,
                   int *width, int *height)
{
    int top = 0, bottom = 0;
    *width = 0;
    for (int i = 0; i < outline->count; i++) {
        top = outline->piece[i].top < top ? outline->piece[i].top : top;
        bottom = outline->piece[i].bottom > bottom ? outline->piece[i].bottom : bottom;
    }
    box[0].y = -top;
    for (int i = 0; i < count; i++) {
        box[i].y += i > 0 ? box[box[i].parent].y : 0;
        *width = box[i].x + box[i].width > *width ? box[i].x + box[i].width : *width;
    }
    *height = bottom - top + 1;
}

static int place(struct placing *p, int count, int gap)
{
    int status = 0;
    for (int i = 0; i < count; i++) {
        const struct esp_tidy_box *parent = i > 0 ? &p->box[p->box[i].parent] : NULL;
        p->first_child[i] = p->next_sibling[i] = -1;
        p->box[i].x = parent ? parent->x + parent->width + gap : 0;
    }
    for (int i = count - 1; i > 0; i--) {
        p->next_sibling[i] = p->first_child[p->box[i].parent];
        p->first_child[p->box[i].parent] = i;
    }
    for (int i = count - 1; i >= 0 && status == 0; i--)
        status = place_children(p, i);
    return status;
}

int esp_tidy_place(struct esp_tidy_box *box, int count, int gap, int *width, int *height)
{
    struct placing p = {.box = box};
    *width = *height = 0;
    if (count < 1)
        return 0;
    p.first_child = calloc((size_t)count, sizeof *p.first_child);
    p.next_sibling = calloc((size_t)count, sizeof *p.next_sibling);
    p.outline = calloc((size_t)count, sizeof *p.outline);
    int status =
        p.first_child && p.next_sibling && p.outline ? place(&p, count, gap) : ESP_E_MEMORY;
    if (status == 0)
        finish(box, count, &p.outline[0], width, height);
    for (int i = 0; p.outline && i < count; i++)
        free(p.outline[i].piece);
    free(p.first_child);
    free(p.next_sibling);
    free(p.outline);
    return status;
}
