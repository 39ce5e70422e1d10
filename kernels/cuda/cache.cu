/* cache.cu - allocates the cache, which stores the keys and values of one text, and the work
 * memory of a forward pass.
 *
 * Everything is in one allocation. esp_cuda_cache_need() computes its size before anything is
 * loaded. The allocation is set to zero once. Padding stays zero, because nothing writes to it.
 * Activations have room for a multiple of 64 rows, because products may compute a few more rows
 * than needed.
 */
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/gpus.h"
#include "kernels/model_desc.h"

#include <climits>
#include <cstdlib>
#include <cstring>

/* ROW_STEP: activations have room for a multiple of this many rows. FEWEST_QUERIES: the
 * smallest number of queries that attention processes as one tile. */
enum { ROW_STEP = 64, FEWEST_QUERIES = 16 };
/* These constants limit how many partial results of attention are stored. PARTS is their
 * maximum number in default mode. In this mode, the blocks on a multiprocessor process at most
 * 128 queries in total. With 132 multiprocessors and the sinks, that makes 19,000 partial
 * results. Exact mode stores a partial result for every chunk of keys. PART_BYTES_EXACT limits
 * the bytes of all these results. */
static const size_t PARTS = 24000, PART_BYTES_EXACT = (size_t)64 << 20;

static size_t mask_words(const struct esp_cuda_cache *c)
{
    return (size_t)c->at.seen_stride / 64;
}

/* Returns whether the queries or the keys of all heads are normalised together. */
static bool norms_together(const struct esp_model_desc *d)
{
    bool any = false;
    for (int i = 0; i < d->layers; i++) {
        const struct esp_layer *l = &d->layer[i];
        any = any || (l->query_norm.data && l->query_norm.rows != d->head_dim) ||
              (l->key_norm.data && l->key_norm.rows != d->head_dim);
    }
    return any;
}

/* Returns how many partial results of attention a cache has room for. In exact mode, there is
 * room for at least one tile of queries, because the queries of a tile read the cache together.
 * If the model description does not request exact mode, room for one row is enough. row: number
 * of partial results of a row in exact mode. */
static size_t parts_of(const struct esp_model_desc *d, size_t row, size_t part_bytes,
                       int max_batch)
{
    const int group = d->heads / d->kv_heads;
    const int fewest = d->exact && group < FEWEST_QUERIES ? FEWEST_QUERIES / group : 1;
    const size_t fit = d->exact ? PART_BYTES_EXACT / part_bytes : PARTS;
    const size_t least = fewest * row, most = max_batch * row;
    return fit > most || least > most ? most : fit > least ? fit : least;
}

/* Returns how many outputs the widest matrix `inputs` of all layers has. */
static size_t widest_inputs(const struct esp_model_desc *d)
{
    size_t most = 0;
    for (int i = 0; i < d->layers; i++) {
        const enum esp_mixer mixer = d->layer[i].mixer;
        const bool gate = d->layer[i].attention_gate.data;
        size_t own = 0;
        if (mixer == ESP_MIXER_ATTENTION)
            own = (size_t)((gate ? 2 : 1) * d->heads + 2 * d->kv_heads) * d->head_dim;
        else if (esp_recurs(mixer)) /* conv_in, a gate, and a second gate or two factors */
            own = (size_t)esp_conv_width(d, mixer) + esp_mixed_width(d, mixer) +
                  (mixer == ESP_MIXER_CONV ? d->hidden : 2 * d->state_heads);
        most = own > most ? own : most;
    }
    return most;
}

/* Computes the sizes that follow from the model, c->rows and c->max_batch. Buffers of results
 * that ranks exchange have the width of the whole model. */
