/* states.cu - allocates and copies the states of recurrent layers, and sends the plan of a pass
 * to the device. mixer.cu has the arithmetic.
 *
 * The host makes the plan (state_plan.h) and sends it before the pass. Convolutions read the
 * inputs of the last tokens before a pass. These inputs stay in their slots, so a pass moves no
 * inputs. To have room for them, there are conv_kernel - 1 more slots than a plan can have
 * entries. A copy of the states contains these inputs, too.
 */
#include <climits>
#include <cstdlib>

#include "kernels/cuda/state_layout.h"

enum { THREADS = 256 };
static const size_t MOST_BLOCKS = 4096;

/* ------------------------------------------------------------------ memory */

void esp_cuda_states_set_sizes(struct esp_cuda_states *s, const struct esp_model_desc *d,
                               int max_batch)
{
    s->layers = esp_model_desc_recurrents(d);
    if (s->layers == 0)
        return;
    s->plan.room = esp_state_plan_room(max_batch);
    s->plan.ring = s->plan.room + d->conv_kernel - 1;
    s->width = esp_cuda_pad(esp_model_desc_conv_width(d), ESP_CUDA_PAD);
    s->rates = esp_cuda_pad(d->state_heads, ESP_CUDA_PAD);
    s->out = esp_cuda_pad(esp_model_desc_mixed_width(d), ESP_CUDA_PAD);
    s->key_values = esp_cuda_pad(d->key_heads * d->key_dim, ESP_CUDA_PAD);
    s->values = esp_cuda_pad(d->state_heads * d->value_dim, ESP_CUDA_PAD);
    s->keys = (d->key_dim + ESP_STATE_SLICES - 1) / ESP_STATE_SLICES;
    s->each = (size_t)d->state_heads * (d->value_dim / ESP_STATE_COLUMNS) * s->keys *
              ESP_STATE_THREADS;
}

/* Returns how many earlier tokens a convolution reads for a token. */
static int taps_of(const struct esp_cuda_states *s)
{
    return s->plan.ring - s->plan.room;
}

static size_t tail_of(const struct esp_cuda_states *s)
{
    return taps_of(s) * s->width;
}

/* Returns the size of a copy of all states in floats; see `slots` of struct esp_cuda_states. */
static size_t copy_of(const struct esp_cuda_states *s)
{
    return s->layers *
           ((taps_of(s) + ESP_STATE_CHUNK - 1) * esp_cuda_input_stride(s) + s->each);
}

size_t esp_cuda_state_bytes(const struct esp_model_desc *d)
{
    struct esp_cuda_states s = {};
    esp_cuda_states_set_sizes(&s, d, 1);
    return s.layers > 0 ? s.layers * (tail_of(&s) + s.each) * sizeof *s.memory : 0;
}

size_t esp_cuda_checkpoint_bytes(const struct esp_model_desc *d)
{
    struct esp_cuda_states s = {};
    esp_cuda_states_set_sizes(&s, d, 1);
    return s.layers > 0 ? copy_of(&s) * sizeof *s.memory : 0;
}

/* Returns the largest level that a walk over `count` states can use; see walk.h. */
static int levels_of(int count)
{
    int levels = 1;
    while (count >>= 1)
        levels++;
    return levels;
}

void esp_cuda_states_lay_out(struct esp_cuda_arena *arena, struct esp_cuda_states *s,
                             const struct esp_cuda_states *owner,
                             const struct esp_model_desc *d, size_t rows)
{
    const size_t layers = s->layers, inputs = s->plan.ring * esp_cuda_input_stride(s);
    s->inputs = owner ? owner->inputs : esp_cuda_take<float>(arena, layers * inputs);
    s->memory = owner ? owner->memory : esp_cuda_take<float>(arena, layers * s->each);
    s->slots = esp_cuda_take<float>(arena, d->state_slots * copy_of(s));
    s->convolved = esp_cuda_take<float>(arena, rows * s->width);
    s->products = esp_cuda_take<float>(arena, rows * d->state_heads * 2 * ESP_STATE_CHUNK);
    s->stack = esp_cuda_take<float>(arena, levels_of(s->plan.room) * s->each);
    s->o = esp_cuda_take<float>(arena, rows * s->out);
    s->mixed = esp_cuda_take_bytes(arena, rows * s->out * 2);
}

int esp_cuda_states_open(struct esp_cuda_states *s, const struct esp_model_desc *d)
{
    s->plan_memory = malloc(esp_state_plan_bytes(s->plan.room));
    s->saved = (int32_t *)calloc((size_t)d->state_slots + 1, sizeof *s->saved);
    if (!s->plan_memory || !s->saved)
        return ESP_E_MEMORY;
    esp_state_plan_lay_out(&s->plan, s->plan_memory);
    return ESP_OK;
}

