/* cache.c - stores the keys and values of a text, and the buffers of a forward pass.
 *
 * Keys are stored in blocks of 16 rows, (head_dim, 16 rows) each, and values row by row;
 * attention.c says why. Both are float32. All memory that a forward pass uses is allocated
 * once, in this file.
 */
#include "kernels/batch.h"
#include "kernels/cpu/cpu.h"
#include "kernels/system.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

#include <stdlib.h>
#include <string.h>

struct buffer {
    void *where; /* address of a pointer in the cache; this pointer is set to the buffer */
    size_t count, each, size;
};

/* Joined caches share the first SHARED buffers: keys, values and states. */
enum { BUFFERS = 52, SHARED = 4 };

static bool has_attention_gate(const struct esp_model_desc *d)
{
    bool any = false;
    for (int i = 0; i < d->layers; i++)
        any = any || d->layer[i].attention_gate.data;
    return any;
}

static void list_buffers(struct esp_cpu_cache *c, struct buffer list[BUFFERS])
{
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)c->base.weights;
    const struct esp_model_desc *d = w->base.desc;
    const size_t threads = (size_t)((struct esp_cpu_backend *)w->base.backend)->threads;
    const size_t batch = (size_t)c->max_batch, rows = (size_t)c->blocks * ESP_LANES;
    const size_t heads = (size_t)esp_model_desc_attentions(d) * (size_t)c->kv_heads;
    const size_t f = sizeof(float), i32 = sizeof(int32_t);
    const size_t turns = (size_t)(d->rotary / 2) * (d->local_inverse_frequency ? 2 : 1);
    const size_t mixed = d->experts > 0 ? batch : 0;
    const size_t split = w->split ? 1 : 0, cut = w->cut ? 1 : 0;
    struct esp_cpu_states *s = &c->states;
    const size_t recurrent = (size_t)s->layers, kept = recurrent > 0 ? (size_t)s->plan.room : 0;
    const size_t states = recurrent * s->each,
                 slots = recurrent > 0 ? (size_t)d->state_slots : 0;
    const size_t mixed_rows = recurrent > 0 ? batch : 0;
    /* The last panel of a rank's outputs may extend beyond a row, so one more row is
     * allocated. */
    const size_t part = w->plan ? 1 : 0;
    const struct buffer all[BUFFERS] = {
        {&c->k, heads * rows, (size_t)d->head_dim, f},
        {&c->v, heads * rows, c->v_stride, f},
        {&s->inputs, recurrent * kept, esp_states_stride(s), f},
        {&s->memory, states, 1, f},
        {&c->x, batch, c->hidden, f},
        {&c->q, batch + part, c->q_width, f},
        {&c->for_sinks, batch, c->q_width, f},
        {&c->key, batch + part, c->kv_width, f},
        {&c->value, batch + part, c->kv_width, f},
        {&c->gate, batch, c->ffn, f},
        {&c->branch, esp_model_desc_has_branch(d) || d->experts > 0 ? batch : 0, c->hidden, f},
        {&c->cosine, batch + 1, turns, f},
        {&c->sine, batch + 1, turns, f},
        {&c->normed.x, batch, c->hidden, f},
        {&c->normed.parts, split, esp_parts_bytes(batch, c->hidden), 1},
        {&c->normed.cut, cut, esp_cut_count(batch, c->hidden), sizeof(struct esp_cut)},
        {&c->attended.x, batch, c->q_width, f},
        {&c->attended.parts, split, esp_parts_bytes(batch, c->q_width), 1},
        {&c->attended.cut, cut, esp_cut_count(batch, c->q_width), sizeof(struct esp_cut)},
        {&c->up.x, batch, c->ffn, f},
        {&c->up.parts, split, esp_parts_bytes(batch, c->ffn), 1},
        {&c->up.cut, cut, esp_cut_count(batch, c->ffn), sizeof(struct esp_cut)},
        {&c->joined.x, c->joined.stride ? batch : 0, c->joined.stride, f},
        {&c->joined.parts, split, esp_parts_bytes(batch, c->joined.stride), 1},
        {&c->joined.cut, cut, esp_cut_count(batch, c->joined.stride), sizeof(struct esp_cut)},
        {&c->routed, mixed, esp_cpu_pad(d->experts, ESP_PANEL), f},
        {&c->chosen, mixed, (size_t)d->experts_used, sizeof(int32_t)},
        {&c->expert_in.x, mixed, c->hidden, f},
        {&c->expert_in.parts, mixed ? split : 0, esp_parts_bytes(batch, c->hidden), 1},
        {&c->expert_in.cut, mixed ? cut : 0, esp_cut_count(batch, c->hidden),
         sizeof(struct esp_cut)},
        {&c->expert_out, mixed, c->hidden, f},
        {&c->choosers, mixed, 1, sizeof(int32_t)},
        {&c->scores, threads * ESP_QUERIES, rows, f},
        {&c->extra, threads * ESP_QUERIES, rows, sizeof(int32_t)},
        {&c->wanted, batch, 1, sizeof(int32_t)},
        {&c->wanted_at, batch, 1, sizeof(int32_t)},
        {&c->going, batch, 1, sizeof(int32_t)},
        {&c->order, part, esp_cpu_order_bytes(c->rows, c->max_batch), 1},
        {&c->attention_gate, has_attention_gate(d) ? batch + part : 0, c->q_width, f},
        {&c->mixed.x, mixed_rows, s->out, f},
        {&c->mixed.parts, recurrent ? split : 0, esp_parts_bytes(batch, s->out), 1},
        {&c->mixed.cut, recurrent ? cut : 0, esp_cut_count(batch, s->out),
         sizeof(struct esp_cut)},
        {&s->slots, slots, recurrent ? esp_states_copy(s) : 0, f},
        {&s->saved, slots, 1, i32},
        {&s->convolved, mixed_rows, s->width, f},
        {&s->products, mixed_rows, (size_t)d->state_heads, sizeof *s->products},
        {&s->stack, recurrent ? threads * ESP_WALK_LEVELS : 0, s->block, f},
        {&s->in_gate, mixed_rows, s->width, f},
        {&s->out_gate, mixed_rows, s->out, f},
        {&s->o, mixed_rows, s->out, f},
        {&s->moved, recurrent ? threads : 0, 1, sizeof *s->moved},
        {&s->plan_memory, recurrent ? esp_state_plan_bytes(s->plan.room) : 0, 1, 1},
    };
    memcpy(list, all, sizeof all);
}

