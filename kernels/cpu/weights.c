/* weights.c - a model's matrices, repacked for the matrix product.
 *
 * The file keeps a matrix row by row; the product wants, for one input after the other, the
 * weights of 32 outputs side by side (struct esp_packed). Everything goes into one block of
 * memory in the order in which a forward pass reads it: one walk over the model measures the
 * block, a second one fills it. Matrices of floats keep their dtype; quantised matrices, norm
 * weights and biases become float32. The embedding is copied as it is. After that nothing
 * depends on the file.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/status.h"
#include "kernels/model_desc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COLUMN_TILE = 64, HUGE_PAGE = 2 << 20 };

/* ------------------------------------------------------------------ the walk */

struct packer {
    char *memory; /* NULL while measuring */
    size_t used, total;
    bool overflow;
    esp_progress *progress;
    void *user;
    struct esp_pool *pool;
    int threads;
    bool pairs; /* the instruction set wants them */
    bool any_pairs;
    char *stored; /* (threads, room) bytes for rows as they are stored */
    size_t room;
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

/* Place of input c of output j in a panel, in weights. BF16: in its half of a 32-bit word;
 * packed for tiles: blocks of 32 inputs, then two tiles of 16 outputs, then (pair of inputs,
 * output, 2). */
static size_t place(const struct esp_packed *w, int j, int c)
{
    size_t row = (size_t)c * ESP_PANEL;
    if (w->pairs)
        return (size_t)(c / 32) * 1024 + (size_t)(j / ESP_LANES) * 512 +
               (size_t)(c % 32 / 2) * 32 + (size_t)(j % ESP_LANES) * 2 + (size_t)(c % 2);
    if (w->dtype != ESP_BF16)
        return row + (size_t)j;
    return row + (size_t)(j < ESP_LANES ? 2 * j : 2 * (j - ESP_LANES) + 1);
}

static size_t packed_columns(const struct esp_packed *w)
{
    return w->pairs ? esp_cpu_pad(w->columns, 32) : (size_t)w->columns;
}

/* `stored` has room for the rows of a panel as they are stored. */
static void pack_panel(const struct esp_packed *w, const struct esp_tensor *t, int panel,
                       char *stored)
{
    const size_t size = esp_dtype_block_bytes(w->dtype);
    char *out = (char *)w->data + (size_t)panel * packed_columns(w) * ESP_PANEL * size;
    int first = panel * ESP_PANEL;
    int rows = w->rows - first < ESP_PANEL ? w->rows - first : ESP_PANEL;
    if (w->dtype == t->dtype)
        esp_tensor_copy_rows(t, first, rows, stored);
    else
        esp_tensor_read_rows(t, first, rows, (float *)stored);
    for (int begin = 0; begin < w->columns; begin += COLUMN_TILE) {
        int end = begin + COLUMN_TILE < w->columns ? begin + COLUMN_TILE : w->columns;
        for (int j = 0; j < rows; j++) {
            const char *from = stored + (size_t)j * (size_t)w->columns * size;
            for (int c = begin; c < end; c++)
                memcpy(out + place(w, j, c) * size, from + (size_t)c * size, size);
        }
    }
}

struct packing {
    const struct packer *packer;
    const struct esp_packed *w;
    const struct esp_tensor *t;
    int parts;
};

static void pack_part(void *arg, int part, int thread)
{
    const struct packing *p = arg;
    int begin, end;
    esp_cpu_share(p->w->panels, part, p->parts, &begin, &end);
    for (int panel = begin; panel < end; panel++)
        pack_panel(p->w, p->t, panel, p->packer->stored + (size_t)thread * p->packer->room);
}

static void pack_embedding(struct packer *p, struct esp_tensor *out, const struct esp_tensor *t)
{
    char *data = take(p, (size_t)t->rows, esp_dtype_row_bytes(t->dtype, t->columns));
    *out = (struct esp_tensor){.data = data,
                               .dtype = t->dtype,
                               .rows = t->rows,
                               .columns = t->columns,
                               .block = t->rows,
                               .stride = t->rows};
    if (data)
        esp_tensor_copy_rows(t, 0, t->rows, data);
}

static int pack_matrix(struct packer *p, struct esp_packed *w, const struct esp_tensor *t,
                       const struct esp_tensor *bias)
{
    size_t outputs = esp_cpu_pad(t->rows, ESP_PANEL);
    w->dtype = esp_dtype_quantised(t->dtype) ? ESP_F32 : t->dtype;
    w->rows = t->rows;
    w->columns = t->columns;
    w->panels = (int)(outputs / ESP_PANEL);
    w->pairs = p->pairs && t->dtype == ESP_BF16;
    p->any_pairs |= w->pairs;
    w->data = take(p, outputs * packed_columns(w), esp_dtype_block_bytes(w->dtype));
    float *biases = take(p, outputs, sizeof *biases);
    w->bias = biases;
    if (!p->memory)
        return 0;
    if (bias && bias->data)
        esp_tensor_read_rows(bias, 0, t->rows, biases);
    struct packing packing = {p, w, t, esp_cpu_parts(w->panels, p->threads)};
    esp_pool_run(p->pool, packing.parts, pack_part, &packing);
    if (p->progress && !p->progress(p->user, "weights", p->used, p->total))
        return esp_fail(p->err, p->errlen, ESP_E_CANCELLED, "loading was cancelled");
    return 0;
}

static int pack_layer(struct packer *p, struct esp_cpu_layer *out, const struct esp_layer *in,
                      const struct esp_model_desc *d)
{
    int status;
    out->norm1 = pack_vector(p, &in->norm1);
    out->norm1_bias = pack_vector(p, &in->norm1_bias);
    out->norm2 = pack_vector(p, &in->norm2);
    out->norm2_bias = pack_vector(p, &in->norm2_bias);
    out->query_norm = pack_vector(p, &in->query_norm);
    out->key_norm = pack_vector(p, &in->key_norm);
    if ((status = pack_matrix(p, &out->query, &in->query, &in->query_bias)) < 0 ||
        (status = pack_matrix(p, &out->key, &in->key, &in->key_bias)) < 0 ||
        (status = pack_matrix(p, &out->value, &in->value, &in->value_bias)) < 0 ||
        (status = pack_matrix(p, &out->output, &in->output, &in->output_bias)) < 0 ||
        (d->activation == ESP_SWIGLU &&
         (status = pack_matrix(p, &out->gate, &in->gate, &in->gate_bias)) < 0) ||
        (status = pack_matrix(p, &out->up, &in->up, &in->up_bias)) < 0)
        return status;
    return pack_matrix(p, &out->down, &in->down, &in->down_bias);
}

static bool is_same(const struct esp_tensor *a, const struct esp_tensor *b)
{
    return a->source == b->source && (a->source ? a->offset == b->offset : a->data == b->data);
}

/* The embedding and the head, unless they are the lender's. */
static int pack_ends(struct packer *p, struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->desc;
    const struct esp_cpu_weights *lender = (const struct esp_cpu_weights *)d->lender;
    if (lender && is_same(&d->embedding, &lender->desc->embedding))
        w->embedding = lender->embedding;
    else
        pack_embedding(p, &w->embedding, &d->embedding);
    w->norm_final = pack_vector(p, &d->norm_final);
    w->norm_final_bias = pack_vector(p, &d->norm_final_bias);
    w->norm_input = pack_vector(p, &d->norm_input);
    if (!lender || !is_same(&d->head, &lender->desc->head))
        return pack_matrix(p, &w->head, &d->head, NULL);
    w->head = lender->head;
    p->any_pairs |= w->head.pairs;
    return 0;
}

static int pack_model(struct packer *p, struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->desc;
    p->used = 0;
    int status = d->reads == ESP_READS_TOKENS ? 0 : pack_matrix(p, &w->fc, &d->fc, &d->fc_bias);
    if (status < 0)
        return status;
    for (int i = 0; i < d->layers; i++) {
        status = pack_layer(p, &w->layer[i], &d->layer[i], d);
        if (status < 0)
            return status;
    }
    return pack_ends(p, w);
}

/* ------------------------------------------------------------------ open and close */

static void count_work(struct esp_cpu_weights *w)
{
    const struct esp_model_desc *d = w->desc;
    double q = (double)d->heads * d->head_dim, kv = (double)d->kv_heads * d->head_dim;
    double mlp = (d->activation == ESP_SWIGLU ? 3.0 : 2.0) * d->ffn;
    w->work_layers = d->layers * (2.0 * q + 2.0 * kv + mlp) * d->hidden;
    w->work_layers += (double)d->fc.rows * d->fc.columns;
    if (d->reads == ESP_READS_EAGLE3)
        w->work_layers += (q + 2.0 * kv) * d->hidden;
    w->work_head = (double)d->outputs * d->hidden;
}

/* Room for the rows of the widest panel. */
static size_t panel_room(const struct esp_model_desc *d)
{
    int widest = d->hidden > d->ffn ? d->hidden : d->ffn;
    widest = widest > d->heads * d->head_dim ? widest : d->heads * d->head_dim;
    widest = widest > d->fc.columns ? widest : d->fc.columns;
    widest = widest > d->layer[0].query.columns ? widest : d->layer[0].query.columns;
    return (size_t)widest * ESP_PANEL * sizeof(float);
}

/* Large pages save the product most of its address translation misses. */
static void use_huge_pages(char *memory, size_t bytes)
{
    char *begin = memory + (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
    if (bytes >= 2 * HUGE_PAGE)
        madvise(begin, (bytes - (size_t)(begin - memory)) & ~(size_t)(HUGE_PAGE - 1),
                MADV_HUGEPAGE);
}

int esp_cpu_weights_open(struct esp_weights **weights, struct esp_backend *backend,
                         const struct esp_model_desc *desc, esp_progress *progress, void *user,
                         char *err, size_t errlen)
{
    *weights = NULL;
    int status = esp_model_desc_check(desc, err, errlen);
    if (status < 0)
        return status;
    struct esp_cpu_weights *w = calloc(1, sizeof *w);
    struct esp_cpu_layer *layer = calloc((size_t)desc->layers, sizeof *layer);
    if (!w || !layer) {
        free(w);
        free(layer);
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for the model's layers");
    }
    w->base.backend = backend;
    w->desc = desc;
    w->layer = layer;
    count_work(w);

    struct packer p = {.err = err, .errlen = errlen, .progress = progress, .user = user};
    p.pool = ((struct esp_cpu_backend *)backend)->pool;
    p.threads = ((struct esp_cpu_backend *)backend)->threads;
    p.pairs = ((struct esp_cpu_backend *)backend)->isa->pairs;
    p.room = panel_room(desc);
    status = pack_model(&p, w);
    if (status == 0) {
        w->bytes = p.total = p.used;
        w->memory = p.memory = p.overflow ? NULL : esp_cpu_alloc(p.total, 1);
        p.stored = esp_cpu_alloc((size_t)p.threads, p.room);
        if (!w->memory || !p.stored)
            status =
                esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory for %.1f MB of weights",
                         (double)p.total / 1e6);
    }
    if (status == 0) {
        use_huge_pages(w->memory, w->bytes);
        status = pack_model(&p, w);
    }
    esp_cpu_free(p.stored);
    if (status < 0) {
        esp_cpu_weights_close(&w->base);
        return status;
    }
    w->split = p.any_pairs;
    *weights = &w->base;
    return 0;
}

void esp_cpu_weights_close(struct esp_weights *weights)
{
    struct esp_cpu_weights *w = (struct esp_cpu_weights *)weights;
    if (!w)
        return;
    esp_cpu_free(w->memory);
    free(w->layer);
    free(w);
}

size_t esp_cpu_weights_bytes(const struct esp_weights *weights)
{
    return ((const struct esp_cpu_weights *)weights)->bytes;
}