void esp_cuda_states_close(struct esp_cuda_states *s)
{
    free(s->plan_memory);
    free(s->saved);
}

/* ------------------------------------------------------------------ copies */

struct copy_args {
    float *memory, *inputs, *copy;
    size_t each;   /* number of floats in the states of a layer */
    size_t stride; /* number of floats in an input */
    int layers, ring;
    int first, tokens; /* the copy has the inputs of tokens first..first + tokens - 1 */
    int begin, end;    /* of these tokens, begin..end-1 exist */
    bool save;
};

/* Copies the states, and the inputs of tokens begin..end-1, to `copy` if `save` is true, or
 * from `copy` otherwise. */
static __global__ void copy_kernel(struct copy_args a)
{
    const size_t inputs = a.tokens * a.stride, layer_size = inputs + a.each;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.layers * layer_size;
         i += step) {
        const size_t layer = i / layer_size, at = i % layer_size;
        const int token = a.first + (int)(at / a.stride);
        if (at < inputs && (token < a.begin || token >= a.end))
            continue;
        float *own = at < inputs ? a.inputs + (layer * a.ring + token % a.ring) * a.stride +
                                       at % a.stride
                                 : a.memory + layer * a.each + at - inputs;
        if (a.save)
            a.copy[i] = *own;
        else
            *own = a.copy[i];
    }
}

/* Copies the states and inputs after the first `length` tokens of the cache to a slot if `save`
 * is true, or from the slot otherwise. */
static int copy(struct esp_cuda_cache *c, int slot, int length, bool save)
{
    const struct esp_cuda_states *s = &c->states;
    const size_t blocks = (copy_of(s) + THREADS - 1) / THREADS;
    const int first = length / ESP_STATE_CHUNK * ESP_STATE_CHUNK - taps_of(s);
    const struct copy_args a = {s->memory,
                                s->inputs,
                                s->slots + slot * copy_of(s),
                                s->each,
                                esp_cuda_input_stride(s),
                                s->layers,
                                s->plan.ring,
                                first,
                                taps_of(s) + ESP_STATE_CHUNK - 1,
                                first < 0 ? 0 : first,
                                length,
                                save};
    esp_cuda_enter(c->base.weights->backend);
    ESP_LAUNCH(copy_kernel, dim3((unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS)),
               dim3(THREADS), 0, esp_cuda_backend_of(c)->stream, a);
    return esp_cuda_launch_status(esp_cuda_backend_of(c), "copying the states");
}

static bool has_slot(const struct esp_cuda_cache *c, int slot)
{
    return c->states.layers > 0 && slot >= 0 && slot < esp_cuda_desc_of(c)->state_slots;
}

int esp_cuda_state_save(struct esp_cache *cache, int slot, int length)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    if (!has_slot(c, slot) || cache->folded < 0 || length < cache->folded ||
        length - cache->folded >= ESP_STATE_CHUNK)
        return esp_cuda_end(esp_cuda_backend_of(c), ESP_E_ARGUMENT);
    c->states.saved[slot] = length + 1;
    return esp_cuda_end(esp_cuda_backend_of(c), copy(c, slot, length, true));
}

int esp_cuda_state_load(struct esp_cache *cache, int slot)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    if (!has_slot(c, slot) || c->states.saved[slot] == 0)
        return esp_cuda_end(esp_cuda_backend_of(c), ESP_E_ARGUMENT);
    const int length = c->states.saved[slot] - 1;
    cache->folded = length / ESP_STATE_CHUNK * ESP_STATE_CHUNK;
    return esp_cuda_end(esp_cuda_backend_of(c), copy(c, slot, length, false));
}

/* ------------------------------------------------------------------ accepted rows */

struct keep_args {
    float *inputs;
    const int32_t *which;
    size_t stride;
    int first, count, dropped, folded, room, ring;
};

/* After rows were accepted, moves the inputs of these rows to consecutive slots. A thread moves
 * one column of a layer's inputs, for all rows in ascending order. Grid: (columns, layers). */
static __global__ void keep_inputs_kernel(struct keep_args a)
{
    const size_t column = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= a.stride)
        return;
    float *inputs = a.inputs + (size_t)blockIdx.y * a.ring * a.stride + column;
    for (int i = 0; i < a.count; i++) {
        const int64_t from = (int64_t)a.which[i] + a.dropped;
        const int64_t to = (int64_t)a.first + i + a.dropped;
        if (from != to && to >= a.folded && from < (int64_t)a.folded + a.room)
            inputs[to % a.ring * a.stride] = inputs[from % a.ring * a.stride];
    }
}

