/* panes.c - the list of panes; see pane.h. */
#include "pane.h"

#include <string.h>

#include "explain.h"

const struct esp_pane_ops *const esp_panes[ESP_PANES] = {
#define X(name) &esp_pane_##name,
#include "panes.def"
#undef X
};

int esp_pane_find(const char *name)
{
    for (int i = 0; i < ESP_PANES; i++)
        if (strcmp(esp_panes[i]->name, name) == 0)
            return i;
    return -1;
}

void esp_look_hold(struct esp_look *look, const struct esp_state *state, int index)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, index, &stages);
    if (!it)
        index = -1;
    if (index != look->iteration)
        memset(look->collapsed, 0, sizeof look->collapsed);
    if (index >= 0 && index != look->iteration)
        look->node = esp_telling_node(it);
    look->iteration = index;
}

void esp_look_step(struct esp_look *look, const struct esp_state *state, int step)
{
    int stages;
    const struct esp_iteration *it = esp_state_iteration(state, look->iteration, &stages);
    int next = it ? esp_state_neighbour(state, it->index, step) : -1;
    if (next >= 0 || step > 0)
        esp_look_hold(look, state, next);
    else if (it)
        esp_look_hold(look, state, it->index);
}
