/* forward.c - one batch through the model.
 *
 * All threads run the whole pass together and meet at barriers: starting them once per pass
 * costs less than once per product. A product is shared out by panels of outputs, attention by
 * key/value heads. Small passes (a draft model) run on the calling thread alone, where no
 * barrier costs time.
 *
 * The steps of a layer, numbered below: 1 norm, 2 queries, keys and values, 3 rotation and
 * cache, 4 attention, 5 output added to the residual stream, 6 norm, 7 gate and up, 8 down
 * added. In the last layer, from step 4 on, only the rows whose logits are wanted go on.
 *
 * Invariant: how rows and threads are divided decides who computes a number, never how.
 */
#include "batch.h"
#include "cpu/cpu.h"
#include "model_desc.h"

#include <math.h>
#include <string.h>

struct pass {
    const struct esp_cpu_weights *w;
    const struct esp_model_desc *d;
    struct esp_cpu_cache *c;
    const struct esp_cpu_isa *isa;
    const struct esp_batch *batch;
    int wanted;
};

/* ------------------------------------------------------------------ pieces */

static void embed(const struct pass *p, struct esp_cpu_team t)
{
    const struct esp_batch *b = p->batch;
    const int half = p->d->rotary / 2;
    int begin, end;
    esp_cpu_share(b->rows, t.thread, t.threads, &begin, &end);
    for (int i = begin; i < end; i++) {
        esp_tensor_read_row(&p->d->embedding, b->tokens[i], p->c->x + (size_t)i * p->c->hidden);
        for (int j = 0; j < half; j++) {
            float angle = (float)b->positions[i] * p->d->inverse_frequency[j];
            p->c->cosine[(size_t)i * (size_t)half + (size_t)j] = cosf(angle);
            p->c->sine[(size_t)i * (size_t)half + (size_t)j] = sinf(angle);
        }
    }
}

/* Columns begin..end-1 of a vector are done. */
static void split(const struct pass *p, const struct esp_vectors *v, int row, int begin,
                  int end)
{
    if (p->w->split)
        p->isa->split(v, row, begin, end);
}

/* Normalises `rows` rows of x and returns where they are. A single row is done by every thread
 * for itself, which is cheaper than waiting for one of them. */
static struct esp_vectors normalise(const struct pass *p, struct esp_cpu_team t,
                                    struct esp_vectors out, int rows, const float *weight,
                                    const float *bias)
{
    const size_t width = p->c->hidden;
    int begin = 0, end = 1;
    if (rows == 1) {
        out = p->c->own_normed;
        out.x += (size_t)t.thread * width;
        if (p->w->split)
            out.parts = (char *)out.parts + (size_t)t.thread * esp_parts_bytes(1, width);
    } else {
        esp_cpu_share(rows, t.thread, t.threads, &begin, &end);
    }
    for (int i = begin; i < end; i++) {
        p->isa->norm(out.x + (size_t)i * width, p->c->x + (size_t)i * width, p->d->hidden,
                     weight, bias, p->d->norm, p->d->norm_epsilon);
        split(p, &out, i, 0, p->d->hidden);
    }
    if (rows > 1)
        esp_cpu_meet(t);
    return out;
}

/* This thread's part of several products of the same input, whose panels count as one row. */
static void multiply(const struct pass *p, struct esp_cpu_team t,
                     const struct esp_packed *const w[], const struct esp_product products[],
                     int count)
{
    int total = 0, begin, end, first = 0;
    for (int i = 0; i < count; i++)
        total += w[i]->panels;
    esp_cpu_share(total, t.thread, t.threads, &begin, &end);
    for (int i = 0; i < count; first += w[i++]->panels) {
        int from = begin > first ? begin - first : 0;
        int to = end - first < w[i]->panels ? end - first : w[i]->panels;
        if (from < to)
            p->isa->product(w[i], from, to, &products[i]);
    }
}

