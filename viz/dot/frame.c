/* frame.c - fits a layout to an aspect; see frame.h.
 *
 * The tree grows to the right, so columns are Graphviz's ranks: `ranksep` moves them apart and
 * `nodesep` the rows, both in inches. The page is the attribute `viewport`, read when the
 * picture is drawn: its size and its centre, in points.
 */
#include "viz/dot/frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 72 };
#define PAD 0.35 /* inches around the tree, as picture.c declares them */

static double width_of(Agraph_t *graph)
{
    return GD_bb(graph).UR.x - GD_bb(graph).LL.x + 2 * PAD * POINTS;
}

static double height_of(Agraph_t *graph)
{
    return GD_bb(graph).UR.y - GD_bb(graph).LL.y + 2 * PAD * POINTS;
}

/* The gaps between columns, and between the nodes of the longest column. */
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

/* Sets the page: the tree and its margin, enlarged in one direction. */
static void set_page(Agraph_t *graph, double aspect)
{
    const boxf all = GD_bb(graph);
    const double width = fmax(width_of(graph), aspect * height_of(graph));
    char value[128];
    snprintf(value, sizeof value, "%.2f,%.2f,1,%.2f,%.2f", width, width / aspect,
             (all.LL.x + all.UR.x) / 2, (all.LL.y + all.UR.y) / 2);
    agsafeset(graph, (char *)"viewport", value, (char *)"");
}

bool esp_frame_layout(GVC_t *context, Agraph_t *graph, double aspect)
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