static void set_sizes(struct esp_cpu_cache *c, struct esp_weights *weights, int rows,
                      int max_batch)
{
    const struct esp_model_desc *d = weights->desc;
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)weights;
    const struct esp_rank_part heads =
        esp_rank_plan_part(w->plan, d, ESP_RANK_ATTENTION, w->rank);
    c->base.weights = weights;
    c->kv_begin = heads.begin;
    c->kv_heads = heads.end - heads.begin;
    c->rows = rows;
    c->max_batch = max_batch < rows ? max_batch : rows;
    c->blocks = (int)(esp_cpu_pad(rows, ESP_LANES) / ESP_LANES);
    c->v_stride = esp_cpu_pad(d->head_dim, ESP_LANES);
    c->hidden = esp_cpu_pad(d->hidden, ESP_PANEL);
    c->q_width = esp_cpu_pad(d->heads * d->head_dim, ESP_PANEL);
    c->kv_width = esp_cpu_pad(d->kv_heads * d->head_dim, ESP_PANEL);
    c->ffn = esp_cpu_pad(d->ffn > d->expert_ffn ? d->ffn : d->expert_ffn, ESP_PANEL);

    esp_states_set_sizes(&c->states, d, c->max_batch);
    c->mixed.stride = c->states.out;
    c->normed.stride = c->hidden;
    c->attended.stride = c->q_width;
    c->up.stride = c->ffn;
    c->expert_in.stride = c->hidden;
    c->normed.bytes = c->attended.bytes = c->mixed.bytes = c->up.bytes = c->expert_in.bytes =
        c->joined.bytes = ((const struct esp_cpu_weights *)weights)->cut_bytes;
    c->joined.stride = esp_cpu_pad(esp_model_desc_joined(d), ESP_PANEL);
}

