/* parameters.c - stores and updates trained weights; see parameters.h. */
#include "engine/train/parameters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ------------------------------------------------------------------ steps */

enum { TOGETHER = 1 << 14 };

double esp_learning_rate(const struct esp_optimizer *o, int64_t step)
{
    if (step < o->warmup)
        return o->rate * (double)(step + 1) / (double)o->warmup;
    if (step >= o->steps)
        return 0.0;
    const double share = (double)(step - o->warmup) / (double)(o->steps - o->warmup);
    return 0.5 * o->rate * (1.0 + cos(M_PI * share));
}

struct update {
    const struct esp_cpu_gradients *gradients;
    struct esp_parameters *p;
    struct esp_adamw_update how;
};

static void update_part(void *arg, int begin, int end, float *scratch)
{
    const struct update *u = arg;
    const size_t from = (size_t)begin * TOGETHER, to = (size_t)end * TOGETHER;
    const size_t n = (to < u->p->total ? to : u->p->total) - from;
    (void)scratch;
    u->gradients->adamw(u->p->value + from, u->p->gradient + from, u->p->first + from,
                        u->p->second + from, n, &u->how);
    memset(u->p->gradient + from, 0, n * sizeof *u->p->gradient);
}

double esp_optimizer_step(const struct esp_optimizer *o, struct esp_workers *workers,
                          struct esp_parameters *p, int64_t step)
{
    struct update u = {.gradients = esp_workers_gradients(workers), .p = p};
    const double length = sqrt(u.gradients->square_sum(p->gradient, p->total));
    const double clipped = o->clip > 0.0 && length > o->clip ? o->clip / length : 1.0;
    u.how = (struct esp_adamw_update){
        .rate = (float)esp_learning_rate(o, step),
        .beta1 = (float)o->beta1,
        .beta2 = (float)o->beta2,
        .correction1 = (float)(1.0 - pow(o->beta1, (double)step + 1.0)),
        .correction2 = (float)(1.0 - pow(o->beta2, (double)step + 1.0)),
        .epsilon = (float)o->epsilon,
        .decay = (float)o->decay,
        .factor = (float)clipped,
    };
    esp_workers_share(workers, (int)((p->total + TOGETHER - 1) / TOGETHER), update_part, &u);
    return length;
}
