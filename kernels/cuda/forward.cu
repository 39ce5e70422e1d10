/* forward.cu - one batch through the model: which kernels are launched, and in which order.
 *
 * The numbers that change from pass to pass are written to a pinned block. It is copied to the
 * device before the pass, where the kernels read it. (Four blocks are used in turn, so the host
 * never waits for a copy in progress.) So passes of few rows can be captured once as CUDA
 * graphs, for 1, 4, 16 and 64 rows and for texts of 1, 2, 4, ... chunks of keys, and replayed
 * with one call. The kernels stop at the last row of the pass. Larger passes are launched
 * kernel by kernel.
 *
 * The steps of a layer are those of the CPU backend (cpu/forward.c): 1 norm, 2 queries, keys
 * and values, 3 rotation and cache, 4 attention, 5 output added to the residual stream, 6
 * norm, 7 gate and up, 8 down added (to what 5 and 8 add, a norm or a factor may be applied
 * first). A mixture of experts has a router, the products of all used experts and their sum
 * instead of 7 and 8. Most norms are computed by the kernels of the steps around them
 * (norm.h), and in a small pass step 3 is part of step 4 (attention.h). So a layer takes five
 * kernels.
 *
 * Products of up to 64 rows are those of matmul.cu. Larger ones use cuBLASLt, whose order of
 * summation depends on the number of rows. In exact mode, without cuBLASLt, and for shapes for
 * which it has no algorithm, matmul.cu computes larger products, too.
 */
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/rows.h"

#include <cstring>

enum { OWN_ROWS = 64, LT_STEP = 16 };
/* Sizes of a tile of pairs; a size is used if each expert has about this many rows or more. */
enum { FEW_PAIRS = 8, MANY_PAIRS = 32 };
static const int bucket_rows[ESP_CUDA_BUCKETS] = {1, 4, 16, 64};
/* If a model has more weights than this, a pass of 64 rows keeps the device busy for longer
 * than the host needs to launch it. */
static const size_t LAUNCH_BOUND_BYTES = (size_t)1 << 30;

struct shape {
    int rows, chunks;
    int keys;       /* if the pass is timed: cache rows of the text and of the pass */
    bool step;      /* a draft step, in a graph */
    bool fc;        /* the residual stream is the output of a draft head's fc */
    bool states;    /* hidden states are returned */
    int head_rows;  /* number of rows whose logits are wanted */
    float *logits;  /* where these logits go, if the rows are adjacent; otherwise NULL */
    size_t stride;  /* numbers between rows of logits */
    int vocabulary; /* logits in a row */
};

/* ------------------------------------------------------------------ the input of a pass */

int esp_cuda_take_slot(struct esp_cuda_cache *c, char **slot)
{
    c->slot = (c->slot + 1) % ESP_CUDA_SLOTS;
    ESP_CUDA(esp_cuda_backend_of(c), cudaEventSynchronize(c->copied[c->slot]));
    *slot = c->pass_host[c->slot];
    return ESP_OK;
}

int esp_cuda_send_slot(struct esp_cuda_cache *c, size_t at, size_t bytes)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    ESP_CUDA(backend, cudaMemcpyAsync(c->pass_device + at, c->pass_host[c->slot] + at, bytes,
                                      cudaMemcpyHostToDevice, backend->stream));
    ESP_CUDA(backend, cudaEventRecord(c->copied[c->slot], backend->stream));
    return ESP_OK;
}

template <typename V>
static V *in_slot(const struct esp_cuda_cache *c, char *slot, const V *on_device)
{
    return (V *)(slot + ((const char *)on_device - c->pass_device));
}

/* Writes row[i], or i if `row` is NULL, for each row of the batch. */
static void list_rows(int32_t *to, const int32_t *row, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = row ? row[i] : i;
}

/* Fills in where hidden states are read from and written to. */
static void send_states(struct esp_cuda_cache *c, const struct esp_batch *b, char *slot,
                        struct esp_cuda_pass *pass)
{
    const struct esp_cuda_rows *input = (const struct esp_cuda_rows *)b->input;
    if (b->states) {
        const struct esp_cuda_rows *to = (const struct esp_cuda_rows *)b->states->to;
        pass->states = b->states->count;
        memcpy(pass->state, b->states->state, sizeof pass->state);
        pass->states_to = to->data;
        pass->states_stride = to->stride;
        list_rows((int32_t *)in_slot(c, slot, c->at.states_row), b->states->row, b->rows);
    }
    if (input) {
        pass->input = input->data;
        pass->input_stride = input->stride;
        list_rows((int32_t *)in_slot(c, slot, c->at.input_row), b->input_row, b->rows);
    }
}