static void project(const struct pass *p, struct esp_cpu_team t,
                    const struct esp_cpu_layer *layer, struct esp_vectors x, int rows)
{
    const struct esp_cpu_cache *c = p->c;
    const struct esp_packed *w[] = {&layer->query, &layer->key, &layer->value};
    struct esp_product products[] = {
        {.in = x, .y = c->q, .y_stride = c->q_width, .rows = rows},
        {.in = x, .y = c->key, .y_stride = c->kv_width, .rows = rows},
        {.in = x, .y = c->value, .y_stride = c->kv_width, .rows = rows},
    };
    multiply(p, t, w, products, 3);
}

/* ------------------------------------------------------------------ attention */

/* Normalises a head, if the model does so, and rotates it. */
static void prepare_head(const struct pass *p, float *head, const float *norm, size_t angles)
{
    const struct esp_model_desc *d = p->d;
    if (norm)
        p->isa->norm_head(head, d->head_dim, norm, d->norm_epsilon);
    p->isa->rotate(head, d->rotary / 2, p->c->cosine + angles, p->c->sine + angles);
}

/* Rotates row `row` of the queries and keys of one key/value head; key and value join the
 * cache. */
static void append(const struct pass *p, int layer, int kv_head, int row)
{
    struct esp_cpu_cache *c = p->c;
    const struct esp_model_desc *d = p->d;
    const int half = d->rotary / 2, group = d->heads / d->kv_heads;
    const size_t head_dim = (size_t)d->head_dim, rows = (size_t)c->blocks * ESP_LANES;
    const size_t head = (size_t)(layer * d->kv_heads + kv_head);
    const size_t angles = (size_t)row * (size_t)half;
    const size_t at = (size_t)(p->batch->first + row);
    for (int i = 0; i < group; i++) {
        float *q = c->q + (size_t)row * c->q_width + (size_t)(kv_head * group + i) * head_dim;
        prepare_head(p, q, p->w->layer[layer].query_norm, angles);
        p->isa->scale(q, d->head_dim, 1.0f / sqrtf((float)d->head_dim));
    }
    float *key = c->key + (size_t)row * c->kv_width + (size_t)kv_head * head_dim;
    prepare_head(p, key, p->w->layer[layer].key_norm, angles);
    float *k = c->k + (head * rows + at / ESP_LANES * ESP_LANES) * head_dim + at % ESP_LANES;
    for (size_t i = 0; i < head_dim; i++)
        k[i * ESP_LANES] = key[i];
    memcpy(c->v + (head * rows + at) * c->v_stride,
           c->value + (size_t)row * c->kv_width + (size_t)kv_head * head_dim,
           head_dim * sizeof(float));
}

/* The cache rows beyond the prefix that batch row `row` sees, ascending. */
static int list_seen(const struct esp_batch *b, int row, int32_t *seen)
{
    const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
    int count = 0, words = (b->first - b->prefix + row) / 64 + 1;
    for (int i = 0; i < words; i++)
        for (uint64_t word = mask[i]; word; word &= word - 1)
            seen[count++] = b->prefix + 64 * i + __builtin_ctzll(word);
    return count;
}

/* Queries begin..end-1 of a key/value head; query i is head i % group of its group in the i /
 * group th row that goes on (`rows` names them, NULL: all). */