/* Places the keys and values of a head in the memory near the threads that read them. */
static void bring_home(const struct esp_cpu_cache *c)
{
    const struct esp_pool *pool = ((struct esp_cpu_backend *)c->base.weights->backend)->pool;
    const size_t rows = (size_t)c->blocks * 16,
                 width[2] = {(size_t)c->base.weights->desc->head_dim, c->v_stride};
    float *const memory[2] = {c->k, c->v};
    const int layers = esp_model_desc_attentions(c->base.weights->desc);
    if (esp_pool_nodes(pool) == 1)
        return;
    for (int i = 0; i < layers * c->kv_heads; i++)
        for (int j = 0; j < 2; j++)
            esp_prefer_node(memory[j] + (size_t)i * rows * width[j],
                            rows * width[j] * sizeof(float),
                            esp_pool_node_of(pool, i % c->kv_heads, c->kv_heads));
}

/* Makes the cache use the owner's keys, values and states. */
static void join(struct esp_cpu_cache *c, struct esp_cpu_cache *owner)
{
    struct esp_cpu_states *s = &c->states;
    c->joined_to = owner;
    c->k = owner->k;
    c->v = owner->v;
    s->inputs = owner->states.inputs;
    s->memory = owner->states.memory;
    s->plan.room = owner->states.plan.room;
    s->plan.ring = owner->states.plan.ring;
    s->plan.owner = &owner->base;
}

/* Opens a cache. If `owner` is not NULL, the cache uses the owner's keys, values and states. */
static int open_cache(struct esp_cache **cache, struct esp_weights *weights,
                      struct esp_cpu_cache *owner, int rows, int max_batch, char *err,
                      size_t errlen)
{
    struct esp_cpu_cache *c = calloc(1, sizeof *c);
    if (!c)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for a cache");
    set_sizes(c, weights, rows, max_batch);
    if (owner)
        join(c, owner);
    struct buffer list[BUFFERS];
    list_buffers(c, list);
    for (int i = owner ? SHARED : 0; i < BUFFERS; i++) {
        size_t count;
        void *memory = NULL;
        if (!__builtin_mul_overflow(list[i].count, list[i].each, &count))
            memory = esp_cpu_alloc(count, list[i].size);
        if (!memory) {
            esp_cpu_cache_drop(&c->base);
            return esp_fail(
                err, errlen, ESP_E_MEMORY,
                "not enough memory for a cache of %d rows: choose a smaller context", rows);
        }
        memcpy(list[i].where, &memory, sizeof memory);
        c->base.bytes += count * list[i].size;
    }
    if (c->states.layers > 0)
        esp_state_plan_lay_out(&c->states.plan, c->states.plan_memory);
    if (!owner)
        bring_home(c);
    *cache = &c->base;
    return 0;
}

int esp_cpu_cache_make(struct esp_cache **cache, struct esp_weights *weights,
                       struct esp_cache *owner, int rows, int max_batch, char *err,
                       size_t errlen)
{
    struct esp_cpu_cache *of = (struct esp_cpu_cache *)owner;
    *cache = NULL;
    if (owner &&
        (!esp_cache_joins(weights, owner) || max_batch < 1 || max_batch > of->max_batch))
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "this model cannot use the target's cache: their shapes differ");
    if (rows < 1 || max_batch < 1 || rows > INT32_MAX / 2)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "cannot open a cache of %d rows for batches of %d rows: both must be "
                        "at least 1",
                        rows, max_batch);
    return open_cache(cache, weights, of, of ? of->rows : rows, max_batch, err, errlen);
}

void esp_cpu_cache_drop(struct esp_cache *cache)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    if (!c)
        return;
    struct buffer list[BUFFERS];
    list_buffers(c, list);
    for (int i = c->joined_to ? SHARED : 0; i < BUFFERS; i++) {
        void *memory;
        memcpy(&memory, list[i].where, sizeof memory);
        esp_cpu_free(memory);
    }
    esp_cpu_free(c->part_logits);
    free(c);
}

