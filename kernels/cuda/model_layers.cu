/* model_layers.cu - launches the kernels of a pass, layer by layer.
 *
 * The steps of a layer have the same numbers as in the CPU backend (cpu/forward.c):
 *   1  norm
 *   2  products that compute queries, keys and values
 *   3  rotation of queries and keys; keys and values are written to the cache
 *   4  attention
 *   5  output projection; the result is added to the residual stream
 *   6  norm
 *   7  products with the matrices gate and up
 *   8  product with the matrix down; the result is added to the residual stream
 * In steps 5 and 8, a norm or a factor may be applied to the result before it is added. In a
 * recurrent layer, mixer.cu does steps 3 and 4. A layer may lack steps 2 to 5, or 6 to 8. A
 * mixture of experts has a router, the products of all used experts and the sum of their
 * outputs instead of steps 7 and 8. Most norms are computed by the kernels of the steps before
 * or after them (norm.h), and in a small pass step 3 is part of step 4 (attention.h). So a
 * layer takes five kernels.
 *
 * matmul.cu computes products of up to 64 rows. Larger products use cuBLASLt. The order in
 * which cuBLASLt adds depends on the number of rows. matmul.cu also computes the larger
 * products in exact mode, if cuBLASLt is missing, and if it has no algorithm for a shape.
 *
 * If several GPUs compute a model (gpus.h), they do each step together. After a step in which
 * each GPU computes a part of the outputs, they exchange these outputs.
 */
#include "kernels/cuda/model_layers.h"

#include <initializer_list>

#include "kernels/cuda/blocks.h"
#include "kernels/cuda/gpus.h"
#include "kernels/cuda/rows.h"

enum { LT_STEP = 16 };
/* The largest number of pairs in a tile; a row and one of its experts are a pair. It is
 * MANY_PAIRS if experts have more than FEW_PAIRS pairs on average, and FEW_PAIRS otherwise. */
enum { FEW_PAIRS = 8, MANY_PAIRS = 32 };

/* ------------------------------------------------------------------ products */

