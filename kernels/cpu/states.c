/* states.c - where states and inputs are stored, and the order in which a pass walks over
 * rows; see states.h. pass_mixer.c has the arithmetic. */
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
    s->ring = 2 * max_batch;
    s->width = esp_cpu_pad(esp_model_desc_conv_width(d), ESP_PANEL);
    s->rates = esp_cpu_pad(d->state_heads, ESP_PANEL);
    s->out = esp_cpu_pad(esp_model_desc_mixed_width(d), ESP_PANEL);
    s->tail = (size_t)(d->conv_kernel - 1) * s->width;
    s->block = (size_t)d->key_dim * ESP_LANES;
    s->each = s->tail + (size_t)d->state_heads * (size_t)(d->value_dim / ESP_LANES) * s->block;
}

size_t esp_cpu_state_bytes(const struct esp_model_desc *desc)
{
    struct esp_cpu_states s = {.ring = 0};
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
        const int64_t from = (int64_t)which[i] + s->dropped,
                      to = (int64_t)first + i + s->dropped;
        if (from == to || to < folded || from >= (int64_t)folded + s->ring)
            continue;
        for (int place = 0; place < s->layers; place++)
            memcpy(esp_states_input(s, place, (int)(to % s->ring)),
                   esp_states_input(s, place, (int)(from % s->ring)), bytes);
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
        taps[i] = esp_states_input(s, place, s->entry[entry].slot);
        entry = s->walk.parent[entry];
    }
}

/* Rows are moved in ascending order, so none is overwritten before it was moved itself. */
void esp_states_move_tail(struct esp_cpu_states *s, int place, int kernel, int folded_before)
{
    float *tail = esp_states_of(s, place);
    for (int i = 0; i < kernel - 1 && s->folded > folded_before; i++) {
        const int token = s->folded - (kernel - 1) + i;
        const float *from = token >= folded_before
                                ? esp_states_input(s, place, token % s->ring)
                                : tail + (size_t)(i + s->folded - folded_before) * s->width;
        memcpy(tail + (size_t)i * s->width, from, s->width * sizeof *tail);
    }
}

/* ------------------------------------------------------------------ the walk */

static int add_entry(struct esp_cpu_states *s, int64_t token, int row, int parent)
{
    const int entry = s->walk.count++;
    s->entry[entry] = (struct esp_cpu_entry){.slot = (int32_t)(token % s->ring), .row = row};
    s->walk.parent[entry] = parent;
    return entry;
}

/* Sets `before` to the row that each row follows, both counted from the prefix; -1 means it
 * follows the prefix. The rows that a row sees are its path, in ascending order. An earlier row
 * that no row of the batch sees gets -2. */
static void find_parents(struct esp_cpu_states *s, const struct esp_batch *b)
{
    const int ahead = b->first - b->prefix, rows = ahead + b->rows;
    for (int i = 0; i < rows; i++)
        s->before[i] = b->mask ? -2 : i - 1;
    for (int row = 0; b->mask && row < b->rows; row++) {
        const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
        int previous = -1;
        for (int i = 0; i <= (ahead + row) / 64; i++)
            for (uint64_t word = mask[i]; word; word &= word - 1) {
                const int at = 64 * i + __builtin_ctzll(word);
                if (at < ahead || at == ahead + row)
                    s->before[at] = previous;
                previous = at;
            }
    }
}

/* The number of tokens of the text before a batch. */
static int64_t tokens_before(const struct esp_batch *b)
{
    return (int64_t)b->prefix + (b->window ? b->window->dropped : 0);
}

bool esp_states_fit(const struct esp_cpu_states *s, const struct esp_cache *cache,
                    const struct esp_batch *b)
{
    const int64_t prefix = tokens_before(b);
    const int64_t end = prefix + (b->first - b->prefix) + b->rows;
    const int folded = prefix == 0 ? 0 : cache->folded;
    return s->layers == 0 || (folded >= 0 && prefix >= folded && end - folded <= s->ring);
}

bool esp_states_plan(struct esp_cpu_states *s, const struct esp_cache *cache,
                     const struct esp_batch *b)
{
    const int64_t prefix = tokens_before(b);
    const int ahead = b->first - b->prefix;
    const bool begins = prefix == 0 && cache->folded != 0;
    const int folded = begins ? 0 : cache->folded;
    if (!esp_states_fit(s, cache, b))
        return false;
    if (begins)
        memset(s->memory, 0, all_states(s) * sizeof *s->memory);
    s->dropped = b->window ? b->window->dropped : 0;
    s->walk.count = 0;
    for (int64_t token = folded; token < prefix; token++)
        add_entry(s, token, -1, s->walk.count - 1);
    const int last = s->walk.count - 1;
    s->walk.texts = s->walk.count + b->text;
    find_parents(s, b);
    for (int i = 0; i < ahead + b->rows; i++) {
        const int row = i - ahead, before = s->before[i];
        s->known[i] = before == -2 ? -1
                                   : add_entry(s, prefix + i, row < 0 ? -1 : row,
                                               before < 0 ? last : s->known[before]);
        if (row >= 0)
            s->batch_slot[row] = s->entry[s->known[i]].slot;
    }
    s->folded = (int)prefix + b->text;
    esp_walk_order(&s->walk);
    return true;
}