static void measure(struct esp_cuda_cache *c, const struct esp_model_desc *d)
{
    const struct esp_cuda_part *part = c->base.weights ? esp_cuda_weights_of(c)->part : NULL;
    const struct esp_model_desc *all = part ? part->all : d;
    c->chunks = (c->rows + 2 * ESP_CUDA_CHUNK - 1 - ESP_WINDOW_STEP) / ESP_CUDA_CHUNK;
    c->head_width = esp_cuda_pad(d->head_dim, 8);
    c->hidden = esp_cuda_pad(d->hidden, ESP_CUDA_PAD);
    c->q_width = esp_cuda_pad((size_t)all->heads * d->head_dim, ESP_CUDA_PAD);
    c->inputs_width = esp_cuda_pad(widest_inputs(d), ESP_CUDA_PAD);
    c->ffn = esp_cuda_pad(all->ffn, ESP_CUDA_PAD);
    c->joined_width = esp_cuda_pad(esp_model_desc_joined(d), ESP_CUDA_PAD);
    c->outputs_width = d->output_token ? esp_cuda_pad(d->outputs, ESP_CUDA_PAD) : 0;
    c->expert_ffn = esp_cuda_pad(all->expert_ffn, ESP_CUDA_PAD);
    c->up_width = esp_gated(d->activation) ? 2 * c->ffn : c->ffn;
    /* A joined cache uses the slots of its owner. */
    esp_cuda_states_set_sizes(&c->states, d,
                              c->joined_to ? c->joined_to->max_batch : c->max_batch);
    c->states.plan.owner = c->joined_to ? &c->joined_to->base : NULL;
    c->exchange_bytes = part ? esp_cuda_exchange_need(c) : 0;
    c->own_logits_width = part && part->rank > 0 && esp_cuda_divides(c, ESP_RANK_HEAD)
                              ? esp_cuda_pad(part->desc.head.rows, ESP_CUDA_PAD)
                              : 0;
    const size_t row = (size_t)d->heads * (c->chunks + 1);
    c->parts =
        parts_of(d, row, esp_cuda_part(c->head_width) * sizeof *c->partial, c->max_batch);
    /* A mask covers the rows of earlier passes of the same tree, and the rows of this pass. */
    const size_t widest = esp_cuda_pad(2 * (size_t)c->max_batch + 64, 64);
    c->at.seen_stride =
        (int)(widest < esp_cuda_pad(c->rows, 64) ? widest : esp_cuda_pad(c->rows, 64));
}

/* Returns the number of columns of the widest matrix. */
static size_t widest(const struct esp_cuda_cache *c)
{
    size_t most = c->hidden > c->ffn ? c->hidden : c->ffn;
    most = most > c->q_width ? most : c->q_width;
    most = most > c->states.out ? most : c->states.out;
    return most > c->joined_width ? most : c->joined_width;
}

/* Lays out the buffers for a mixture of experts. */
static void lay_out_experts(struct esp_cuda_arena *arena, struct esp_cuda_cache *c,
                            const struct esp_model_desc *d, size_t pairs)
{
    struct esp_cuda_routing *r = &c->routing;
    const bool blocks = esp_cuda_has_blocks(d);
    c->routed = esp_cuda_take<float>(arena, (size_t)c->max_batch * (d->experts + 1));
    r->chosen = esp_cuda_take<int32_t>(arena, pairs);
    r->share = esp_cuda_take<float>(arena, pairs);
    r->place = esp_cuda_take<int32_t>(arena, pairs);
    r->row_of = esp_cuda_take<int32_t>(arena, pairs);
    r->tiles = esp_cuda_take<struct esp_cuda_tile>(arena, pairs);
    r->tile_count = esp_cuda_take<int32_t>(arena, 1);
    if (blocks)
        c->pair_up = esp_cuda_take<float>(arena, pairs * 2 * c->expert_ffn);
    c->pair_active =
        esp_cuda_take_bytes(arena, pairs * c->expert_ffn * (blocks ? sizeof(float) : 2));
    c->pair_out = esp_cuda_take<float>(arena, pairs * c->hidden);
}