static bool is_own(const struct esp_cuda_backend *backend, int rows)
{
    return rows <= ESP_CUDA_OWN_ROWS || backend->exact || !backend->lt;
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

/* Says how much of the next norm is already in c->normed: nothing, its first half (norm.h), or
 * the whole norm. */
enum ready { NOTHING, HALF, WHOLE };

/* Returns whether the norms in a pass of `rows` rows are computed in two halves, see norm.h. */
static bool in_halves(const struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    return !w->blocks && !w->half && w->base.desc->norm == ESP_NORM_RMS &&
           is_own(esp_cuda_backend_of(c), rows);
}

/* Returns whether norms quantise their results for products with quantised weights. The two
 * norms of a parallel residual do not. */
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

/* Computes several products of the same activations, in a model with quantised weights. In y,
 * their results begin `step` columns apart or, with step = 0, follow each other without gaps.
 * Parts without data are skipped. */
template <typename T>
static void multiply_parts(struct esp_cuda_cache *c, const struct esp_cuda_matrix *const *part,
                           int parts, size_t step, const void *x, size_t x_stride, float *y,
                           size_t y_stride, bool cut, int rows)
{
    struct esp_cuda_product p[ESP_CUDA_PARTS] = {};
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

/* Returns the arguments of the product of step 5 (ESP_RANK_OUTPUT) or 8 (ESP_RANK_DOWN). The
 * product is added to the residual stream. If it has to be changed before that, it is written
 * to c->branch instead. Activations that several GPUs have exchanged are not quantised yet. */
static struct esp_cuda_product added(const struct esp_cuda_cache *c,
                                     const struct esp_cuda_layer *layer, int i,
                                     enum esp_rank_kind kind)
{
    const bool output = kind == ESP_RANK_OUTPUT;
    const bool recurs = esp_recurs(esp_cuda_desc_of(c)->layer[i].mixer);
    struct esp_cuda_product p =
        !output  ? floats(&layer->mlp.down, c->active, c->ffn, c->branch, c->hidden)
        : recurs ? floats(&layer->output, c->states.mixed, c->states.out, c->branch, c->hidden)
                 : floats(&layer->output, c->attended, c->q_width, c->branch, c->hidden);
    p.cut = !esp_cuda_divides(c, output ? ESP_RANK_ATTENTION : ESP_RANK_MLP) &&
            (!output || (!recurs && esp_cuda_attention_cuts(c, i)));
    p.first = esp_cuda_first(c, kind);
    if (!has_branch(c, output ? layer->norm_attended : layer->norm_mlp)) {
        p.epilogue = ESP_CUDA_ADD;
        p.y = c->x;
    }
    if (p.y)
        p.y += p.first;
    return p;
}

/* Finds the norm that follows step 5 or 8 of layer `i`. Returns false if this norm is never
 * computed together with the step. */
static bool find_next(const struct esp_cuda_cache *c, int i, enum esp_rank_kind kind,
                      struct esp_cuda_norm *norm)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const struct esp_model_desc *d = w->base.desc;
    if (kind == ESP_RANK_OUTPUT && esp_layer_has_mlp(&d->layer[i])) {
        *norm = {c->held->norm2, c->held->norm2_bias, ESP_CUDA_NO_STATE, norms_cut(c)};
        return !d->parallel_residual;
    }
    if (i == d->layers - 1 || d->parallel_residual)
        return false;
    *norm = {w->layer[i + 1].norm1, w->layer[i + 1].norm1_bias, i + 1, norms_cut(c)};
    return true;
}

/* Does step 5 or 8 of layer `i`: x += W y, or x += factor * norm(W y). Also computes the norm
 * that follows, unless that needs a separate kernel. Writes to *ready how much of this norm has
 * been computed. */
template <typename T, typename A>
static int add(struct esp_cuda_cache *c, enum esp_rank_kind kind, int i, int rows,
               enum ready *ready)
{
    struct esp_cuda_exchange exchange = {kind, rows, false, false, ESP_CUDA_NO_STATE};
    struct esp_cuda_norm next = {};
    bool branch = false, follows = false;
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        struct esp_cuda_product p = added(r, r->held, i, kind);
        follows = find_next(r, i, kind, &next);
        branch = p.epilogue != ESP_CUDA_ADD;
        exchange.halves = !branch && follows && next.weight && in_halves(r, rows);
        if (exchange.halves)
            p.next = &next;
        if (status == ESP_OK)
            status = multiply<T>(r, &p, rows);
    }
    exchange.state = next.state;
    *ready = exchange.halves ? HALF : branch && follows ? WHOLE : NOTHING;
    if (status == ESP_OK)
        status = esp_cuda_share(c, &exchange);
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        const struct esp_cuda_layer *held = r->held;
        if (branch && status == ESP_OK)
            esp_cuda_add<A>(r, NULL,
                            kind == ESP_RANK_OUTPUT ? held->norm_attended : held->norm_mlp,
                            find_next(r, i, kind, &next) ? &next : NULL, rows);
    }
    return status;
}

static struct esp_cuda_product activated(const struct esp_cuda_cache *c,
                                         const struct esp_cuda_mlp *mlp, const void *x,
                                         bool normed)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    struct esp_cuda_product p = floats(&mlp->up, x, c->hidden, NULL, 0);
    p.epilogue = esp_gated(d->activation) ? ESP_CUDA_GATED : ESP_CUDA_ACTIVATED;
    p.out = (char *)c->active + 2 * esp_cuda_first(c, ESP_RANK_MLP);
    p.out_stride = c->ffn;
    p.normed = normed;
    return p;
}

template <typename T>
static int activate(struct esp_cuda_cache *c, const struct esp_cuda_mlp *mlp, const void *x,
                    bool normed, int rows)
{
    if (esp_cuda_weights_of(c)->blocks) {
        const struct esp_cuda_matrix *const parts[] = {&mlp->gate, &mlp->up};
        multiply_parts<T>(c, parts, 2, c->ffn, x, c->hidden, c->up, c->up_width, norms_cut(c),
                          rows);
        esp_cuda_blocks_activate(c, false, rows);
        return ESP_OK;
    }
    const struct esp_cuda_product p = activated(c, mlp, x, normed);
    return multiply<T>(c, &p, rows);
}

