/* states.c - stores the states and inputs of recurrent layers; see states.h. The arithmetic is
 * in pass_mixer.c. */
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
    s->plan.room = s->plan.ring = esp_state_plan_room(max_batch);
    s->width = esp_cpu_pad(esp_model_desc_conv_width(d), ESP_PANEL);
    s->rates = esp_cpu_pad(d->state_heads, ESP_PANEL);
    s->out = esp_cpu_pad(esp_model_desc_mixed_width(d), ESP_PANEL);
    s->keys = esp_cpu_pad(d->key_heads * d->key_dim, ESP_PANEL);
    s->values = esp_cpu_pad(d->state_heads * d->value_dim, ESP_PANEL);
    s->tail = (size_t)(d->conv_kernel - 1) * s->width;
    s->block = (size_t)d->key_dim * ESP_LANES;
    s->each = s->tail + (size_t)d->state_heads * (size_t)(d->value_dim / ESP_LANES) * s->block;
}

static size_t all_states(const struct esp_cpu_states *s)
{
    return (size_t)s->layers * s->each;
}

/* Returns the number of floats in the inputs and updates of an incomplete chunk, in all layers.
 */
static size_t incomplete(const struct esp_cpu_states *s)
{
    return (size_t)s->layers * (ESP_STATE_CHUNK - 1) * esp_states_stride(s);
}

size_t esp_cpu_state_bytes(const struct esp_model_desc *desc)
{
    struct esp_cpu_states s = {.layers = 0};
    esp_states_set_sizes(&s, desc, 1);
    return all_states(&s) * sizeof *s.memory;
}

size_t esp_cpu_checkpoint_bytes(const struct esp_model_desc *desc)
{
    struct esp_cpu_states s = {.layers = 0};
    esp_states_set_sizes(&s, desc, 1);
    return esp_states_copy(&s) * sizeof *s.slots;
}

size_t esp_states_copy(const struct esp_cpu_states *s)
{
    return all_states(s) + incomplete(s);
}

static bool has_slot(const struct esp_cpu_cache *c, int slot)
{
    return c->states.layers > 0 && slot >= 0 && slot < c->base.weights->desc->state_slots;
}

/* If `save` is true, copies the states, and the inputs and updates of tokens begin..end-1, to
 * slot `slot`. Otherwise copies them from this slot. */
static void copy(struct esp_cpu_states *s, int slot, int begin, int end, bool save)
{
    const size_t stride = esp_states_stride(s), row_bytes = stride * sizeof(float);
    float *kept = s->slots + (size_t)slot * esp_states_copy(s), *rows = kept + all_states(s);
    memcpy(save ? kept : s->memory, save ? s->memory : kept, all_states(s) * sizeof(float));
    for (int place = 0; place < s->layers; place++)
        for (int token = begin; token < end; token++, rows += stride) {
            float *own = esp_states_input(s, place, token % s->plan.ring);
            memcpy(save ? rows : own, save ? own : rows, row_bytes);
        }
}

int esp_cpu_states_save(struct esp_cache *cache, int slot, int length)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    if (!has_slot(c, slot) || cache->folded < 0 || length < cache->folded ||
        length - cache->folded >= ESP_STATE_CHUNK)
        return ESP_E_ARGUMENT;
    copy(&c->states, slot, cache->folded, length, true);
    c->states.saved[slot] = length + 1;
    return ESP_OK;
}

int esp_cpu_states_load(struct esp_cache *cache, int slot)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    if (!has_slot(c, slot) || c->states.saved[slot] == 0)
        return ESP_E_ARGUMENT;
    const int length = c->states.saved[slot] - 1;
    cache->folded = length / ESP_STATE_CHUNK * ESP_STATE_CHUNK;
    copy(&c->states, slot, cache->folded, length, false);
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

/* --------------------------------------------------------- earlier inputs of a convolution */

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
        entry = s->plan.entry[entry].parent;
    }
}

/* Rows are moved in ascending order, so no row is overwritten before it has been moved. */
void esp_states_move_tail(struct esp_cpu_states *s, int place, int kernel)
{
    const struct esp_state_plan *p = &s->plan;
    float *tail = esp_states_of(s, place);
    for (int i = 0; i < kernel - 1 && p->walk.texts > 0; i++) {
        const int token = p->folded - (kernel - 1) + i;
        const float *from = token >= p->start
                                ? esp_states_input(s, place, token % p->ring)
                                : tail + (size_t)(i + p->folded - p->start) * s->width;
        memcpy(tail + (size_t)i * s->width, from, s->width * sizeof *tail);
    }
}
