/* curves.c - replaces the control points of laid-out edges; see curves.h. */
#include "viz/dot/curves.h"

#include <stdlib.h>
#include <string.h>

/* A column of nodes: their middle is the same. */
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

/* Returns how many there are. */
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
    enum { POINTS = 10 }; /* three Bezier curves, of which the outer ones are lines */
    bezier *curve = ED_spl(edge)->list;
    pointf start = curve->list[0], end = curve->list[curve->size - 1];
    double middle = (from + to) / 2;
    const pointf points[POINTS] = {
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
    curve->size = POINTS;
}

void esp_curves_bend(Agraph_t *graph)
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
