/* figure.c - draws figures of one iteration; see figure.h. */
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

static int (*const figures[])(const struct esp_figure *, struct esp_drawing *, char *,
                              size_t) = {[ESP_FIGURE_NONE] = esp_figure_of_tree,
                                         [ESP_FIGURE_MASK] = esp_figure_mask,
                                         [ESP_FIGURE_TIMELINE] = esp_figure_timeline,
                                         [ESP_FIGURE_ITERATION] = esp_figure_iteration,
                                         [ESP_FIGURE_TREE] = esp_figure_of_tree};

int esp_figure_draw(const struct esp_figure *f, struct esp_drawing *d, char *err, size_t errlen)
{
    d->background = f->colours->background;
    snprintf(d->title, sizeof d->title, "%s of iteration %d", names[f->kind],
             f->iteration->index);
    if (errlen > 0)
        *err = '\0';
    int status = figures[f->kind](f, d, err, errlen);
    if (d->failed)
        status = ESP_E_MEMORY;
    if (status < 0 && errlen > 0 && !*err)
        esp_fail(err, errlen, status, "not enough memory for the figure");
    return status;
}