static void lay_out(struct esp_cuda_arena *arena, struct esp_cuda_cache *c,
                    const struct esp_model_desc *d)
{
    const size_t batch = c->max_batch, rows = esp_cuda_pad(batch, ROW_STEP);
    const bool blocks = esp_cuda_has_blocks(d);
    const size_t active = blocks ? sizeof(float) : 2; /* bytes per activation */
    const size_t cached =
        (size_t)esp_model_desc_attentions(d) * d->kv_heads * c->rows * c->head_width;
    c->k = c->joined_to ? c->joined_to->k : esp_cuda_take_bytes(arena, cached * 2);
    c->v = c->joined_to ? c->joined_to->v : esp_cuda_take_bytes(arena, cached * 2);
    c->x = esp_cuda_take<float>(arena, rows * c->hidden);
    c->normed = esp_cuda_take_bytes(arena, rows * c->hidden * active);
    c->squares = esp_cuda_take<float>(arena, rows * c->hidden / ESP_CUDA_TILE);
    c->normed2 =
        d->parallel_residual ? esp_cuda_take_bytes(arena, rows * c->hidden * active) : NULL;
    c->inputs = esp_cuda_take<float>(arena, rows * c->inputs_width);
    const size_t turns = (batch + 1) * (d->rotary / 2);
    c->rotation = esp_cuda_take<float2>(arena, turns);
    if (d->local_inverse_frequency)
        c->local_rotation = esp_cuda_take<float2>(arena, turns);
    if (norms_together(d))
        c->together = esp_cuda_take<float>(arena, 2 * batch);
    c->attended = esp_cuda_take_bytes(arena, rows * c->q_width * 2);
    c->up = esp_cuda_take<float>(arena, rows * c->up_width);
    c->active = esp_cuda_take_bytes(arena, rows * c->ffn * active);
    if (esp_model_desc_has_branch(d) || d->experts > 0)
        c->branch = esp_cuda_take<float>(arena, rows * c->hidden);
    if (c->joined_width > 0)
        c->joined = esp_cuda_take_bytes(arena, rows * c->joined_width * active);
    if (d->reads == ESP_READS_EAGLE3)
        c->embedded = esp_cuda_take<float>(arena, batch * c->hidden);
    if (c->outputs_width > 0)
        c->outputs = esp_cuda_take<float>(arena, rows * c->outputs_width);
    const size_t pairs = d->experts > 0 ? batch * d->experts_used : 0;
    if (pairs > 0)
        lay_out_experts(arena, c, d, pairs);
    if (blocks) {
        const size_t dense = rows * widest(c), of_pairs = pairs * c->expert_ffn;
        const size_t values = dense > of_pairs ? dense : of_pairs, cuts = values / 32;
        c->cut_words = esp_cuda_take<uint4>(arena, cuts * ESP_CUT_WORDS);
        c->cuts = esp_cuda_take<struct esp_cuda_cut>(arena, cuts);
        c->narrow = esp_cuda_take_bytes(arena, values * 2);
    }
    if (c->own_logits_width > 0)
        c->own_logits = esp_cuda_take<float>(arena, batch * c->own_logits_width);
    if (c->exchange_bytes > 0)
        c->exchanged = (char *)esp_cuda_take_bytes(arena, c->exchange_bytes);
    c->partial = esp_cuda_take<float>(arena, c->parts * esp_cuda_part(c->head_width));
    c->done = esp_cuda_take<unsigned>(
        arena, esp_cuda_pad(batch * d->heads, FEWEST_QUERIES * d->kv_heads) / FEWEST_QUERIES);
    c->at.seen = esp_cuda_take<int32_t>(arena, batch * c->at.seen_stride);
    c->at.seen_count = esp_cuda_take<int32_t>(arena, batch);
    if (c->states.layers > 0)
        esp_cuda_states_lay_out(arena, &c->states, c->joined_to ? &c->joined_to->states : NULL,
                                d, rows);

    /* This block is sent to the device before every pass. Its masks come last, because only a
     * part of the masks is sent. The plan for recurrent layers is sent separately. */
    const size_t start = arena->used;
    c->at.pass = esp_cuda_take<struct esp_cuda_pass>(arena, 1);
    c->pass_device = (char *)c->at.pass;
    c->at.tokens = esp_cuda_take<int32_t>(arena, batch);
    c->at.positions = esp_cuda_take<int32_t>(arena, batch);
    c->at.wanted = esp_cuda_take<int32_t>(arena, batch);
    c->at.wanted_at = esp_cuda_take<int32_t>(arena, batch);
    c->at.states_row = esp_cuda_take<int32_t>(arena, batch);
    c->at.input_row = esp_cuda_take<int32_t>(arena, batch);
    c->keep_rows = esp_cuda_take<int32_t>(arena, batch);
    c->at.mask = esp_cuda_take<uint64_t>(arena, batch * mask_words(c));
    if (c->states.layers > 0)
        c->at.visit = esp_cuda_take<struct esp_cuda_visit>(arena, c->states.plan.room);
    c->pass_bytes = arena->used - start;
}

/* Returns the number of bytes that a cache needs. weights: the weights of a divided model, or
 * NULL. */
static size_t need(const struct esp_model_desc *desc, struct esp_weights *weights,
                   struct esp_cuda_cache *owner, int rows, int max_batch)
{
    struct esp_cuda_cache c = {};
    struct esp_cuda_arena arena = {};
    c.base.weights = weights;
    c.joined_to = owner;
    c.rows = rows;
    c.max_batch = max_batch;
    measure(&c, desc);
    lay_out(&arena, &c, desc);
    return arena.used;
}

size_t esp_cuda_cache_need(const struct esp_model_desc *desc, int rows, int max_batch)
{
    return need(desc, NULL, NULL, rows, max_batch);
}

size_t esp_cuda_join_need(const struct esp_model_desc *desc, int rows, int max_batch)
{
    struct esp_cuda_cache owner = {};
    owner.max_batch = max_batch;
    return need(desc, NULL, &owner, rows, max_batch);
}

void esp_cuda_cache_imagine(struct esp_cuda_cache *c, int rows, int max_batch)
{
    struct esp_cuda_arena arena = {ESP_CUDA_NOWHERE, 0, true};
    c->rows = rows;
    c->max_batch = max_batch;
    measure(c, c->base.weights->desc);
    lay_out(&arena, c, c->base.weights->desc);
}