static void attend(const struct pass *p, struct esp_cpu_team t, int layer, int kv_head,
                   int begin, int end, const int32_t *rows)
{
    const struct esp_cpu_cache *c = p->c;
    const struct esp_batch *b = p->batch;
    const int group = p->d->heads / p->d->kv_heads;
    const size_t head_dim = (size_t)p->d->head_dim, capacity = (size_t)c->blocks * ESP_LANES;
    const size_t head = (size_t)(layer * p->d->kv_heads + kv_head);
    const size_t scratch = (size_t)t.thread * ESP_QUERIES * capacity;
    struct esp_attention a = {
        .head_dim = p->d->head_dim,
        .queries = end - begin,
        .k = c->k + head * capacity * head_dim,
        .v = c->v + head * capacity * c->v_stride,
        .v_stride = c->v_stride,
        .scores = c->scores + scratch,
        .scores_stride = capacity,
    };
    int last = 0, previous = -1;
    for (int i = 0; i < a.queries; i++) {
        int at = (begin + i) / group, row = rows ? rows[at] : at;
        size_t offset = (size_t)(kv_head * group + (begin + i) % group) * head_dim;
        a.q[i] = c->q + (size_t)row * c->q_width + offset;
        a.out[i] = c->attended.x + (size_t)at * c->q_width + offset;
        last = row;
        if (!b->mask) {
            a.contiguous[i] = b->first + row + 1;
            continue;
        }
        a.contiguous[i] = b->prefix;
        if (row == previous) {
            a.extra[i] = a.extra[i - 1];
            a.extras[i] = a.extras[i - 1];
        } else {
            int32_t *seen = c->extra + scratch + (size_t)i * capacity;
            a.extras[i] = list_seen(b, row, seen);
            a.extra[i] = seen;
        }
        previous = row;
    }
    a.blocks = (b->first + last) / ESP_LANES + 1;
    p->isa->attention(&a);
    for (int i = 0; i < a.queries; i++) {
        int column = (kv_head * group + (begin + i) % group) * p->d->head_dim;
        split(p, &c->attended, (begin + i) / group, column, column + p->d->head_dim);
    }
}

/* Steps 3 and 4. If the key/value heads divide evenly, each thread keeps to its own and nobody
 * waits between the two steps. */
static void attention(const struct pass *p, struct esp_cpu_team t, int layer,
                      const int32_t *rows, int count)
{
    const int kv_heads = p->d->kv_heads, group = p->d->heads / kv_heads;
    const int tiles = (count * group + ESP_QUERIES - 1) / ESP_QUERIES;
    int begin, end;
    if (kv_heads % t.threads == 0) {
        esp_cpu_share(kv_heads, t.thread, t.threads, &begin, &end);
        begin *= p->batch->rows;
        end *= p->batch->rows;
    } else {
        esp_cpu_share(kv_heads * p->batch->rows, t.thread, t.threads, &begin, &end);
    }
    for (int i = begin; i < end; i++)
        append(p, layer, i / p->batch->rows, i % p->batch->rows);
    if (kv_heads % t.threads)
        esp_cpu_meet(t);
    esp_cpu_share(kv_heads * tiles, t.thread, t.threads, &begin, &end);
    for (int i = begin; i < end; i++) {
        int first = i % tiles * ESP_QUERIES, stop = first + ESP_QUERIES;
        attend(p, t, layer, i / tiles, first, stop < count * group ? stop : count * group,
               rows);
    }
}

/* ------------------------------------------------------------------ the pass */

/* Only wanted rows go on: moves them to the front. */
static void compact(const struct pass *p, float *x)
{
    const size_t width = p->c->hidden;
    for (int i = 0; i < p->wanted; i++)
        if (p->c->wanted[i] != i)
            memcpy(x + (size_t)i * width, x + (size_t)p->c->wanted[i] * width,
                   width * sizeof *x);
}

static void mlp(const struct pass *p, struct esp_cpu_team t, const struct esp_cpu_layer *layer,
                struct esp_vectors x, int rows)
{
    const struct esp_cpu_cache *c = p->c;
    const bool gated = p->d->activation == ESP_SWIGLU;
    struct esp_product part = {.in = x, .y = c->up.x, .y_stride = c->ffn, .rows = rows};
    int begin, end;
    esp_cpu_share(layer->up.panels, t.thread, t.threads, &begin, &end);
    p->isa->product(&layer->up, begin, end, &part);
    part.y = c->gate;
    if (gated)
        p->isa->product(&layer->gate, begin, end, &part);
    for (int i = 0; i < rows; i++) {
        size_t at = (size_t)i * c->ffn + (size_t)begin * ESP_PANEL;
        p->isa->activate(c->up.x + at, gated ? c->gate + at : NULL, c->up.x + at,
                         (end - begin) * ESP_PANEL);
        split(p, &c->up, i, begin * ESP_PANEL, end * ESP_PANEL);
    }
}

