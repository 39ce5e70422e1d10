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
        if (!more)
            return ESP_E_MEMORY;
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
    float **arrays[] = {&p->value, &p->gradient, &p->first, &p->second};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (!(*arrays[i] = esp_cpu_alloc(p->total, sizeof **arrays[i])))
            return esp_fail(err, errlen, ESP_E_MEMORY,
                            "not enough memory to train %.1f million weights",
                            (double)p->total / 1e6);
    return ESP_OK;
}

void esp_parameters_close(struct esp_parameters *p)
{
    esp_cpu_free(p->value);
    esp_cpu_free(p->gradient);
    esp_cpu_free(p->first);
    esp_cpu_free(p->second);
    free(p->list);
    *p = (struct esp_parameters){0};
}
