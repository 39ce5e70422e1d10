/* weights.c - loads and packs a model's matrices for the matrix product.
 *
 * The file stores a matrix row by row, but the product needs the weights of 32 outputs next to
 * each other (pack.c). Everything is stored in one block of memory, in the order in which a
 * forward pass reads it. One walk over the model computes the size of the block, and a second
 * walk fills it. The threads read 32 rows each and pack them while they are in the processor's
 * caches. So loading takes little longer than reading, and needs no memory except for the
 * weights. Matrices keep their dtype; norm weights and biases become float32. After loading,
 * nothing depends on the file, unless there is a memory limit. With a limit, some layers are
 * not loaded but read again for every pass (stream.c).
 */
#include "kernels/cpu/cpu.h"

#include "kernels/status.h"
#include "kernels/model_desc.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 16 << 20 };

/* ------------------------------------------------------------------ the walk over the model */

struct packer {
    char *memory; /* NULL while sizes are measured */
    size_t used, total;
    bool overflow;
    esp_progress *progress;
    void *user;
    struct esp_pool *pool;
    int threads;
    bool pairs;                            /* BF16 matrices are packed for tiles */
    bool any_pairs, any_blocks, any_small; /* any_small: weights of fewer than 8 bits */
    unsigned block_types;                  /* bit t is set if a matrix has quantised type t */
    char *stored;                          /* (threads, room) bytes: rows as the file stores
                                            * them */
    size_t room;
    /* The following members are used only with a memory limit. */
    struct esp_cpu_stream *stream;
    int layer;            /* the current layer, or -1 */
    bool telling;         /* true while matrices are added to the stream */
    size_t packing_bytes; /* memory that packing streamed matrices needs */

    int together; /* number of panels of a transposed matrix that are read together */
    const struct esp_rank_plan *plan; /* NULL means that this rank has the whole model */
    const struct esp_model_desc *desc;
    int rank;
    int status; /* the first failure; nothing more is packed after it */
    char *err;
    size_t errlen;
};

static void *take(struct packer *p, size_t count, size_t size)
{
    size_t bytes, start = p->used;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)63, &bytes) ||
        __builtin_add_overflow(start, bytes & ~(size_t)63, &p->used))
        p->overflow = true;
    return p->memory ? p->memory + start : NULL;
}

static const float *pack_vector(struct packer *p, const struct esp_tensor *t)
{
    if (!t->data)
        return NULL;
    float *values = take(p, esp_cpu_pad(t->rows, ESP_PANEL), sizeof *values);
    if (values)
        esp_tensor_read_rows(t, 0, t->rows, values);
    return values;
}

struct packing {
    const struct packer *packer;
    const struct esp_packed *w;
    const struct esp_tensor *t;
    char *copy;
    int parts;
};

static void pack_part(void *arg, int part, int thread)
{
    const struct packing *p = arg;
    char *stored = p->packer->stored + (size_t)thread * p->packer->room;
    int begin, end;
    esp_cpu_share(p->w->panels, part, p->parts, &begin, &end);
    const size_t row_bytes = esp_dtype_row_bytes(p->t->dtype, p->t->columns);
    const int most = p->t->transposed > 0 ? p->packer->together : 1;
    for (int panel = begin, n; panel < end; panel += n) {
        n = end - panel < most ? end - panel : most;
        const int first = panel * ESP_PANEL, left = p->w->rows - first;
        esp_tensor_copy_rows(p->t, first, left < n * ESP_PANEL ? left : n * ESP_PANEL, stored);
        for (int i = 0; i < n; i++)
            esp_cpu_pack(p->w, panel + i, stored + (size_t)(i * ESP_PANEL) * row_bytes);
    }
}

static void copy_part(void *arg, int part, int thread)
{
    const struct packing *p = arg;
    int begin, end;
    (void)thread;
    esp_cpu_share(p->t->rows, part, p->parts, &begin, &end);
    esp_tensor_copy_rows(p->t, begin, end - begin,
                         p->copy +
                             (size_t)begin * esp_dtype_row_bytes(p->t->dtype, p->t->columns));
}