/* x += W y */
static void add_product(const struct pass *p, struct esp_cpu_team t, const struct esp_packed *w,
                        struct esp_vectors y, int rows)
{
    struct esp_product part = {
        .in = y, .y = p->c->x, .y_stride = p->c->hidden, .rows = rows, .add = true};
    multiply(p, t, &w, &part, 1);
}

static void run_layers(const struct pass *p, struct esp_cpu_team t)
{
    struct esp_cpu_cache *c = p->c;
    const struct esp_model_desc *d = p->d;
    int rows = p->batch->rows;
    for (int i = 0; i < d->layers; i++) {
        const struct esp_cpu_layer *layer = &p->w->layer[i];
        const bool narrow = i == d->layers - 1 && p->wanted < rows;
        struct esp_vectors normed =
            normalise(p, t, c->normed, rows, layer->norm1, layer->norm1_bias); /* 1 */
        project(p, t, layer, normed, rows);                                    /* 2 */
        esp_cpu_meet(t);
        attention(p, t, i, narrow ? c->wanted : NULL, narrow ? p->wanted : rows); /* 3, 4 */
        if (narrow) {
            if (t.thread == 0)
                compact(p, c->x);
            rows = p->wanted;
        }
        esp_cpu_meet(t);
        if (rows == 0)
            return;
        if (d->parallel_residual) { /* 6 before 5: the MLP reads x as the layer found it */
            normed = normalise(p, t, c->normed2, rows, layer->norm2, layer->norm2_bias);
            if (rows == 1)
                esp_cpu_meet(t);
        }
        add_product(p, t, &layer->output, c->attended, rows); /* 5 */
        if (!d->parallel_residual) {
            esp_cpu_meet(t);
            normed = normalise(p, t, c->normed, rows, layer->norm2, layer->norm2_bias); /* 6 */
        }
        mlp(p, t, layer, normed, rows); /* 7 */
        esp_cpu_meet(t);
        add_product(p, t, &layer->down, c->up, rows); /* 8 */
        esp_cpu_meet(t);
    }
}

/* Logits may be wider or narrower than the model's vocabulary; see struct esp_batch. */
static void run_head(const struct pass *p, struct esp_cpu_team t)
{
    const struct esp_packed *w = &p->w->head;
    struct esp_cpu_rows *logits = (struct esp_cpu_rows *)p->batch->logits;
    if (p->wanted == 0)
        return;
    struct esp_product part = {
        .in = normalise(p, t, p->c->normed, p->wanted, p->w->norm_final, p->w->norm_final_bias),
        .y = logits->data,
        .y_stride = logits->stride,
        .y_row = p->c->wanted_at,
        .rows = p->wanted,
    };
    int room = (int)(logits->stride / ESP_PANEL), panels = w->panels < room ? w->panels : room;
    int begin, end;
    esp_cpu_share(panels, t.thread, t.threads, &begin, &end);
    p->isa->product(w, begin, end, &part);
    for (int i = 0; end == panels && i < p->wanted; i++) {
        float *row = logits->data + (size_t)p->c->wanted_at[i] * logits->stride;
        for (int j = p->d->vocabulary; j < logits->base.vocabulary; j++)
            row[j] = -1e30f;
    }
}

static void run(void *arg, struct esp_cpu_team t)
{
    const struct pass *p = arg;
    embed(p, t);
    esp_cpu_meet(t);
    run_layers(p, t);
    run_head(p, t);
}

/* ------------------------------------------------------------------ the batch */

int esp_cpu_forward(struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)c->base.weights;
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)w->base.backend;
    struct pass p = {.w = w, .d = w->desc, .c = c, .isa = cpu->isa, .batch = batch};
    if (!esp_batch_fits(batch, cache, w->desc, c->rows, c->max_batch))
        return ESP_E_ARGUMENT;
    p.wanted = esp_batch_wanted(batch, c->wanted, c->wanted_at);
    double work = batch->rows * w->work_layers + p.wanted * w->work_head;
    esp_cpu_together(cpu, work < cpu->worth_threads, run, &p);
    return batch->step ? esp_batch_step(batch, c->wanted_at, p.wanted) : ESP_OK;
}