/* Sends the numbers of a pass to the device. `step`: arguments for a graph that ends with a
 * draft step, see struct esp_cuda_step. */
static int send_pass(struct esp_cuda_cache *c, const struct esp_batch *b,
                     const struct esp_cuda_step *step)
{
    char *slot = NULL;
    int status = esp_cuda_take_slot(c, &slot);
    if (status < 0)
        return status;
    const struct esp_cuda_rows *logits = (const struct esp_cuda_rows *)b->logits;
    const size_t count = (size_t)b->rows;
    struct esp_cuda_pass pass = {};
    memcpy((void *)in_slot(c, slot, c->at.tokens), b->tokens, count * sizeof(int32_t));
    memcpy((void *)in_slot(c, slot, c->at.positions), b->positions, count * sizeof(int32_t));
    pass.rows = b->rows;
    pass.first = b->first;
    pass.prefix = b->prefix;
    pass.words = b->mask ? b->mask_words : 0;
    if (b->window) {
        pass.sinks = b->window->sinks;
        pass.recent = b->window->recent;
        pass.dropped = b->window->dropped;
        pass.shift = pass.dropped % ESP_CUDA_CHUNK;
    }
    pass.wanted = esp_batch_wanted(b, (int32_t *)in_slot(c, slot, c->at.wanted),
                                   (int32_t *)in_slot(c, slot, c->at.wanted_at));
    pass.step = *step;
    if (logits) {
        pass.logits = logits->data;
        pass.logits_stride = logits->stride;
        pass.logits_vocabulary = logits->base.vocabulary;
    }
    send_states(c, b, slot, &pass);
    memcpy(slot, &pass, sizeof pass);
    const size_t masks = count * (size_t)pass.words * sizeof(uint64_t);
    if (masks > 0)
        memcpy((void *)in_slot(c, slot, c->at.mask), b->mask, masks);
    return esp_cuda_send_slot(c, 0, ((const char *)c->at.mask - c->pass_device) + masks);
}

/* ------------------------------------------------------------------ products */

static bool is_own(const struct esp_cuda_backend *backend, int rows)
{
    return rows <= OWN_ROWS || backend->exact || !backend->lt;
}

static struct esp_cuda_lt_product lt_product(const struct esp_cuda_cache *c,
                                             const struct esp_cuda_product *p, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    struct esp_cuda_lt_product lt = {};
    lt.half = w->half;
    lt.add = p->epilogue == ESP_CUDA_ADD;
    lt.w = p->w;
    lt.x = p->x;
    lt.x_stride = p->x_stride;
    lt.y = p->y ? p->y : c->up;
    lt.y_stride = p->y ? p->y_stride : c->up_width;
    lt.rows = (int)esp_cuda_pad(rows, LT_STEP);
    lt.outputs = p->w->rows;
    return lt;
}

template <typename T>
static int multiply(struct esp_cuda_cache *c, const struct esp_cuda_product *p, int rows)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    if (esp_cuda_weights_of(c)->blocks) {
        esp_cuda_blocks_multiply<T>(c, p, 1, rows);
        return ESP_OK;
    }
    if (is_own(backend, rows)) {
        esp_cuda_matmul<T>(c, p, rows);
        return ESP_OK;
    }
    const struct esp_cuda_lt_product lt = lt_product(c, p, rows);
    bool done;
    int status = esp_cuda_lt_run(backend, &lt, &done);
    if (status == ESP_OK && !done)
        esp_cuda_matmul<T>(c, p, rows);
    else if (status == ESP_OK && (!p->y || p->w->bias))
        esp_cuda_finish<T>(c, p, lt.y, lt.y_stride, rows);
    return status;
}

/* How much of a norm is in c->normed, see norm.h. */
enum ready { NOTHING, HALF, WHOLE };

/* Returns whether the norms in a pass of `rows` rows are computed in halves, see norm.h. */
static bool in_halves(const struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    return !w->blocks && !w->half && w->base.desc->norm == ESP_NORM_RMS &&
           is_own(esp_cuda_backend_of(c), rows);
}

/* Returns whether norms quantise their results for products with blocks. The two norms of a
 * parallel residual do not. */
static bool norms_cut(const struct esp_cuda_cache *c)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    return w->blocks && !w->base.desc->parallel_residual;
}