/* Packs an embedding. A large embedding that is also the head is not stored twice: its rows are
 * gathered from the head's panels, in which a row's numbers are scattered. */
static void pack_embedding(struct packer *p, struct esp_tensor *out, const struct esp_tensor *t,
                           const struct esp_tensor *head)
{
    const size_t row_bytes = esp_dtype_row_bytes(t->dtype, t->columns);
    *out = (struct esp_tensor){.dtype = t->dtype,
                               .rows = t->rows,
                               .columns = t->columns,
                               .block = t->rows,
                               .stride = t->rows};
    if (!t->data ||
        (head && esp_tensor_same(t, head) && (double)t->rows * (double)row_bytes > LARGE))
        return;
    char *data = take(p, (size_t)t->rows, row_bytes);
    out->data = data;
    struct packing packing = {.packer = p, .t = t, .copy = data};
    packing.parts = esp_pool_parts(p->pool, t->rows, p->threads);
    if (data)
        esp_pool_run(p->pool, packing.parts, copy_part, &packing);
}

static void note_kind(struct packer *p, const struct esp_packed *w)
{
    const bool quantised = esp_dtype_quantised(w->dtype);
    p->any_pairs |= w->pairs;
    p->any_blocks |= quantised;
    p->any_small |= quantised && w->dtype != ESP_Q8_0;
    p->block_types |= quantised ? 1u << w->dtype : 0;
}

static void pack_matrix(struct packer *p, struct esp_packed *w, const struct esp_tensor *t,
                        const struct esp_tensor *bias)
{
    size_t outputs = esp_cpu_pad(t->rows, ESP_PANEL);
    if (p->status < 0)
        return;
    w->dtype = t->dtype;
    w->rows = t->rows;
    w->columns = t->columns;
    w->panels = (int)(outputs / ESP_PANEL);
    w->pairs = p->pairs && t->dtype == ESP_BF16;
    note_kind(p, w);
    if (t->rows == 0) /* other ranks have all of its rows */
        return;
    const bool streamed = p->layer >= 0 && esp_cpu_stream_has(p->stream, p->layer);
    if (p->telling && p->layer >= 0) {
        p->status = esp_cpu_stream_add(p->stream, p->layer, t, &w->stored, p->err, p->errlen);
        return;
    }
    if (!streamed && p->memory)
        w->stored = NULL;
    if (streamed && esp_cpu_stored_room(w) > p->packing_bytes)
        p->packing_bytes = esp_cpu_stored_room(w);
    w->data = streamed ? NULL : take(p, (size_t)w->panels, esp_cpu_panel_bytes(w));
    float *biases = take(p, outputs, sizeof *biases);
    w->bias = biases;
    if (!p->memory)
        return;
    if (bias && bias->data)
        esp_tensor_read_rows(bias, 0, t->rows, biases);
    struct packing packing = {p, w, t, NULL, esp_pool_parts(p->pool, w->panels, p->threads)};
    if (streamed)
        return;
    esp_pool_run(p->pool, packing.parts, pack_part, &packing);
    if (p->progress && !p->progress(p->user, "weights", p->used, p->total))
        p->status = esp_fail(p->err, p->errlen, ESP_E_CANCELLED, "loading was cancelled");
}

/* Returns whether this rank computes the matrices of a kind in the current layer. Layer -1 is
 * the head. Whole layers may belong to another rank. A head that is not divided belongs to rank
 * 0. */
static bool is_computed_here(const struct packer *p, enum esp_rank_kind kind)
{
    if (!p->plan || esp_rank_plan_divides(p->plan, kind))
        return true;
    if (p->layer < 0)
        return p->rank == 0;
    return !p->plan->by_layers || esp_rank_plan_owner(p->plan, p->layer) == p->rank;
}

/* Packs only the rows of a matrix that give the outputs of this rank. `each` is the number of
 * outputs in a unit of the plan, such as a key/value head. */
