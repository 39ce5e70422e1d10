/* arrange.c - fits a layout to an aspect ratio, and bends its edges; see arrange.h.
 *
 * The tree grows to the right, so its columns are Graphviz's ranks. `ranksep` is the distance
 * between columns and `nodesep` the distance between rows, both in inches. The attribute
 * `viewport`, which is read when the picture is drawn, gives the size and the centre of the
 * page in points.
 */
#include "viz/dot/arrange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 72 };
#define PAD 0.35 /* margin around the tree in inches; the same as in picture.c */

static double width_of(Agraph_t *graph)
{
    return GD_bb(graph).UR.x - GD_bb(graph).LL.x + 2 * PAD * POINTS;
}

static double height_of(Agraph_t *graph)
{
    return GD_bb(graph).UR.y - GD_bb(graph).LL.y + 2 * PAD * POINTS;
}

/* Counts the gaps between columns, and between the nodes of the longest column. */
static void count_gaps(Agraph_t *graph, int *columns, int *rows)
{
    int last = 0, most = 0, *count = calloc((size_t)agnnodes(graph) + 1, sizeof *count);
    for (Agnode_t *n = agfstnode(graph); n && count; n = agnxtnode(graph, n)) {
        const int rank = ND_rank(n);
        if (rank < 0 || rank > agnnodes(graph))
            continue;
        last = rank > last ? rank : last;
        most = ++count[rank] > most ? count[rank] : most;
    }
    free(count);
    *columns = last;
    *rows = most > 0 ? most - 1 : 0;
}

/* Moves columns or rows apart. Returns whether anything changed. */
static bool spread(Agraph_t *graph, double aspect)
{
    const double most_columns = 1.6, most_rows = 0.7, columns_now = 0.6, rows_now = 0.16;
    const double width = width_of(graph), height = height_of(graph);
    char value[32];
    int columns, rows;
    count_gaps(graph, &columns, &rows);
    const double wider = (aspect * height - width) / POINTS,
                 higher = (width / aspect - height) / POINTS;
    if (wider > 0.1 && columns > 0) {
        snprintf(value, sizeof value, "%.3f",
                 fmin(most_columns, columns_now + wider / columns));
        agsafeset(graph, (char *)"ranksep", value, (char *)"");
    } else if (higher > 0.1 && rows > 0) {
        snprintf(value, sizeof value, "%.3f", fmin(most_rows, rows_now + higher / rows));
        agsafeset(graph, (char *)"nodesep", value, (char *)"");
    } else {
        return false;
    }
    return true;
}

/* Makes the page as large as the tree and its margin, then enlarges it in one direction to
 * reach the aspect ratio. */
static void set_page(Agraph_t *graph, double aspect)
{
    const boxf all = GD_bb(graph);
    const double width = fmax(width_of(graph), aspect * height_of(graph));
    char value[128];
    snprintf(value, sizeof value, "%.2f,%.2f,1,%.2f,%.2f", width, width / aspect,
             (all.LL.x + all.UR.x) / 2, (all.LL.y + all.UR.y) / 2);
    agsafeset(graph, (char *)"viewport", value, (char *)"");
}

bool esp_arrange(GVC_t *context, Agraph_t *graph, double aspect)
{
    if (gvLayout(context, graph, "dot") != 0)
        return false;
    if (!(aspect > 0))
        return true;
    if (spread(graph, aspect)) {
        gvFreeLayout(context, graph);
        if (gvLayout(context, graph, "dot") != 0)
            return false;
    }
    set_page(graph, aspect);
    return true;
}

/* ------------------------------------------------------------------ edges */

/* Describes a column of the tree. The centres of its nodes have the same x. */
struct column {
    double middle, left, right;
};

static struct column *find(struct column *columns, int count, double middle)
{
    int i = 0;
    while (i < count && (columns[i].middle < middle - 0.5 || columns[i].middle > middle + 0.5))
        i++;
    return columns + i;
}

/* Finds the columns and returns their number. */
static int measure(Agraph_t *graph, struct column *columns)
{
    int count = 0;
    for (Agnode_t *n = agfstnode(graph); n; n = agnxtnode(graph, n)) {
        double x = ND_coord(n).x, left = x - ND_lw(n), right = x + ND_rw(n);
        struct column *column = find(columns, count, x);
        if (column == columns + count) {
            *column = (struct column){x, left, right};
            count++;
        }
        column->left = left < column->left ? left : column->left;
        column->right = right > column->right ? right : column->right;
    }
    return count;
}

static void bend(Agedge_t *edge, double from, double to)
{
    enum { CONTROLS = 10 }; /* three Bezier curves; the first and the last are straight */
    bezier *curve = ED_spl(edge)->list;
    pointf start = curve->list[0], end = curve->list[curve->size - 1];
    double middle = (from + to) / 2;
    const pointf points[CONTROLS] = {
        start,
        start,
        {from, start.y},
        {from, start.y},
        {middle, start.y},
        {middle, end.y},
        {to, end.y},
        {to, end.y},
        end,
        end,
    };
    pointf *list = realloc(curve->list, sizeof points);
    if (!list)
        return;
    memcpy(list, points, sizeof points);
    curve->list = list;
    curve->size = CONTROLS;
}

void esp_arrange_bend(Agraph_t *graph)
{
    struct column *columns = calloc((size_t)agnnodes(graph) + 1, sizeof *columns);
    if (!columns)
        return;
    int count = measure(graph, columns);
    for (Agnode_t *n = agfstnode(graph); n; n = agnxtnode(graph, n))
        for (Agedge_t *e = agfstout(graph, n); e; e = agnxtout(graph, e)) {
            double from = find(columns, count, ND_coord(n).x)->right;
            double to = find(columns, count, ND_coord(aghead(e)).x)->left;
            if (ED_spl(e) && ED_spl(e)->size == 1 && from < to)
                bend(e, from, to);
        }
    free(columns);
}