void esp_cuda_keep_inputs(struct esp_cuda_cache *c, int first, int count)
{
    const struct esp_cuda_states *s = &c->states;
    const size_t stride = esp_cuda_input_stride(s);
    const struct keep_args a = {s->inputs,      c->keep_rows, stride,
                                first,          count,        s->plan.dropped,
                                c->base.folded, s->plan.room, s->plan.ring};
    ESP_LAUNCH(keep_inputs_kernel,
               dim3((unsigned)((stride + THREADS - 1) / THREADS), s->layers), dim3(THREADS), 0,
               esp_cuda_backend_of(c)->stream, a);
}

/* ------------------------------------------------------------------ passes */

int esp_cuda_states_begin(struct esp_cuda_cache *c, const struct esp_batch *batch)
{
    struct esp_cuda_states *s = &c->states;
    struct esp_cache *cache = &c->base;
    if (!esp_state_plan_make(&s->plan, cache, batch))
        return ESP_E_ARGUMENT;
    cache->folded = -1; /* unknown until the pass has been queued */
    if (s->plan.begins)
        ESP_CUDA(esp_cuda_backend_of(c),
                 cudaMemsetAsync(s->memory, 0, s->layers * s->each * sizeof *s->memory,
                                 esp_cuda_backend_of(c)->stream));
    return ESP_OK;
}

/* A step loads the state unless the previous step has left it in the registers. It stores the
 * state if a later step loads it, or if it is the state after the committed tokens. Step 0
 * computes the rows of group 0, and adds no chunk. */
int esp_cuda_states_write(const struct esp_cuda_cache *c, struct esp_cuda_visit *visit)
{
    const struct esp_state_plan *p = &c->states.plan;
    bool needed[ESP_STATE_LEVELS] = {p->walk.texts > 0};
    for (int i = 0; i < p->entries; i++) {
        visit[i].slot = p->entry[i].slot;
        visit[i].parent = p->entry[i].parent;
        visit[i].place = p->entry[i].place;
        visit[i].member = i < p->rows ? p->member[i] : 0;
    }
    for (int i = p->groups - 1; i >= 0; i--) {
        const struct esp_walk_step none = {}, *step = i > 0 ? &p->walk.step[i - 1] : &none;
        const struct esp_state_group *group = &p->group[i > 0 ? step->entry + 1 : 0];
        const int held = i > 1 ? p->walk.step[i - 2].to : 0; /* the previous step's level */
        const bool loads = i == 0 || held != step->from;
        visit[i].last = group->last;
        visit[i].first = group->first;
        visit[i].count = group->count;
        visit[i].load = (int16_t)(loads ? step->from : -1);
        visit[i].store = (int16_t)(i > 0 && needed[step->to] ? step->to : -1);
        if (i > 0)
            needed[step->to] = false;
        needed[step->from] = needed[step->from] || loads;
    }
    return p->entries > p->groups ? p->entries : p->groups;
}

void esp_cuda_states_end(struct esp_cuda_cache *c)
{
    const struct esp_cuda_states *s = &c->states;
    struct esp_state_traffic *all = &c->base.traffic;
    const int64_t bytes = (int64_t)((tail_of(s) + s->each) * sizeof(float));
    c->base.folded = s->plan.folded;
    all->steps += (int64_t)s->layers * s->plan.rows;
    all->read += s->layers * bytes;
    all->written += s->plan.walk.texts > 0 ? s->layers * bytes : 0;
}

/* Runs a pass without rows, which only adds complete chunks to the states. */
int esp_cuda_fold(struct esp_cache *cache, int prefix, int dropped)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    struct esp_window window = {};
    struct esp_batch none = {};
    window.recent = 1;
    window.dropped = dropped;
    none.first = none.prefix = prefix;
    none.window = &window;
    if (prefix < 0 || prefix > c->rows || dropped < 0)
        return esp_cuda_end(esp_cuda_backend_of(c), ESP_E_ARGUMENT);
    esp_cuda_enter(cache->weights->backend);
    int status = esp_cuda_states_begin(c, &none);
    if (status == ESP_OK && c->states.plan.walk.texts > 0)
        status = esp_cuda_run_fold(c, &none);
    if (status == ESP_OK)
        esp_cuda_states_end(c);
    return esp_cuda_end(esp_cuda_backend_of(c), status);
}