static struct esp_cuda_product floats(const struct esp_cuda_matrix *w, const void *x,
                                      size_t x_stride, float *y, size_t y_stride)
{
    struct esp_cuda_product p = {};
    p.w = w;
    p.x = x;
    p.x_stride = x_stride;
    p.epilogue = ESP_CUDA_STORE;
    p.y = y;
    p.y_stride = y_stride;
    return p;
}

/* Computes several products of the same activations, in a model with blocks. In y, their
 * results begin `step` columns apart or, with step = 0, follow each other without gaps. Parts
 * without data are skipped. */
template <typename T>
static void multiply_parts(struct esp_cuda_cache *c, const struct esp_cuda_matrix *const *part,
                           int parts, size_t step, const void *x, size_t x_stride, float *y,
                           size_t y_stride, bool cut, int rows)
{
    struct esp_cuda_product p[3] = {};
    int count = 0;
    for (int i = 0; i < parts; i++) {
        if (!part[i]->data)
            continue;
        p[count] = floats(part[i], x, x_stride, y, y_stride);
        p[count++].cut = cut;
        y += step ? step : (size_t)part[i]->rows;
    }
    esp_cuda_blocks_multiply<T>(c, p, count, rows);
}

/* Computes y = W x. */
template <typename T>
static int to_floats(struct esp_cuda_cache *c, const struct esp_cuda_matrix *w, const void *x,
                     size_t x_stride, float *y, size_t y_stride, int rows)
{
    const struct esp_cuda_product p = floats(w, x, x_stride, y, y_stride);
    return multiply<T>(c, &p, rows);
}

/* Returns whether the output of a product is changed before it is added to the residual
 * stream. */
static bool has_branch(const struct esp_cuda_cache *c, const float *norm)
{
    return norm || esp_cuda_desc_of(c)->residual_scale != 0;
}

/* Returns the product of step 5 or 8, which is added to the residual stream or, if it is
 * changed before that, written to c->branch. */
static struct esp_cuda_product added(const struct esp_cuda_cache *c,
                                     const struct esp_cuda_matrix *w, const void *x,
                                     size_t x_stride, const float *norm)
{
    struct esp_cuda_product p = floats(w, x, x_stride, c->branch, c->hidden);
    p.cut = x == c->active || (x == c->attended && esp_cuda_attention_cuts(c));
    if (!has_branch(c, norm)) {
        p.epilogue = ESP_CUDA_ADD;
        p.y = c->x;
    }
    return p;
}

/* Computes x += W y, or x += factor * norm(W y). If `next` is not NULL, also computes this
 * norm of x, unless that needs a separate kernel. *ready becomes how much of the norm is done.
 */
template <typename T, typename A>
static int add(struct esp_cuda_cache *c, const struct esp_cuda_matrix *w, const void *x,
               size_t x_stride, const float *norm, const struct esp_cuda_norm *next, int rows,
               enum ready *ready)
{
    struct esp_cuda_product p = added(c, w, x, x_stride, norm);
    *ready = NOTHING;
    if (has_branch(c, norm)) {
        const int status = multiply<T>(c, &p, rows);
        if (status == ESP_OK)
            esp_cuda_add<A>(c, false, norm, next, rows);
        *ready = next ? WHOLE : NOTHING;
        return status;
    }
    if (next && next->weight && in_halves(c, rows)) {
        p.next = next;
        *ready = HALF;
    }
    return multiply<T>(c, &p, rows);
}

static struct esp_cuda_product activated(const struct esp_cuda_cache *c,
                                         const struct esp_cuda_layer *layer, const void *x,
                                         bool normed)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    struct esp_cuda_product p = floats(&layer->up, x, c->hidden, NULL, 0);
    p.epilogue = esp_gated(d->activation) ? ESP_CUDA_GATED : ESP_CUDA_ACTIVATED;
    p.out = c->active;
    p.out_stride = c->ffn;
    p.normed = normed;
    return p;
}

template <typename T>
static int activate(struct esp_cuda_cache *c, const struct esp_cuda_layer *layer, const void *x,
                    bool normed, int rows)
{
    if (esp_cuda_weights_of(c)->blocks) {
        const struct esp_cuda_matrix *const parts[] = {&layer->gate, &layer->up};
        multiply_parts<T>(c, parts, 2, c->ffn, x, c->hidden, c->up, c->up_width, norms_cut(c),
                          rows);
        esp_cuda_blocks_activate(c, false, rows);
        return ESP_OK;
    }
    const struct esp_cuda_product p = activated(c, layer, x, normed);
    return multiply<T>(c, &p, rows);
}