static void pack_part_of(struct packer *p, struct esp_packed *w, const struct esp_tensor *t,
                         const struct esp_tensor *bias, enum esp_rank_kind kind, int each)
{
    struct esp_rank_part part = esp_rank_plan_part(p->plan, p->desc, kind, p->rank);
    if (!is_computed_here(p, kind))
        part.end = part.begin;
    const int count = (part.end - part.begin) * each;
    const struct esp_tensor own = esp_tensor_slice(t, part.begin * each, count);
    struct esp_tensor own_bias = {.data = NULL};
    if (bias && bias->data)
        own_bias = esp_tensor_slice(bias, part.begin * each, count);
    w->first = part.begin * each;
    pack_matrix(p, w, &own, &own_bias);
}

#define PACK(name, kind, each)                                                                 \
    pack_part_of(p, &to->name, &from->name, &from->name##_bias, ESP_RANK_##kind, each)

static void pack_experts(struct packer *p, struct esp_cpu_expert *to,
                         const struct esp_expert *from, int count)
{
    for (int i = 0; i < count; i++, to++, from++) {
        if (esp_gated(p->desc->activation))
            PACK(gate, EXPERTS, 1);
        PACK(up, EXPERTS, 1);
        PACK(down, DOWN, 1);
    }
}

static void pack_attention(struct packer *p, struct esp_cpu_layer *to,
                           const struct esp_layer *from)
{
    const struct esp_model_desc *d = p->desc;
    PACK(query, ATTENTION, d->heads / d->kv_heads * d->head_dim);
    PACK(key, ATTENTION, d->head_dim);
    PACK(value, ATTENTION, d->head_dim);
    if (from->attention_gate.data)
        pack_part_of(p, &to->attention_gate, &from->attention_gate, NULL, ESP_RANK_ATTENTION,
                     d->heads / d->kv_heads * d->head_dim);
    PACK(output, OUTPUT, 1);
}

/* Packs the weights of a convolution as floats, with a row for each token that the convolution
 * reads. */
static const float *pack_taps(struct packer *p, const struct esp_tensor *t)
{
    const size_t channels = esp_cpu_pad(t->rows, ESP_PANEL), kernel = (size_t)t->columns;
    float *taps = take(p, kernel * channels, sizeof *taps), row[ESP_MOST_TAPS];
    for (int i = 0; taps && i < t->rows; i++) {
        esp_tensor_read_row(t, i, row);
        for (size_t k = 0; k < kernel; k++)
            taps[k * channels + (size_t)i] = row[k];
    }
    return taps;
}

static void pack_mixer(struct packer *p, struct esp_cpu_layer *to, const struct esp_layer *from)
{
    to->conv = pack_taps(p, &from->conv);
    PACK(conv_in, STATES, 1);
    PACK(out_gate, GATES, 1);
    if (from->mixer == ESP_MIXER_CONV)
        PACK(in_gate, STATES, 1);
    if (from->mixer == ESP_MIXER_DELTA)
        pack_matrix(p, &to->write, &from->write, NULL);
    if (from->mixer != ESP_MIXER_CONV)
        pack_matrix(p, &to->decay, &from->decay, NULL);
    PACK(mixed, OUTPUT, 1);
}

static void pack_layer(struct packer *p, struct esp_cpu_layer *to, const struct esp_layer *from,
                       const struct esp_model_desc *d)
{
#define X(name) to->name = pack_vector(p, &from->name);
    ESP_LAYER_VECTORS(X)
#undef X
    if (from->mixer == ESP_MIXER_ATTENTION)
        pack_attention(p, to, from);
    else if (esp_recurs(from->mixer))
        pack_mixer(p, to, from);
    if (from->router.data) {
        pack_matrix(p, &to->router, &from->router, &from->router_bias);
        pack_experts(p, to->expert, from->expert, d->experts);
        if (from->shared_gate.data)
            pack_matrix(p, &to->shared_gate, &from->shared_gate, NULL);
    }
    if (!from->up.data)
        return;
    if (esp_gated(d->activation))
        PACK(gate, MLP, 1);
    PACK(up, MLP, 1);
    PACK(down, DOWN, 1);
}

/* Returns whether the heads of both models are divided in the same way. */
static bool lends_head(const struct esp_cpu_weights *lender, const struct esp_cpu_weights *w)
{
    return lender->plan && w->plan ? memcmp(lender->plan, w->plan, sizeof *w->plan) == 0
                                   : !lender->plan && !w->plan;
}

/* Packs the embedding, which only rank 0 needs, and the head. Skips what the lender provides.
 */
static void pack_ends(struct packer *p, struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->base.desc;
    const struct esp_cpu_weights *lender = (const struct esp_cpu_weights *)d->lender;
    if (esp_model_desc_lent(d, &d->embedding)) {
        w->embedding = lender->embedding;
        w->embedding_head = lender->embedding_head;
    } else if (p->rank == 0) {
        const bool own_head = !esp_rank_plan_divides(p->plan, ESP_RANK_HEAD);
        pack_embedding(p, &w->embedding, &d->embedding, own_head ? &d->head : NULL);
        w->embedding_head = &w->head;
    }
    if (p->rank == 0)
        pack_embedding(p, &w->position_embedding, &d->position_embedding, NULL);
    w->norm_final = pack_vector(p, &d->norm_final);
    w->norm_final_bias = pack_vector(p, &d->norm_final_bias);
    w->norm_embedding = pack_vector(p, &d->norm_embedding);
    w->norm_input = pack_vector(p, &d->norm_input);
    for (int i = 0; i < d->fc_norms; i++)
        w->norm_fc[i] = pack_vector(p, &d->norm_fc[i]);
    if (esp_model_desc_lent(d, &d->head) && lends_head(lender, w)) {
        w->head = lender->head;
        note_kind(p, &w->head);
    } else {
        pack_part_of(p, &w->head, &d->head, NULL, ESP_RANK_HEAD, 1);
    }
}

static int pack_model(struct packer *p, struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->base.desc;
    p->used = p->packing_bytes = 0;
    p->layer = -1;
    if (d->reads != ESP_READS_TOKENS)
        pack_matrix(p, &w->fc, &d->fc, &d->fc_bias);
    for (p->layer = 0; p->layer < d->layers; p->layer++)
        pack_layer(p, &w->layer[p->layer], &d->layer[p->layer], d);
    p->layer = -1;
    pack_ends(p, w);
    return p->status;
}

void esp_cpu_embedding(const struct esp_cpu_weights *w, int32_t token, float *out)
{
    if (w->embedding.data)
        esp_tensor_read_row(&w->embedding, token, out);
    else
        esp_cpu_packed_row(w->embedding_head, token, out);
}

/* ------------------------------------------------------------- weights under a memory limit */

/* Returns how many bytes the model needs with `count` streamed layers: weights, buffers and
 * memory for packing. */
static size_t measure(struct packer *p, struct esp_cpu_weights *w, int count)
{
    esp_cpu_stream_choose(p->stream, count);
    pack_model(p, w);
    return p->used + esp_cpu_stream_buffer_bytes(p->stream) +
           (size_t)p->threads * p->packing_bytes;
}

static size_t in_mebibytes(size_t bytes)
{
    return (bytes >> 20) + 1;
}

/* Finds the smallest number of streamed layers with which all other layers fit in memory. Must
 * be called after p->used was measured with all layers in memory. */
static int fit(struct packer *p, struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->base.desc;
    const struct esp_memory_limit *limit = &d->limit;
    const size_t left = esp_memory_limit_left(limit);
    size_t bytes = p->used, least = SIZE_MAX;
    if (bytes <= left)
        return 0;
    w->stream = p->stream = esp_cpu_stream_open(d->layers);
    if (!w->stream)
        return esp_fail(p->err, p->errlen, ESP_E_MEMORY,
                        "not enough memory for the model's layers");
    p->telling = true;
    pack_model(p, w);
    p->telling = false;
    if (p->status == 0)
        p->status = esp_cpu_stream_plan(p->stream, p->err, p->errlen);
    for (int count = 1; count <= d->layers && bytes > left && p->status == 0; count++) {
        bytes = measure(p, w, count);
        least = bytes < least ? bytes : least;
    }
    if (p->status == 0 && bytes > left)
        return esp_fail(p->err, p->errlen, ESP_E_MEMORY,
                        "%zuM of memory are not enough: %zuM are needed. The embedding, the "
                        "head and room for two layers take %zuM. The draft model, the KV "
                        "caches and the trees take %zuM; a shorter --context and smaller trees "
                        "(--max-nodes) need less",
                        limit->bytes >> 20, in_mebibytes(least + limit->others),
                        in_mebibytes(least), in_mebibytes(limit->others));
    return p->status;
}

/* Starts streaming. Must be called after the weights have been read. */
static int start_stream(struct packer *p, struct esp_cpu_weights *w)
{
    if (!w->stream)
        return 0;
    w->packing_bytes = esp_cpu_pad((int)p->packing_bytes, 64);
    w->packing = esp_cpu_alloc((size_t)p->threads, w->packing_bytes);
    if (!w->packing)
        return esp_fail(p->err, p->errlen, ESP_E_MEMORY,
                        "not enough memory for packing %.1f MB of weights",
                        (double)p->packing_bytes / 1e6);
    w->base.bytes +=
        esp_cpu_stream_buffer_bytes(w->stream) + (size_t)p->threads * w->packing_bytes;
    return esp_cpu_stream_start(w->stream, p->err, p->errlen);
}

/* ------------------------------------------------------------------ open and close */

/* Returns the number of multiplications of a layer's mixer for one token, divided by the
 * hidden width. */
static double mixer_work(const struct esp_model_desc *d, enum esp_mixer mixer, double attention)
{
    if (mixer == ESP_MIXER_NONE)
        return 0;
    return mixer == ESP_MIXER_ATTENTION
               ? attention
               : (mixer == ESP_MIXER_CONV ? 2.0 : 1.0) * esp_conv_width(d, mixer) +
                     2.0 * esp_mixed_width(d, mixer);
}

/* Numbers the layers with attention, and separately the recurrent layers. */
static void place_layers(struct esp_cpu_layer *layer, const struct esp_model_desc *d)
{
    int attentions = 0, recurrent = 0;
    for (int i = 0; i < d->layers; i++)
        layer[i].place = d->layer[i].mixer == ESP_MIXER_ATTENTION ? attentions++
                         : esp_recurs(d->layer[i].mixer)          ? recurrent++
                                                                  : -1;
}

static void count_work(struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->base.desc;
    double q = (double)d->heads * d->head_dim, kv = (double)d->kv_heads * d->head_dim;
    const double matrices = esp_gated(d->activation) ? 3 : 2, mlp = matrices * d->ffn;
    const double mixture = d->experts + matrices * d->experts_used * d->expert_ffn;
    for (int i = 0; i < d->layers; i++)
        w->work_layers +=
            (mixer_work(d, d->layer[i].mixer, 2.0 * q + 2.0 * kv) +
             (d->layer[i].router.data ? mixture : 0) + (d->layer[i].up.data ? mlp : 0)) *
            d->hidden;
    w->work_layers += (double)d->fc.rows * d->fc.columns;
    if (d->reads == ESP_READS_EAGLE3)
        w->work_layers += (q + 2.0 * kv) * d->hidden;
    w->work_head = (double)d->outputs * d->hidden;
}

/* Returns how many bytes the rows of the widest panel can take. */
static size_t panel_room(const struct esp_model_desc *d)
{
    return (size_t)esp_model_desc_widest(d) * ESP_PANEL * sizeof(float);
}

/* Returns how many panels of a transposed matrix to read together. Rows of such a matrix are
 * scattered over the file. The more rows are read together, the longer are the contiguous
 * pieces. */
static int panels_together(const struct esp_model_desc *d)
{
    enum { MOST = 16 };
    const size_t fit = ((size_t)8 << 20) / panel_room(d);
    const struct esp_expert *expert = d->layer[0].expert;
    if (esp_layer_matrix(&d->layer[0])->transposed == 0 && !(expert && expert->up.transposed))
        return 1;
    return fit < 1 ? 1 : fit > MOST ? MOST : (int)fit;
}

static bool make_experts(struct esp_cpu_layer *layer, const struct esp_model_desc *d)
{
    for (int i = 0; i < d->layers; i++)
        if (d->layer[i].router.data &&
            !(layer[i].expert = calloc((size_t)d->experts, sizeof *layer[i].expert)))
            return false;
    return true;
}

static void free_layers(struct esp_cpu_layer *layer, const struct esp_model_desc *d)
{
    for (int i = 0; layer && i < d->layers; i++)
        free(layer[i].expert);
    free(layer);
}

int esp_cpu_weights_load(struct esp_weights **weights, struct esp_backend *backend,
                         const struct esp_model_desc *desc, const struct esp_rank_plan *plan,
                         esp_progress *progress, void *user, char *err, size_t errlen)
{
    const struct esp_ranks *ranks = ((struct esp_cpu_backend *)backend)->ranks;
    *weights = NULL;
    int status = esp_model_desc_check(desc, err, errlen);
    if (status < 0)
        return status;
    struct esp_cpu_weights *w = calloc(1, sizeof *w);
    struct esp_cpu_layer *layer = calloc((size_t)desc->layers, sizeof *layer);
    if (!w || !layer || !make_experts(layer, desc)) {
        free_layers(layer, desc);
        free(w);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the model's layers");
    }
    w->base.backend = backend;
    w->base.desc = desc;
    w->layer = layer;
    w->plan = plan;
    w->rank = plan ? ranks->rank : 0;
    place_layers(layer, desc);
    count_work(w);

    struct packer p = {.err = err, .errlen = errlen, .progress = progress, .user = user};
    p.desc = desc;
    p.plan = plan;
    p.rank = w->rank;
    p.pool = ((struct esp_cpu_backend *)backend)->pool;
    p.threads = ((struct esp_cpu_backend *)backend)->threads;
    p.pairs = ((struct esp_cpu_backend *)backend)->isa->pairs;
    p.together = panels_together(desc);
    p.room = panel_room(desc) * (size_t)p.together;
    pack_model(&p, w); /* only adds up sizes, because no memory is allocated yet */
    status = fit(&p, w);
    if (status == 0) {
        w->base.bytes = p.total = p.used;
        w->memory = p.memory = p.overflow ? NULL : esp_cpu_alloc(p.total, 1);
        p.stored = esp_cpu_alloc((size_t)p.threads, p.room);
        if (!w->memory || !p.stored)
            status =
                esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %.1f MB of weights",
                         (double)p.total / 1e6);
    }
    if (status == 0) {
        esp_cpu_use_huge_pages(w->memory, w->base.bytes);
        status = pack_model(&p, w);
    }
    esp_cpu_free(p.stored);
    if (status == 0)
        status = start_stream(&p, w);
    if (status < 0) {
        esp_cpu_weights_drop(&w->base);
        return status;
    }
    w->split = p.any_pairs;
    w->cut = p.any_blocks;
    w->block_types = p.block_types;
    w->cut_bytes = p.any_small && !((struct esp_cpu_backend *)backend)->exact;
    *weights = &w->base;
    return 0;
}

void esp_cpu_weights_drop(struct esp_weights *weights)
{
    struct esp_cpu_weights *w = (struct esp_cpu_weights *)weights;
    if (!w)
        return;
    esp_cpu_stream_close(w->stream);
    esp_cpu_free(w->packing);
    esp_cpu_free(w->memory);
    free_layers(w->layer, w->base.desc);
    free(w);
}

bool esp_cpu_weights_streamed(const struct esp_weights *weights, struct esp_streamed *streamed)
{
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)weights;
    if (!w->stream)
        return false;
    esp_cpu_stream_count(w->stream, streamed);
    streamed->resident_bytes = w->base.bytes;
    return true;
}