/* Computes the output of the shared expert, which all rows use, and writes it to c->branch. */
template <typename T>
static int run_shared(struct esp_cuda_cache *c, const void *x, bool normed, int rows)
{
    const struct esp_cuda_mlp *mlp = &c->held->shared;
    const int status = activate<T>(c, mlp, x, normed, rows);
    struct esp_cuda_product p = floats(&mlp->down, c->active, c->ffn, c->branch, c->hidden);
    p.cut = true;
    return status < 0 ? status : multiply<T>(c, &p, rows);
}

/* Returns the weight of the norm before the MLP of layer `i`. */
static const float *mlp_norm(const struct esp_cuda_cache *c, int i)
{
    return esp_cuda_desc_of(c)->layer[i].mixer == ESP_MIXER_NONE ? c->held->norm1
                                                                 : c->held->norm2;
}

/* Computes one of the two parts of a mixture of experts in layer `i`. With ESP_RANK_EXPERTS,
 * this part is the router and the products with gate and up, which give c->pair_active. With
 * ESP_RANK_DOWN, it is the product with down, which gives c->pair_out. */
template <typename T, typename A>
static void multiply_experts(struct esp_cuda_cache *c, enum esp_rank_kind kind, const void *x,
                             bool normed, int i, int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const struct esp_cuda_layer *layer = c->held;
    const struct esp_cuda_mlp *mlp = &layer->mlp;
    const bool gated = esp_gated(d->activation);
    const bool blocks = esp_cuda_weights_of(c)->blocks;
    const int pairs = rows * d->experts_used;
    const int tile = pairs > FEW_PAIRS * d->experts ? MANY_PAIRS : FEW_PAIRS;
    struct esp_cuda_product up = floats(&mlp->up, x, c->hidden, c->pair_up, 2 * c->expert_ffn);
    struct esp_cuda_product down =
        floats(&mlp->down, c->pair_active, c->expert_ffn,
               c->pair_out + esp_cuda_first(c, ESP_RANK_DOWN), c->hidden);
    up.tile = down.tile = tile;
    /* The shared expert has been computed before, and its activations may have overwritten the
     * quantised x. */
    up.cut = norms_cut(c) && !layer->shared.up.data;
    up.normed = normed;
    down.by_pair = true;
    down.cut = !esp_cuda_divides(c, ESP_RANK_EXPERTS);
    if (kind == ESP_RANK_DOWN) {
        if (blocks)
            esp_cuda_blocks_multiply<T>(c, &down, 1, rows);
        else
            esp_cuda_matmul<T>(c, &down, rows);
        return;
    }
    esp_cuda_route<A>(c, layer, x, normed ? mlp_norm(c, i) : NULL, rows, tile);
    if (blocks) {
        struct esp_cuda_product both[2] = {up, up};
        both[0].w = &mlp->gate;
        both[1].y += c->expert_ffn;
        esp_cuda_blocks_multiply<T>(c, gated ? both : &up, gated ? 2 : 1, rows);
        esp_cuda_blocks_activate(c, true, rows);
    } else {
        up.epilogue = gated ? ESP_CUDA_GATED : ESP_CUDA_ACTIVATED;
        up.out = (char *)c->pair_active + 2 * esp_cuda_first(c, ESP_RANK_EXPERTS);
        up.out_stride = c->expert_ffn;
        esp_cuda_matmul<T>(c, &up, rows);
    }
}

/* Returns the input of a layer's MLP. */
static const void *mlp_input(const struct esp_cuda_cache *c)
{
    return esp_cuda_desc_of(c)->parallel_residual ? c->normed2 : c->normed;
}

/* Computes steps 7 and 8 of layer `i` for a mixture of experts, and the norm that follows. */
template <typename T, typename A>
static int add_experts(struct esp_cuda_cache *c, int i, int rows, enum ready *ready)
{
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (status == ESP_OK && r->held->shared.up.data)
            status = run_shared<T>(r, mlp_input(r), *ready == HALF, rows);
    }
    for (const enum esp_rank_kind kind : {ESP_RANK_EXPERTS, ESP_RANK_DOWN}) {
        const struct esp_cuda_exchange exchange = {kind, rows, true, false, ESP_CUDA_NO_STATE};
        for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
            if (status == ESP_OK)
                multiply_experts<T, A>(r, kind, mlp_input(r), *ready == HALF, i, rows);
        }
        if (status == ESP_OK)
            status = esp_cuda_share(c, &exchange);
    }
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        struct esp_cuda_norm next;
        const bool follows = find_next(r, i, ESP_RANK_DOWN, &next);
        if (status == ESP_OK)
            esp_cuda_add<A>(r, r->held, r->held->norm_mlp, follows ? &next : NULL, rows);
        *ready = follows ? WHOLE : NOTHING;
    }
    return status;
}