/* Computes steps 7 and 8 for a mixture of experts, and the norm `next`. */
template <typename T, typename A>
static int add_experts(struct esp_cuda_cache *c, const struct esp_cuda_layer *layer,
                       const void *x, bool normed, const struct esp_cuda_norm *next, int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const int pairs = rows * d->experts_used;
    const int tile = pairs > FEW_PAIRS * d->experts ? MANY_PAIRS : FEW_PAIRS;
    struct esp_cuda_product up =
        floats(&layer->up, x, c->hidden, c->pair_up, 2 * c->expert_ffn);
    struct esp_cuda_product down =
        floats(&layer->down, c->pair_active, c->expert_ffn, c->pair_out, c->hidden);
    up.tile = down.tile = tile;
    up.cut = norms_cut(c);
    up.normed = normed;
    down.by_pair = down.cut = true;
    esp_cuda_route<A>(c, layer, x, normed, rows, tile);
    if (esp_cuda_weights_of(c)->blocks) {
        struct esp_cuda_product both[2] = {up, up};
        both[0].w = &layer->gate;
        both[1].y += c->expert_ffn;
        esp_cuda_blocks_multiply<T>(c, both, 2, rows);
        esp_cuda_blocks_activate(c, true, rows);
        esp_cuda_blocks_multiply<T>(c, &down, 1, rows);
    } else {
        up.epilogue = ESP_CUDA_GATED;
        up.out = c->pair_active;
        up.out_stride = c->expert_ffn;
        esp_cuda_matmul<T>(c, &up, rows);
        esp_cuda_matmul<T>(c, &down, rows);
    }
    esp_cuda_add<A>(c, true, layer->norm_mlp, next, rows);
    return ESP_OK;
}

template <typename T> static int multiply_head(struct esp_cuda_cache *c, const struct shape *s)
{
    struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    struct esp_cuda_product p = floats(&w->head, c->normed, c->hidden, NULL, 0);
    if (c->outputs)
        return to_floats<T>(c, &w->head, c->normed, c->hidden, c->outputs, c->outputs_width,
                            s->head_rows);
    p.epilogue = ESP_CUDA_LOGITS;
    if (w->blocks) {
        esp_cuda_blocks_multiply<T>(c, &p, 1, s->head_rows);
        return ESP_OK;
    }
    if (!s->logits || is_own(backend, s->head_rows)) {
        esp_cuda_matmul<T>(c, &p, s->head_rows);
        return ESP_OK;
    }
    struct esp_cuda_lt_product lt = lt_product(c, &p, s->head_rows);
    lt.rows = s->head_rows; /* exactly, because the rows after them belong to the caller */
    lt.y = s->logits;
    lt.y_stride = s->stride;
    lt.outputs = w->head.rows < s->vocabulary ? w->head.rows : s->vocabulary;
    bool done;
    int status = esp_cuda_lt_run(backend, &lt, &done);
    p.columns = (size_t)s->vocabulary;
    if (status == ESP_OK && !done)
        esp_cuda_matmul<T>(c, &p, s->head_rows);
    else if (status == ESP_OK && s->vocabulary > w->head.rows)
        esp_cuda_finish<T>(c, &p, NULL, 0, s->head_rows);
    return status;
}

template <typename T> static int head(struct esp_cuda_cache *c, const struct shape *s)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    int status = multiply_head<T>(c, s);
    if (status == ESP_OK && (c->outputs || d->logit_scale != 0 || d->logit_cap != 0))
        esp_cuda_logits(c, s->head_rows);
    return status;
}

/* ------------------------------------------------------------------ the model */

template <typename T>
static int project(struct esp_cuda_cache *c, const struct esp_cuda_layer *layer, int i,
                   bool normed, int rows)
{
    const bool joined = esp_layer_reads_both(esp_cuda_desc_of(c), i);
    const void *x = joined ? c->joined : c->normed;
    const size_t x_stride = joined ? c->joined_width : c->hidden;
    if (!esp_cuda_weights_of(c)->blocks) {
        struct esp_cuda_product p = floats(&layer->qkv, x, x_stride, c->qkv, c->qkv_width);
        p.normed = normed;
        return multiply<T>(c, &p, rows);
    }
    const struct esp_cuda_matrix *const parts[] = {&layer->query, &layer->key, &layer->value};
    multiply_parts<T>(c, parts, 3, 0, x, x_stride, c->qkv, c->qkv_width,
                      !joined && norms_cut(c), rows);
    return ESP_OK;
}

