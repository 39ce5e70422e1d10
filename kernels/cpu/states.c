/* states.c - where states and inputs are stored; see states.h. pass_mixer.c has the
 * arithmetic. */
#include "kernels/cpu/states.h"

#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/model_desc.h"

/* ------------------------------------------------------------------ memory */

void esp_states_set_sizes(struct esp_cpu_states *s, const struct esp_model_desc *d,
                          int max_batch)
{
    s->layers = esp_model_desc_recurrents(d);
    if (s->layers == 0)
        return;
    s->plan.room = s->plan.ring = 2 * max_batch;
    s->width = esp_cpu_pad(esp_model_desc_conv_width(d), ESP_PANEL);
    s->rates = esp_cpu_pad(d->state_heads, ESP_PANEL);
    s->out = esp_cpu_pad(esp_model_desc_mixed_width(d), ESP_PANEL);
    s->tail = (size_t)(d->conv_kernel - 1) * s->width;
    s->block = (size_t)d->key_dim * ESP_LANES;
    s->each = s->tail + (size_t)d->state_heads * (size_t)(d->value_dim / ESP_LANES) * s->block;
}

size_t esp_cpu_state_bytes(const struct esp_model_desc *desc)
{
    struct esp_cpu_states s = {.layers = 0};
    esp_states_set_sizes(&s, desc, 1);
    return (size_t)s.layers * s.each * sizeof *s.memory;
}

static size_t all_states(const struct esp_cpu_states *s)
{
    return (size_t)s->layers * s->each;
}

static bool has_slot(const struct esp_cpu_cache *c, int slot)
{
    return c->states.layers > 0 && slot >= 0 && slot < c->base.weights->desc->state_slots;
}

int esp_cpu_states_save(struct esp_cache *cache, int slot)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    struct esp_cpu_states *s = &c->states;
    if (!has_slot(c, slot) || cache->folded < 0)
        return ESP_E_ARGUMENT;
    memcpy(s->slots + (size_t)slot * all_states(s), s->memory,
           all_states(s) * sizeof *s->memory);
    s->saved[slot] = cache->folded + 1;
    return ESP_OK;
}

int esp_cpu_states_load(struct esp_cache *cache, int slot)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    struct esp_cpu_states *s = &c->states;
    if (!has_slot(c, slot) || s->saved[slot] == 0)
        return ESP_E_ARGUMENT;
    memcpy(s->memory, s->slots + (size_t)slot * all_states(s),
           all_states(s) * sizeof *s->memory);
    cache->folded = s->saved[slot] - 1;
    return ESP_OK;
}

void esp_states_keep(struct esp_cpu_states *s, int folded, int first, const int32_t *which,
                     int count)
{
    const size_t bytes = esp_states_stride(s) * sizeof *s->inputs;
    for (int i = 0; i < count; i++) {
        const int64_t from = (int64_t)which[i] + s->plan.dropped,
                      to = (int64_t)first + i + s->plan.dropped;
        if (!esp_state_plan_moves(from, to, folded, s->plan.room))
            continue;
        for (int place = 0; place < s->layers; place++)
            memcpy(esp_states_input(s, place, (int)(to % s->plan.ring)),
                   esp_states_input(s, place, (int)(from % s->plan.ring)), bytes);
    }
}

/* ------------------------------------------------------------------ the convolution's past */

void esp_states_taps(const struct esp_cpu_states *s, int place, int kernel, int entry,
                     const float *taps[ESP_MOST_TAPS])
{
    const float *tail = esp_states_of(s, place);
    int left = kernel - 1; /* rows of the tail that are not used yet */
    for (int i = kernel - 1; i >= 0; i--) {
        if (entry < 0) {
            taps[i] = tail + (size_t)--left * s->width;
            continue;
        }
        taps[i] = esp_states_input(s, place, s->plan.entry[entry].slot);
        entry = s->plan.walk.parent[entry];
    }
}

/* Rows are moved in ascending order, so none is overwritten before it was moved itself. */
void esp_states_move_tail(struct esp_cpu_states *s, int place, int kernel, int folded_before)
{
    float *tail = esp_states_of(s, place);
    for (int i = 0; i < kernel - 1 && s->plan.folded > folded_before; i++) {
        const int token = s->plan.folded - (kernel - 1) + i;
        const float *from =
            token >= folded_before
                ? esp_states_input(s, place, token % s->plan.ring)
                : tail + (size_t)(i + s->plan.folded - folded_before) * s->width;
        memcpy(tail + (size_t)i * s->width, from, s->width * sizeof *tail);
    }
}
