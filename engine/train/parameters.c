/* parameters.c - trained weights; see parameters.h. */
#include "engine/train/parameters.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

int esp_parameters_add(struct esp_parameters *p, const char *name, int rows, int columns)
{
    if (p->count == p->room) {
        const int room = p->room ? 2 * p->room : 32;
        struct esp_parameter *more = realloc(p->list, (size_t)room * sizeof *more);
        p->incomplete |= !more;
        if (!more)
            return -1;
        p->list = more;
        p->room = room;
    }
    struct esp_parameter *added = &p->list[p->count];
    *added = (struct esp_parameter){.rows = rows, .columns = columns, .offset = p->total};
    snprintf(added->name, sizeof added->name, "%s", name);
    p->total += (esp_parameter_size(added) + ESP_LANES - 1) / ESP_LANES * ESP_LANES;
    return p->count++;
}

int esp_parameters_open(struct esp_parameters *p, char *err, size_t errlen)
{
    p->value = p->incomplete ? NULL : esp_cpu_alloc(p->total, 4 * sizeof *p->value);
    if (!p->value)
        return esp_fail(err, errlen, ESP_E_MEMORY,
                        "not enough memory to train %.1f million weights",
                        (double)p->total / 1e6);
    p->first = p->value + p->total;
    p->second = p->first + p->total;
    p->gradient = p->second + p->total;
    return ESP_OK;
}

void esp_parameters_close(struct esp_parameters *p)
{
    esp_cpu_free(p->value);
    free(p->list);
    *p = (struct esp_parameters){0};
}