/* Returns how many bytes of a matrix a pass reads; 0 for experts, of which it reads only some.
 */
static size_t bytes_of(const struct esp_cuda_matrix &m)
{
    return m.data && m.count <= 1 ? esp_cuda_matrix_bytes(&m) : 0;
}

/* Returns how many bytes of keys and values a layer reads. */
static size_t cache_bytes_of(const struct esp_cuda_cache *c, int i, const struct shape *s)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const int window = d->layer[i].window, most = window > 0 ? window + s->rows : s->keys;
    return 4 * c->head_width * d->kv_heads * (s->keys < most ? s->keys : most);
}

/* Does step 1 and, with a parallel residual, step 6, because the MLP then reads x as it was
 * before the layer. */
template <typename A>
static void begin_layer(struct esp_cuda_cache *c, const struct esp_cuda_layer *layer, int i,
                        enum ready ready, int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const struct esp_cuda_norm norms[] = {
        {layer->norm1, layer->norm1_bias, i, norms_cut(c)},
        {layer->norm2, layer->norm2_bias, ESP_CUDA_NO_STATE, false}};
    if (esp_layer_reads_both(d, i))
        esp_cuda_join<A>(c, rows);
    else if (ready == NOTHING)
        esp_cuda_norms<A>(c, norms, d->parallel_residual ? 2 : 1, rows);
    else
        return;
    esp_cuda_launched(esp_cuda_backend_of(c), "norm", 0);
}

/* Runs a layer. *ready: how much of the norms before the layer is done; on return, how much of
 * those after it. */
template <typename T, typename A>
static int run_layer(struct esp_cuda_cache *c, const struct esp_cuda_layer *layer, int i,
                     const struct shape *s, enum ready *ready)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const int rows = s->rows;
    const bool parallel = w->base.desc->parallel_residual;
    const bool last = i == w->base.desc->layers - 1;
    const struct esp_cuda_layer *after = last ? layer : &w->layer[i + 1];
    const struct esp_cuda_norm norm2 = {layer->norm2, layer->norm2_bias, ESP_CUDA_NO_STATE,
                                        norms_cut(c)};
    const struct esp_cuda_norm norm1 = {after->norm1, after->norm1_bias, i + 1, norms_cut(c)};
    const struct esp_cuda_norm *next = last || parallel ? NULL : &norm1;
    const void *x = parallel ? c->normed2 : c->normed;
    begin_layer<A>(c, layer, i, *ready, rows);                  /* 1 */
    int status = project<T>(c, layer, i, *ready == HALF, rows); /* 2 */
    if (status < 0)
        return status;
    esp_cuda_launched(backend, "queries, keys, values",
                      bytes_of(layer->qkv) + bytes_of(layer->query) + bytes_of(layer->key) +
                          bytes_of(layer->value));
    esp_cuda_rope<T>(c, layer, i, rows);                 /* 3 */
    esp_cuda_attention<T>(c, layer, i, rows, s->chunks); /* 4 */
    esp_cuda_launched(backend, "attention", cache_bytes_of(c, i, s));
    status = add<T, A>(c, &layer->output, c->attended, c->q_width, layer->norm_attended,
                       parallel ? NULL : &norm2, rows, ready); /* 5 */
    if (status < 0)
        return status;
    esp_cuda_launched(backend, "output", bytes_of(layer->output));
    if (!parallel && *ready == NOTHING) { /* 6 */
        esp_cuda_norms<A>(c, &norm2, 1, rows);
        esp_cuda_launched(backend, "norm", 0);
    }
    const bool normed = *ready == HALF;
    *ready = next ? WHOLE : NOTHING;
    if (layer->router) {
        status = add_experts<T, A>(c, layer, x, normed, next, rows);
        esp_cuda_launched(backend, "experts", 0);
        return status;
    }
    status = activate<T>(c, layer, x, normed, rows); /* 7 */
    if (status < 0)
        return status;
    esp_cuda_launched(backend, "gate and up", bytes_of(layer->gate) + bytes_of(layer->up));
    status = add<T, A>(c, &layer->down, c->active, c->ffn, layer->norm_mlp, next, rows,
                       ready); /* 8 */
    esp_cuda_launched(backend, "down", bytes_of(layer->down));
    return status;
}