static int prepare(struct esp_cuda_cache *c)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    struct esp_cuda_arena arena = {};
    c->base.bytes = need(d, c->base.weights, c->joined_to, c->rows, c->max_batch);
    ESP_CUDA(backend, cudaMalloc((void **)&c->memory, c->base.bytes));
    ESP_CUDA(backend, cudaMemsetAsync(c->memory, 0, c->base.bytes, backend->stream));
    arena.base = c->memory;
    lay_out(&arena, c, d);
    for (int i = 0; i < ESP_CUDA_SLOTS; i++) {
        ESP_CUDA(backend, cudaMallocHost((void **)&c->pass_host[i], c->pass_bytes));
        ESP_CUDA(backend, cudaEventCreateWithFlags(&c->copied[i], cudaEventDisableTiming));
    }
    return c->states.layers > 0 ? esp_cuda_states_open(&c->states, d) : ESP_OK;
}

/* Opens the cache of one GPU. */
static int open_one(struct esp_cuda_cache **cache, struct esp_weights *weights,
                    struct esp_cuda_cache *owner, int rows, int max_batch)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)calloc(1, sizeof *c);
    if (!c)
        return ESP_E_MEMORY;
    *cache = c;
    esp_cuda_enter(weights->backend);
    c->base.weights = weights;
    c->joined_to = owner;
    c->rows = rows;
    c->max_batch = max_batch;
    measure(c, weights->desc);
    return prepare(c);
}

static int open_cache(struct esp_cache **cache, struct esp_weights *weights,
                      struct esp_cuda_cache *owner, int rows, int max_batch, char *err,
                      size_t errlen)
{
    struct esp_cuda_backend *backend = (struct esp_cuda_backend *)weights->backend;
    *cache = NULL;
    if (rows < 1 || max_batch < 1 || max_batch > rows)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "cannot open a cache of %d rows for batches of %d rows: both must be "
                        "at least 1, and a batch must not be larger than the cache",
                        rows, max_batch);
    struct esp_cuda_cache *first = NULL, **next = &first;
    int status = ESP_OK;
    for (struct esp_cuda_weights *w = (struct esp_cuda_weights *)weights; w && status == ESP_OK;
         w = w->next) {
        status = open_one(next, &w->base, owner, rows, max_batch);
        owner = owner ? owner->next : NULL;
        next = *next ? &(*next)->next : next;
    }
    if (!first)
        return esp_fail(err, errlen, status, "not enough memory for a cache");
    if (status == ESP_OK)
        status = esp_cuda_prepare(first);
    if (status < 0) {
        esp_cuda_cache_close(&first->base);
        return esp_cuda_tell(backend, status, err, errlen);
    }
    *cache = &first->base;
    return ESP_OK;
}

int esp_cuda_cache_open(struct esp_cache **cache, struct esp_weights *weights, int rows,
                        int max_batch, char *err, size_t errlen)
{
    return open_cache(cache, weights, NULL, rows, max_batch, err, errlen);
}

int esp_cuda_cache_join(struct esp_cache **cache, struct esp_weights *weights,
                        struct esp_cache *owner, int max_batch, char *err, size_t errlen)
{
    struct esp_cuda_cache *of = (struct esp_cuda_cache *)owner;
    *cache = NULL;
    if (!esp_cache_joins(weights, owner) || max_batch > of->max_batch)
        return esp_fail(err, errlen, ESP_E_ARGUMENT,
                        "this model cannot use the target's cache: their shapes differ");
    return open_cache(cache, weights, of, of->rows, max_batch, err, errlen);
}

static void close_one(struct esp_cuda_cache *c)
{
    esp_cuda_enter(c->base.weights->backend);
    for (auto &passes : c->graph)
        for (auto &bucket : passes)
            for (cudaGraphExec_t graph : bucket)
                if (graph)
                    esp_cuda_fine(cudaGraphExecDestroy(graph));
    for (int i = 0; i < ESP_CUDA_SLOTS; i++) {
        if (c->copied[i])
            esp_cuda_fine(cudaEventDestroy(c->copied[i]));
        if (c->pass_host[i])
            esp_cuda_fine(cudaFreeHost(c->pass_host[i]));
    }
    if (c->memory)
        esp_cuda_fine(cudaFree(c->memory));
    esp_cuda_states_close(&c->states);
    free(c);
}

void esp_cuda_cache_close(struct esp_cache *cache)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    /* Waits for all ranks before any memory is freed, because their passes exchange data. */
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next)
        esp_cuda_fine(cudaStreamSynchronize(esp_cuda_backend_of(r)->stream));
    while (c) {
        struct esp_cuda_cache *next = c->next;
        close_one(c);
        c = next;
    }
}
