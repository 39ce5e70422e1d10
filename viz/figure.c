/* figure.c - figures of one iteration; see figure.h. */
#include "viz/figure_parts.h"

#include <string.h>

#include "kernels/status.h"

static const char *const names[] = {"",
#define X(name, text) text,
                                    ESP_FIGURES(X)
#undef X
};

int esp_figure_find(const char *name)
{
    for (int i = ESP_FIGURE_NONE + 1; i < ESP_FIGURE_KINDS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int esp_figure_draw(const struct esp_figure *f, struct esp_drawing *d, char *err, size_t errlen)
{
    int status = ESP_OK;
    d->background = f->colours->background;
    snprintf(d->title, sizeof d->title, "%s of iteration %d", names[f->kind],
             f->iteration->index);
    if (errlen > 0)
        *err = '\0';
    switch (f->kind) {
    case ESP_FIGURE_MASK:
        status = esp_figure_mask(f, d, err, errlen);
        break;
    case ESP_FIGURE_TIMELINE:
        status = esp_figure_timeline(f, d, err, errlen);
        break;
    case ESP_FIGURE_ITERATION:
        status = esp_figure_iteration(f, d);
        break;
    default:
        status = esp_figure_of_tree(f, d);
    }
    if (d->failed)
        status = ESP_E_MEMORY;
    if (status < 0 && errlen > 0 && !*err)
        esp_fail(err, errlen, status, "no memory for the figure");
    return status;
}