/* Runs a pass. A: the type of activations, which is T, or float in a model with blocks. */
template <typename T, typename A>
static int run(struct esp_cuda_cache *c, const struct shape *s)
{
    struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    esp_cuda_embed<T, A>(c, s->fc, s->rows);
    esp_cuda_launched(backend, "embedding", 0);
    int status = esp_cuda_stream_begin(w->stream);
    if (status == ESP_OK && s->fc)
        status = to_floats<T>(c, &w->fc, c->joined, c->joined_width, c->x, c->hidden, s->rows);
    enum ready ready = NOTHING;
    for (int i = 0; i < w->base.desc->layers && status == ESP_OK; i++) {
        const struct esp_cuda_layer *layer = NULL;
        status = esp_cuda_stream_hold(w, i, &layer);
        if (status == ESP_OK)
            status = run_layer<T, A>(c, layer, i, s, &ready);
        if (status == ESP_OK)
            status = esp_cuda_stream_release(w, i);
    }
    if (status == ESP_OK && (s->head_rows > 0 || s->states)) {
        esp_cuda_norm_final<A>(c, s->rows);
        esp_cuda_launched(backend, "norm", 0);
    }
    if (status == ESP_OK && s->head_rows > 0) {
        status = head<T>(c, s);
        esp_cuda_launched(backend, "head", bytes_of(w->head));
    }
    if (status == ESP_OK && s->step) {
        esp_cuda_step_softmax(c, s->rows);
        esp_cuda_step_top_k(c, s->rows);
    }
    return status < 0 ? status
                      : esp_cuda_launch_status(backend, "the kernels of a forward pass");
}

static int run_typed(struct esp_cuda_cache *c, const struct shape *s)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    if (w->blocks)
        return w->half ? run<esp_f16, float>(c, s) : run<esp_bf16, float>(c, s);
    return w->half ? run<esp_f16, esp_f16>(c, s) : run<esp_bf16, esp_bf16>(c, s);
}

/* ------------------------------------------------------------------ graphs */

/* Sets *captured to the smallest captured number of chunks (1, 2, 4, ... or a full cache) that
 * is at least `chunks`, and returns its index. */
static int length_of(const struct esp_cuda_cache *c, int chunks, int *captured)
{
    int i = 0;
    for (*captured = 1; *captured < chunks && i < ESP_CUDA_LENGTHS - 1; i++)
        *captured *= 2;
    if (*captured < chunks || *captured > c->chunks)
        *captured = c->chunks;
    return i;
}

/* Returns whether graphs use fc. EAGLE uses it in every pass. EAGLE-3 uses it only for hidden
 * states of the target; its draft steps, which are more frequent, read the head's own hidden
 * states. */
static bool graphs_use_fc(const struct esp_cuda_cache *c)
{
    return esp_cuda_desc_of(c)->reads == ESP_READS_EAGLE;
}

/* Loads the kernels of a pass, see esp_loading_kernels. */
static int load_kernels(struct esp_cuda_cache *c, const struct shape *s)
{
    esp_loading_kernels = true;
    const int status = run_typed(c, s);
    esp_loading_kernels = false;
    return status;
}

/* Makes `graph` ready to be launched, including its memory on the device. *exec stays NULL if
 * there is not enough memory. */
static int instantiate(struct esp_cuda_backend *backend, cudaGraph_t graph,
                       cudaGraphExec_t *exec)
{
    cudaError_t made = cudaGraphInstantiate(exec, graph, 0);
    if (made == cudaSuccess) {
        made = cudaGraphUpload(*exec, backend->stream);
        if (made != cudaSuccess)
            esp_cuda_fine(cudaGraphExecDestroy(*exec));
    }
    if (made == cudaSuccess)
        return ESP_OK;
    *exec = NULL;
    return made == cudaErrorMemoryAllocation && !esp_cuda_fine(made)
               ? ESP_OK
               : esp_cuda_failed(backend, "cudaGraphInstantiate", made);
}

int esp_cuda_walk(struct esp_cuda_cache *c, int rows, int context)
{
    struct shape s = {};
    s.rows = s.head_rows = rows;
    s.keys = context + rows;
    s.chunks = (s.keys + ESP_CUDA_CHUNK - 1) / ESP_CUDA_CHUNK;
    s.fc = graphs_use_fc(c);
    return load_kernels(c, &s);
}

