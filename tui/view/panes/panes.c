/* panes.c - lists the panes; see pane.h. */
#include "tui/view/pane.h"

#include <string.h>

const struct esp_pane_ops *const esp_panes[ESP_PANES] = {
#define X(name) &esp_pane_##name,
#include "tui/view/panes.def"
};

int esp_pane_find(const char *name)
{
    for (int i = 0; i < ESP_PANES; i++)
        if (strcmp(esp_panes[i]->name, name) == 0)
            return i;
    return -1;
}