template <typename T>
static int multiply_head(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
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
    lt.rows = s->head_rows; /* no padding rows: the rows after these belong to the caller */
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

/* Computes the logits of the rows that the caller wants. Rank 0 gets all of them. */
template <typename T> static int head(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const struct esp_cuda_exchange logits = {ESP_RANK_HEAD, s->head_rows, false, false,
                                             ESP_CUDA_NO_STATE};
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        struct esp_cuda_shape own = *s;
        if (r->own_logits) {
            own.logits = r->own_logits;
            own.stride = r->own_logits_width;
            own.vocabulary = esp_cuda_weights_of(r)->head.rows;
        }
        if (status == ESP_OK && (r == c || r->own_logits))
            status = multiply_head<T>(r, &own);
    }
    if (status == ESP_OK)
        status = esp_cuda_share(c, &logits);
    esp_cuda_enter_rank(c);
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
        struct esp_cuda_product p =
            floats(&layer->inputs, x, x_stride, c->inputs, c->inputs_width);
        p.normed = normed;
        return multiply<T>(c, &p, rows);
    }
    const struct esp_cuda_matrix *parts[ESP_CUDA_PARTS];
    for (int part = 0; part < ESP_CUDA_PARTS; part++)
        parts[part] = &layer->part[part];
    multiply_parts<T>(c, parts, ESP_CUDA_PARTS, 0, x, x_stride, c->inputs, c->inputs_width,
                      !joined && norms_cut(c), rows);
    return ESP_OK;
}

/* Returns how many bytes of a matrix a pass reads. For experts it returns 0, because a pass
 * reads only some of them. */
static size_t bytes_of(const struct esp_cuda_matrix &m)
{
    return m.data && m.count <= 1 ? esp_cuda_matrix_bytes(&m) : 0;
}

/* Returns how many bytes of weights step 2 of a layer reads. */
static size_t input_bytes_of(const struct esp_cuda_layer *layer)
{
    size_t bytes = bytes_of(layer->inputs);
    for (const struct esp_cuda_matrix &part : layer->part)
        bytes += bytes_of(part);
    return bytes;
}

/* Returns how many bytes of keys and values a layer reads. */
static size_t cache_bytes_of(const struct esp_cuda_cache *c, int i,
                             const struct esp_cuda_shape *s)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const int window = d->layer[i].window, most = window > 0 ? window + s->rows : s->keys;
    return 4 * c->head_width * d->kv_heads * (s->keys < most ? s->keys : most);
}

/* Computes the norm of step 1. With a parallel residual, also computes the norm of step 6,
 * because the MLP then reads x as it was before the layer. */
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

/* Does steps 1 to 4 of layer `i` on one GPU. In a layer without a mixer, step 1 is the norm
 * before the MLP. */
template <typename T, typename A>
static int mix(struct esp_cuda_cache *c, int i, const struct esp_cuda_shape *s,
               enum ready ready)
{
    const struct esp_cuda_layer *layer = c->held;
    const struct esp_layer *of = &esp_cuda_desc_of(c)->layer[i];
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    const bool recurs = esp_recurs(of->mixer);
    begin_layer<A>(c, layer, i, ready, s->rows); /* 1 */
    if (of->mixer == ESP_MIXER_NONE)
        return ESP_OK;
    const int status = project<T>(c, layer, i, ready == HALF, s->rows); /* 2 */
    if (status < 0)
        return status;
    esp_cuda_launched(backend, recurs ? "inputs of states" : "queries, keys, values",
                      input_bytes_of(layer));
    if (recurs) { /* 3, 4 */
        esp_cuda_mix<T>(c, layer, i, s->rows);
        esp_cuda_launched(backend, "states", 0);
        return ESP_OK;
    }
    esp_cuda_rope<T>(c, layer, i, s->rows);                 /* 3 */
    esp_cuda_attention<T>(c, layer, i, s->rows, s->chunks); /* 4 */
    if (of->attention_gate.data)
        esp_cuda_gate<T>(c, s->rows);
    esp_cuda_launched(backend, "attention", cache_bytes_of(c, i, s));
    return ESP_OK;
}