static int capture(struct esp_cuda_cache *c, const struct shape *s, cudaGraphExec_t *exec)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    cudaGraph_t graph = NULL;
    int status = load_kernels(c, s);
    if (status < 0)
        return status;
    ESP_CUDA(backend,
             cudaStreamBeginCapture(backend->stream, cudaStreamCaptureModeThreadLocal));
    status = run_typed(c, s);
    cudaError_t ended = cudaStreamEndCapture(backend->stream, &graph);
    if (!esp_cuda_fine(ended) && status == ESP_OK)
        status = esp_cuda_failed(backend, "cudaStreamEndCapture", ended);
    if (status == ESP_OK)
        status = instantiate(backend, graph, exec);
    if (graph)
        esp_cuda_fine(cudaGraphDestroy(graph));
    return status;
}

/* Returns whether a pass of `rows` rows fits into the cache, and is worth a graph because the
 * device would finish it sooner than the host could launch it kernel by kernel. */
static bool launch_bound(const struct esp_cuda_cache *c, int rows, bool step)
{
    const bool small = c->base.weights->bytes < LAUNCH_BOUND_BYTES;
    return rows <= c->max_batch && (small || (rows <= OWN_ROWS && !step));
}

/* Captures the graph for passes of bucket `i` and texts of length `j`. *room becomes false if
 * there is not enough memory for it, or if less than `least` bytes of the device's memory are
 * left afterwards. */
static int capture_one(struct esp_cuda_cache *c, bool step, int i, int j, size_t least,
                       bool *room)
{
    struct shape s = {};
    size_t left, total;
    s.rows = s.head_rows = bucket_rows[i];
    s.step = step;
    s.fc = graphs_use_fc(c);
    length_of(c, 1 << j, &s.chunks);
    const int status = capture(c, &s, &c->graph[step][i][j]);
    if (status < 0)
        return status;
    ESP_CUDA(esp_cuda_backend_of(c), cudaMemGetInfo(&left, &total));
    *room = c->graph[step][i][j] && left >= least;
    return ESP_OK;
}

/* Captures graphs for short texts first, because their passes gain most. The memory of a graph
 * is known only after the capture, so the last one may exceed the limit. Passes over streamed
 * layers get no graph: they wait for the copy anyway, and their buffers change with every
 * pass. A pass without a graph launches its kernels one by one. */
static int capture_graphs(struct esp_cuda_cache *c)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const size_t limit = w->base.desc->graph_bytes;
    size_t before, total;
    bool room = !w->stream;
    int last, status = ESP_OK;
    const int lengths = length_of(c, c->chunks, &last) + 1;
    ESP_CUDA(esp_cuda_backend_of(c), cudaMemGetInfo(&before, &total));
    const size_t least = limit > 0 && limit < before ? before - limit : 0;
    for (int j = 0; j < lengths; j++)
        for (int step = 0; step < 2; step++)
            for (int i = 0; i < ESP_CUDA_BUCKETS && status == ESP_OK && room; i++)
                if (launch_bound(c, bucket_rows[i], step))
                    status = capture_one(c, step, i, j, least, &room);
    return status;
}

/* Chooses cuBLASLt's algorithms for all shapes and numbers of rows that may be needed. */
static int choose_algorithms(struct esp_cuda_cache *c)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const struct esp_cuda_layer *layer = &w->layer[0];
    for (int i = 1; layer->router && i < w->base.desc->layers; i++)
        layer = &w->layer[i]; /* a layer without experts, if there is one */
    const struct esp_cuda_product shapes[] = {
        floats(&layer->qkv, c->normed, c->hidden, c->qkv, c->qkv_width),
        added(c, &layer->output, c->attended, c->q_width, layer->norm_attended),
        activated(c, layer, c->normed, false),
        added(c, &layer->down, c->active, c->ffn, layer->norm_mlp),
        floats(&w->fc, c->joined, c->joined_width, w->fc.data ? c->x : NULL, c->hidden),
        floats(&w->head, c->normed, c->hidden, c->outputs, c->outputs_width),
    };
    for (int rows = OWN_ROWS + 1; rows <= c->max_batch + LT_STEP - 1; rows += LT_STEP)
        for (const struct esp_cuda_product &shape : shapes) {
            if ((!shape.y && !shape.out) ||
                shape.w->count > 1) /* the model has no such product */
                continue;
            const struct esp_cuda_lt_product lt = lt_product(c, &shape, rows);
            int status = esp_cuda_lt_choose(backend, &lt);
            if (status < 0)
                return status;
        }
    return ESP_OK;
}