/* Returns the size in bytes of the buffers numbered `first` and higher. This is an upper bound,
 * because it includes a buffer for every form that activations can have. */
static size_t need(const struct esp_model_desc *desc, int first, int rows, int max_batch)
{
    struct esp_cpu_backend cpu = {.threads = esp_cores_all()};
    struct esp_cpu_weights w = {.base = {&cpu.base, desc, 0}, .split = true, .cut = true};
    struct esp_cpu_cache c = {.rows = 0};
    struct buffer list[BUFFERS];
    size_t bytes = 0;
    set_sizes(&c, &w.base, rows, max_batch);
    list_buffers(&c, list);
    for (int i = first; i < BUFFERS; i++)
        bytes += list[i].count * list[i].each * list[i].size;
    return bytes;
}

size_t esp_cpu_cache_need(const struct esp_model_desc *desc, int rows, int max_batch)
{
    return need(desc, 0, rows, max_batch);
}

size_t esp_cpu_join_need(const struct esp_model_desc *desc, int rows, int max_batch)
{
    return need(desc, SHARED, rows, max_batch);
}

static void move_row(const struct esp_cpu_cache *c, size_t head_dim, float *k, float *v,
                     size_t from, size_t to)
{
    const float *k_from = k + from / ESP_LANES * ESP_LANES * head_dim + from % ESP_LANES;
    float *k_to = k + to / ESP_LANES * ESP_LANES * head_dim + to % ESP_LANES;
    for (size_t j = 0; j < head_dim; j++)
        k_to[j * ESP_LANES] = k_from[j * ESP_LANES];
    memcpy(v + to * c->v_stride, v + from * c->v_stride, head_dim * sizeof *v);
}

/* Returns how many rows at the beginning of `which` can be moved as whole blocks, at most
 * `count`. They must be consecutive, begin at the start of a block, and move to the start of a
 * block. */
static int whole_blocks(const int32_t *which, int count, int to)
{
    int run = 0;
    if (which[0] % ESP_LANES != 0 || to % ESP_LANES != 0)
        return 0;
    while (run < count && which[run] == which[0] + run)
        run++;
    return run / ESP_LANES * ESP_LANES;
}

/* Because which[i] >= first + i, moving the rows of a head in ascending order never overwrites
 * a row that has yet to be moved. */
static void keep_head(const struct esp_cpu_cache *c, size_t head, int first,
                      const int32_t *which, int count)
{
    const size_t rows = (size_t)c->blocks * ESP_LANES;
    const size_t head_dim = (size_t)c->base.weights->desc->head_dim;
    float *k = c->k + head * rows * head_dim, *v = c->v + head * rows * c->v_stride;
    for (int i = 0; i < count;) {
        const size_t from = (size_t)which[i], to = (size_t)(first + i);
        const int run = whole_blocks(which + i, count - i, first + i);
        if (run > 0) {
            memmove(k + to * head_dim, k + from * head_dim, (size_t)run * head_dim * sizeof *k);
            memmove(v + to * c->v_stride, v + from * c->v_stride,
                    (size_t)run * c->v_stride * sizeof *v);
        } else if (from != to) {
            move_row(c, head_dim, k, v, from, to);
        }
        i += run > 0 ? run : 1;
    }
}

int esp_cpu_cache_keep(struct esp_cache *cache, int first, const int32_t *which, int count)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)c->base.weights;
    if (!esp_keep_fits(c->rows, first, which, count))
        return ESP_E_ARGUMENT;
    esp_states_keep(&c->states, cache->folded, first, which, count);
    for (int layer = 0; layer < w->base.desc->layers; layer++) {
        const bool elsewhere =
            w->plan && w->plan->by_layers && esp_rank_plan_owner(w->plan, layer) != w->rank;
        if (elsewhere || w->base.desc->layer[layer].mixer != ESP_MIXER_ATTENTION)
            continue;
        const size_t begin = (size_t)w->layer[layer].place * (size_t)c->kv_heads;
        for (int head = 0; head < c->kv_heads; head++)
            keep_head(c, begin + (size_t)head, first, which, count);
    }
    return 0;
}