/* Does steps 7 and 8 of layer `i`. */
template <typename T, typename A>
static int add_mlp(struct esp_cuda_cache *c, int i, int rows, enum ready *ready)
{
    const struct esp_cuda_exchange active = {ESP_RANK_MLP, rows, false, false,
                                             ESP_CUDA_NO_STATE};
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (status == ESP_OK)
            status = activate<T>(r, &r->held->mlp, mlp_input(r), *ready == HALF, rows); /* 7 */
    }
    esp_cuda_launched(backend, "gate and up",
                      bytes_of(c->held->mlp.gate) + bytes_of(c->held->mlp.up));
    if (status == ESP_OK)
        status = esp_cuda_share(c, &active);
    if (status == ESP_OK)
        status = add<T, A>(c, ESP_RANK_DOWN, i, rows, ready); /* 8 */
    esp_cuda_launched(backend, "down", bytes_of(c->held->mlp.down));
    return status;
}

/* Runs a layer. On entry, *ready says how much of the norm before the layer has been computed.
 * On return, it says how much of the norm after the layer has been computed. */
template <typename T, typename A>
static int run_layer(struct esp_cuda_cache *c, int i, const struct esp_cuda_shape *s,
                     enum ready *ready)
{
    const struct esp_cuda_exchange attended = {ESP_RANK_ATTENTION, s->rows, false, false,
                                               ESP_CUDA_NO_STATE};
    const struct esp_layer *of = &esp_cuda_desc_of(c)->layer[i];
    const bool mixes = of->mixer != ESP_MIXER_NONE;
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (status == ESP_OK)
            status = mix<T, A>(r, i, s, *ready);
    }
    if (status == ESP_OK && mixes)
        status = esp_cuda_share(c, &attended);
    if (status == ESP_OK && mixes)
        status = add<T, A>(c, ESP_RANK_OUTPUT, i, s->rows, ready); /* 5 */
    if (mixes)
        esp_cuda_launched(esp_cuda_backend_of(c), "output", bytes_of(c->held->output));
    if (status < 0 || !esp_layer_has_mlp(of))
        return status;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        struct esp_cuda_norm norm2;
        if (mixes && *ready == NOTHING && find_next(r, i, ESP_RANK_OUTPUT, &norm2)) { /* 6 */
            esp_cuda_norms<A>(r, &norm2, 1, s->rows);
            esp_cuda_launched(esp_cuda_backend_of(r), "norm", 0);
        }
    }
    if (!c->held->router)
        return add_mlp<T, A>(c, i, s->rows, ready);
    status = add_experts<T, A>(c, i, s->rows, ready);
    esp_cuda_launched(esp_cuda_backend_of(c), "experts", 0);
    return status;
}

/* Computes the input of the first layer on one GPU. */
template <typename T, typename A>
static int embed(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    esp_cuda_embed<T, A>(c, s->fc, s->rows);
    esp_cuda_launched(esp_cuda_backend_of(c), "embedding", 0);
    const int status = esp_cuda_stream_begin(w->stream);
    return status == ESP_OK && s->fc
               ? to_floats<T>(c, &w->fc, c->joined, c->joined_width, c->x, c->hidden, s->rows)
               : status;
}

/* Computes what follows the last layer: the final norm, the logits and, in a draft step,
 * softmax and top-k. */
template <typename T, typename A>
static int finish(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
{
    struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if ((r == c && s->states) || (s->head_rows > 0 && (r == c || r->own_logits))) {
            esp_cuda_norm_final<A>(r, s->rows);
            esp_cuda_launched(esp_cuda_backend_of(r), "norm", 0);
        }
    }
    esp_cuda_enter_rank(c);
    if (s->head_rows > 0) {
        status = head<T>(c, s);
        esp_cuda_launched(backend, "head", bytes_of(esp_cuda_weights_of(c)->head));
    }
    if (status == ESP_OK && s->step) {
        esp_cuda_step_softmax(c, s->rows);
        esp_cuda_step_top_k(c, s->rows);
    }
    return status;
}