int esp_cuda_prepare(struct esp_cuda_cache *c)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const bool own = backend->exact || esp_cuda_weights_of(c)->blocks;
    int status = own ? ESP_OK : esp_cuda_lt_open(backend);
    if (status == ESP_OK && !own && backend->lt)
        status = choose_algorithms(c);
    return status == ESP_OK ? capture_graphs(c) : status;
}

/* ------------------------------------------------------------------ the batch */

/* Returns the graph for a pass that ends with logits or with a draft step, or NULL. */
static cudaGraphExec_t find_graph(const struct esp_cuda_cache *c, const struct shape *s,
                                  const struct esp_batch *b)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    int captured;
    if (esp_cuda_backend_of(c)->times)
        return NULL;
    for (int i = 0; s->head_rows > 0 && s->fc == graphs_use_fc(c) && i < ESP_CUDA_BUCKETS; i++)
        if (s->rows <= bucket_rows[i])
            return s->step && !esp_cuda_step_fits(b->logits, d, b->step, bucket_rows[i])
                       ? NULL
                       : c->graph[s->step][i][length_of(c, s->chunks, &captured)];
    return NULL;
}

/* Returns whether the rows of the wanted logits are adjacent and in order. */
static bool adjacent(const struct esp_batch *b)
{
    for (int i = 0; b->logits_row && i < b->rows; i++)
        if (b->logits_row[i] != b->logits_row[0] + i || b->logits_row[0] < 0)
            return false;
    return true;
}

/* Runs a pass that does not end with a draft step in a graph. */
static int run_batch(struct esp_cuda_cache *c, const struct esp_batch *b, struct shape *s)
{
    const struct esp_cuda_step none = {};
    const struct esp_cuda_rows *logits = (const struct esp_cuda_rows *)b->logits;
    s->step = false;
    int status = send_pass(c, b, &none);
    if (status < 0)
        return status;
    cudaGraphExec_t graph = find_graph(c, s, b);
    if (graph) {
        ESP_CUDA(esp_cuda_backend_of(c),
                 cudaGraphLaunch(graph, esp_cuda_backend_of(c)->stream));
        return ESP_OK;
    }
    if (s->head_rows > 0) {
        s->stride = logits->stride;
        s->vocabulary = logits->base.vocabulary;
        if (adjacent(b))
            s->logits = logits->data + (b->logits_row ? b->logits_row[0] : 0) * logits->stride;
    }
    return run_typed(c, s);
}

/* Runs a draft step as one graph: the pass, softmax and top-k. */
static int run_step(struct esp_cuda_cache *c, const struct esp_batch *b, const struct shape *s,
                    cudaGraphExec_t graph)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    struct esp_cuda_step step = {};
    int status = esp_cuda_step_begin(b->logits, b->step, s->head_rows, &step);
    if (status == ESP_OK)
        status = send_pass(c, b, &step);
    if (status < 0)
        return status;
    ESP_CUDA(backend, cudaGraphLaunch(graph, backend->stream));
    return esp_cuda_finish(b->logits, ESP_OK, b->step->when);
}

static int forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_cuda_cache *c = (struct esp_cuda_cache *)cache;
    const struct esp_model_desc *d = cache->weights->desc;
    if (!esp_batch_fits(batch, cache, c->rows, c->max_batch) ||
        (batch->mask && batch->mask_words > c->at.seen_stride / 64))
        return ESP_E_ARGUMENT;
    struct shape s = {};
    s.rows = batch->rows;
    s.states = batch->states != NULL;
    s.fc =
        batch->input && (d->reads == ESP_READS_EAGLE || batch->input->vocabulary == d->input);
    const int shift = batch->window ? batch->window->dropped % ESP_CUDA_CHUNK : 0;
    s.chunks = (batch->first + batch->rows + shift + ESP_CUDA_CHUNK - 1) / ESP_CUDA_CHUNK;
    s.keys = batch->first + batch->rows;
    s.step = batch->step != NULL;
    s.head_rows = esp_batch_wanted(batch, NULL, NULL);
    cudaGraphExec_t graph = s.step ? find_graph(c, &s, batch) : NULL;
    if (graph)
        return run_step(c, batch, &s, graph);
    int status = run_batch(c, batch, &s);
    if (status < 0 || !batch->step)
        return status;
    return esp_batch_step(batch, in_slot(c, c->pass_host[c->slot], c->at.wanted_at),
                          s.head_rows);
}

int esp_cuda_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    esp_cuda_enter(cache->weights->backend);
    return esp_cuda_end((struct esp_cuda_backend *)cache->weights->backend,
                        forward(cache, batch));
}
