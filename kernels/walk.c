/* walk.c - see walk.h. */
#include "kernels/walk.h"

#include <stdbool.h>

/* Counts the descendants of each entry, and links the children of each entry in a list. Entry
 * `count` represents the end of the committed text. */
static void link_children(struct esp_state_walk *w)
{
    for (int i = w->texts; i <= w->count; i++) {
        w->size[i] = 1;
        w->heavy[i] = w->first[i] = -1;
    }
    for (int i = w->count - 1; i >= w->texts; i--) {
        const int parent = w->parent[i], at = parent < w->texts ? w->count : parent;
        w->size[at] += w->size[i];
        w->next[i] = w->first[at];
        w->first[at] = i;
        if (w->heavy[at] < 0 || w->size[i] >= w->size[w->heavy[at]])
            w->heavy[at] = i;
    }
}

/* Pushes the children of an entry on the stack of pending entries. The child with the most
 * descendants is pushed first, so it is visited last. Returns the new height. */
static int push_children(struct esp_state_walk *w, int entry, int height)
{
    if (w->heavy[entry] >= 0)
        w->pending[height++] = w->heavy[entry];
    for (int child = w->first[entry]; child >= 0; child = w->next[child])
        if (child != w->heavy[entry])
            w->pending[height++] = child;
    return height;
}

void esp_walk_order(struct esp_state_walk *w)
{
    int steps = 0;
    for (; steps < w->texts; steps++)
        w->step[steps] = (struct esp_walk_step){.entry = steps, .from = 0, .to = 0};
    link_children(w);
    w->level[w->count] = 0;
    for (int height = push_children(w, w->count, 0); height > 0;) {
        const int entry = w->pending[--height], parent = w->parent[entry];
        const int above = parent < w->texts ? w->count : parent, from = w->level[above];
        const bool takes_over = above != w->count && w->heavy[above] == entry;
        w->level[entry] = takes_over ? from : from + 1;
        w->step[steps++] = (struct esp_walk_step){
            .entry = entry, .from = (int16_t)from, .to = (int16_t)w->level[entry]};
        height = push_children(w, entry, height);
    }
}