/* Runs a pass. A: the type of activations, which is T, or float in a model with quantised
 * weights. */
template <typename T, typename A>
static int run(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
{
    int status = ESP_OK;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        if (status == ESP_OK)
            status = embed<T, A>(r, s);
    }
    enum ready ready = NOTHING;
    for (int i = 0; i < esp_cuda_desc_of(c)->layers && status == ESP_OK; i++) {
        for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
            if (status == ESP_OK)
                status = esp_cuda_stream_hold(esp_cuda_weights_of(r), i, &r->held);
        }
        if (status == ESP_OK)
            status = run_layer<T, A>(c, i, s, &ready);
        for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
            if (status == ESP_OK)
                status = esp_cuda_stream_release(esp_cuda_weights_of(r), i);
        }
    }
    esp_cuda_enter_rank(c);
    if (status == ESP_OK)
        status = finish<T, A>(c, s);
    return status < 0 ? status
                      : esp_cuda_launch_status(esp_cuda_backend_of(c),
                                               "the kernels of a forward pass");
}

int esp_cuda_run_layers(struct esp_cuda_cache *c, const struct esp_cuda_shape *s)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    if (w->blocks)
        return w->half ? run<esp_f16, float>(c, s) : run<esp_bf16, float>(c, s);
    return w->half ? run<esp_f16, esp_f16>(c, s) : run<esp_bf16, esp_bf16>(c, s);
}

/* ------------------------------------------------------------------ states without a pass */

template <typename T> static int run_fold(struct esp_cuda_cache *c)
{
    struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    int status = esp_cuda_stream_begin(w->stream);
    for (int i = 0; i < w->base.desc->layers && status == ESP_OK; i++) {
        const enum esp_mixer mixer = w->base.desc->layer[i].mixer;
        const struct esp_cuda_layer *layer = NULL;
        status = esp_cuda_stream_hold(w, i, &layer);
        if (status == ESP_OK && esp_recurs(mixer))
            esp_cuda_mix<T>(c, layer, i, 0);
        if (status == ESP_OK)
            status = esp_cuda_stream_release(w, i);
    }
    return status < 0 ? status
                      : esp_cuda_launch_status(esp_cuda_backend_of(c), "updating the states");
}

int esp_cuda_run_states(struct esp_cuda_cache *c)
{
    return esp_cuda_weights_of(c)->half ? run_fold<esp_f16>(c) : run_fold<esp_bf16>(c);
}

/* ------------------------------------------------------------------ algorithms */

/* Chooses cuBLASLt's algorithms for the products of layer `i` in a pass of `rows` rows. */
static int choose_for(struct esp_cuda_cache *c, int i, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const struct esp_cuda_layer *layer = &w->layer[i];
    const struct esp_cuda_mlp *mlp = layer->router ? &layer->shared : &layer->mlp;
    const struct esp_cuda_product shapes[] = {
        floats(&layer->inputs, c->normed, c->hidden, c->inputs, c->inputs_width),
        added(c, layer, i, ESP_RANK_OUTPUT),
        activated(c, mlp, c->normed, false),
        added(c, layer, i, ESP_RANK_DOWN),
        floats(&w->fc, c->joined, c->joined_width, w->fc.data ? c->x : NULL, c->hidden),
        floats(&w->head, c->normed, c->hidden, c->outputs, c->outputs_width),
    };
    for (const struct esp_cuda_product &shape : shapes) {
        if (!shape.w->data || (!shape.y && !shape.out) ||
            shape.w->count > 1) /* the layer has no such product for cuBLASLt */
            continue;
        const struct esp_cuda_lt_product lt = lt_product(c, &shape, rows);
        const int status = esp_cuda_lt_choose(esp_cuda_backend_of(c), &lt);
        if (status < 0)
            return status;
    }
    return ESP_OK;
}

int esp_cuda_choose_algorithms(struct esp_cuda_cache *c)
{
    int status = ESP_OK;
    for (int i = 0; i < esp_cuda_desc_of(c)->layers; i++)
        for (int rows = ESP_CUDA_OWN_ROWS + 1;
             rows <= c->max_batch + LT_STEP - 1 && status == ESP_OK; rows += LT_STEP)
            status = choose_for(c, i, rows);
    return status;
}
