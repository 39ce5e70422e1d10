/* pass_attention.c - rotates queries and keys, appends keys and values to the cache, and
 * computes attention; see pass_attention.h. isa/attention.c computes attention for a tile, that
 * is, for some queries of a head. */
#include "kernels/cpu/pass_attention.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/divided.h"

/* Returns whether a norm of queries or keys is taken over all heads together. */
static bool of_all_heads(const struct esp_cpu_pass *p, const struct esp_tensor *norm)
{
    return norm->data && norm->rows != p->d->head_dim;
}

static void norm_heads(void *arg, int row)
{
    const struct esp_cpu_pass *p = arg;
    const struct esp_layer *layer = &p->d->layer[p->layer];
    const struct esp_cpu_layer *own = &p->w->layer[p->layer];
    const struct esp_cpu_cache *c = p->c;
    float *q = c->q + (size_t)row * c->q_width, *key = c->key + (size_t)row * c->kv_width;
    if (of_all_heads(p, &layer->query_norm))
        p->isa->norm(q, q, layer->query_norm.rows, own->query_norm, NULL, ESP_NORM_RMS,
                     p->d->norm_epsilon);
    if (of_all_heads(p, &layer->key_norm))
        p->isa->norm(key, key, layer->key_norm.rows, own->key_norm, NULL, ESP_NORM_RMS,
                     p->d->norm_epsilon);
}

/* Normalises a head of queries or keys, if the model has a norm for it, and rotates the head.
 */
static void prepare_head(const struct esp_cpu_pass *p, float *head,
                         const struct esp_tensor *norm, const float *weight, int row)
{
    const struct esp_model_desc *d = p->d;
    const enum esp_rotation rotation = d->layer[p->layer].rotation;
    const size_t angles = esp_cpu_angles(p, row, rotation == ESP_ROTATION_LOCAL ? 1 : 0);
    if (weight && !of_all_heads(p, norm))
        p->isa->rmsnorm_head(head, d->head_dim, weight, d->norm_epsilon);
    if (rotation != ESP_ROTATION_NONE)
        p->isa->rope(head, d->rotary / 2, p->c->cosine + angles, p->c->sine + angles);
}

static float attention_scale(const struct esp_model_desc *d)
{
    return d->attention_scale != 0 ? d->attention_scale : 1.0f / sqrtf((float)d->head_dim);
}

/* Rotates row `row` of the queries and keys of one key/value head, and appends its key and
 * value to the cache. */
static void append(const struct esp_cpu_pass *p, int kv_head, int row)
{
    struct esp_cpu_cache *c = p->c;
    const struct esp_model_desc *d = p->d;
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_layer *described = &d->layer[p->layer];
    const int group = d->heads / d->kv_heads;
    const size_t head_dim = (size_t)d->head_dim, rows = (size_t)c->blocks * ESP_LANES;
    const size_t head = esp_cpu_kv_head(c, layer->place, kv_head);
    const size_t at = (size_t)(p->batch->first + row);
    for (int i = 0; i < group; i++) {
        const size_t head_at =
            (size_t)row * c->q_width + (size_t)(kv_head * group + i) * head_dim;
        float *q = c->q + head_at, *other = c->for_sinks + head_at;
        if (esp_cpu_has_gap(p, row)) {
            memcpy(other, q, head_dim * sizeof *q);
            prepare_head(p, other, &described->query_norm, layer->query_norm,
                         esp_cpu_row_for_sinks(p));
            p->isa->scale(other, d->head_dim, attention_scale(d));
        }
        prepare_head(p, q, &described->query_norm, layer->query_norm, row);
        p->isa->scale(q, d->head_dim, attention_scale(d));
    }
    float *key = c->key + (size_t)row * c->kv_width + (size_t)kv_head * head_dim;
    prepare_head(p, key, &described->key_norm, layer->key_norm, row);
    float *k = c->k + (head * rows + at / ESP_LANES * ESP_LANES) * head_dim + at % ESP_LANES;
    for (size_t i = 0; i < head_dim; i++)
        k[i * ESP_LANES] = key[i];
    memcpy(c->v + (head * rows + at) * c->v_stride,
           c->value + (size_t)row * c->kv_width + (size_t)kv_head * head_dim,
           head_dim * sizeof(float));
}

/* Lists the cache rows after the prefix to which batch row `row` attends, in ascending order.
 * Returns their number. */
static int list_seen(const struct esp_batch *b, int row, int32_t *seen)
{
    const uint64_t *mask = b->mask + (size_t)row * (size_t)b->mask_words;
    int count = 0, words = (b->first - b->prefix + row) / 64 + 1;
    for (int i = 0; i < words; i++)
        for (uint64_t word = mask[i]; word; word &= word - 1)
            seen[count++] = b->prefix + 64 * i + __builtin_ctzll(word);
    return count;
}

/* Returns the number of attention sinks to which the rows attend in this layer. It is 0 if the
 * layer's own window is smaller than the window of the text. */
static int sinks_of(const struct esp_cpu_pass *p)
{
    const struct esp_window *w = p->batch->window;
    const int own = p->d->layer[p->layer].window;
    return w && (own == 0 || own >= w->sinks + w->recent) ? w->sinks : 0;
}

/* Sets the range of keys to which query i of batch row `row` attends. It depends on the window
 * of the layer and on the window of the text. The query's head begins at index `offset` of the
 * row. */
static void set_windows(const struct esp_cpu_pass *p, struct esp_attention *a, int i, int row,
                        size_t offset)
{
    const struct esp_window *w = p->batch->window;
    const int own = a->contiguous[i] + a->extras[i] - 1;
    const int layer = p->d->layer[p->layer].window;
    const int of_layer = layer > 0 ? own - layer + 1 : 0;
    const int of_text = w ? p->batch->positions[row] - w->dropped - w->recent + 1 : 0;
    const int from = of_layer > of_text ? of_layer : of_text;
    a->from[i] = from < own ? from : own;
    a->for_sinks[i] = NULL;
    if (a->sinks > 0 && esp_cpu_has_gap(p, row))
        a->for_sinks[i] = p->c->for_sinks + (size_t)row * p->c->q_width + offset;
}

/* Returns whether every head consists of whole blocks of ESP_CUT_COLUMNS columns. */
static bool whole_blocks(const struct esp_cpu_pass *p)
{
    return p->d->head_dim % ESP_CUT_COLUMNS == 0;
}

/* Multiplies one head of the output of attention by the sigmoid of its gate. `i` is the index
 * of a row among the rows that later layers need. */
static void gate_head(const struct esp_cpu_pass *p, int i, int column)
{
    const struct esp_cpu_cache *c = p->c;
    const size_t row = (size_t)(p->going ? p->going[i] : i);
    if (p->d->layer[p->layer].attention_gate.data)
        p->isa->sigmoid(c->attended.x + (size_t)i * c->q_width + column,
                        c->attention_gate + row * c->q_width + column, p->d->head_dim);
}

/* Computes attention for queries begin..end-1 of a key/value head. Query i is in query head
 * (i % group) of this key/value head. It belongs to the row with index (i / group) among the
 * rows that later layers need. */
static void attend(const struct esp_cpu_pass *p, int thread, int kv_head, int begin, int end)
{
    const struct esp_cpu_cache *c = p->c;
    const struct esp_batch *b = p->batch;
    const int group = p->d->heads / p->d->kv_heads;
    const size_t head_dim = (size_t)p->d->head_dim, capacity = (size_t)c->blocks * ESP_LANES;
    const size_t head = esp_cpu_kv_head(c, p->w->layer[p->layer].place, kv_head);
    const size_t scratch = (size_t)thread * ESP_QUERIES * capacity;
    struct esp_attention a = {
        .head_dim = p->d->head_dim,
        .queries = end - begin,
        .k = c->k + head * capacity * head_dim,
        .v = c->v + head * capacity * c->v_stride,
        .v_stride = c->v_stride,
        .cap = p->d->attention_cap,
        .scores = c->scores + scratch,
        .scores_stride = capacity,
        .sinks = sinks_of(p),
    };
    const float *sink_logit = p->w->layer[p->layer].sink_logit;
    int last = 0, previous = -1;
    for (int i = 0; i < a.queries; i++) {
        int at = (begin + i) / group, row = p->going ? p->going[at] : at;
        size_t offset = (size_t)(kv_head * group + (begin + i) % group) * head_dim;
        a.q[i] = c->q + (size_t)row * c->q_width + offset;
        a.out[i] = c->attended.x + (size_t)at * c->q_width + offset;
        last = row;
        if (row == previous) {
            a.contiguous[i] = a.contiguous[i - 1];
            a.extra[i] = a.extra[i - 1];
            a.extras[i] = a.extras[i - 1];
        } else {
            a.contiguous[i] = b->first + row + 1;
            if (b->mask) {
                int32_t *seen = c->extra + scratch + (size_t)i * capacity;
                a.contiguous[i] = b->prefix;
                a.extras[i] = list_seen(b, row, seen);
                a.extra[i] = seen;
            }
        }
        set_windows(p, &a, i, row, offset);
        a.sink_logit[i] =
            sink_logit ? sink_logit + kv_head * group + (begin + i) % group : NULL;
        previous = row;
    }
    a.blocks = (b->first + last) / ESP_LANES + 1;
    p->isa->attention(&a);
    for (int i = 0; i < a.queries; i++) {
        int column = (kv_head * group + (begin + i) % group) * p->d->head_dim;
        gate_head(p, (begin + i) / group, column);
        if (esp_cpu_divides(p, ESP_RANK_ATTENTION))
            continue; /* prepared after the ranks have gathered all heads */
        if (p->w->split)
            p->isa->split(&c->attended, (begin + i) / group, column, column + p->d->head_dim);
        if (p->w->cut && whole_blocks(p))
            p->isa->cut(&c->attended, (begin + i) / group, column, column + p->d->head_dim);
    }
}

static int tiles_of(const struct esp_cpu_pass *p)
{
    return (p->rows * (p->d->heads / p->d->kv_heads) + ESP_QUERIES - 1) / ESP_QUERIES;
}

static void attend_tile(const struct esp_cpu_pass *p, int thread, int kv_head, int tile)
{
    const int queries = p->rows * (p->d->heads / p->d->kv_heads);
    const int begin = tile * ESP_QUERIES, end = begin + ESP_QUERIES;
    attend(p, thread, kv_head, begin, end < queries ? end : queries);
}

/* Runs a part of step 3. The step is divided by heads and rows. */
static void append_one(void *step, int i)
{
    const struct esp_cpu_pass *p = step;
    append(p, p->c->kv_begin + i / p->batch->rows, i % p->batch->rows);
}

/* Runs a part of step 4. The step is divided by heads and queries. */
static void attend_part(void *step, int part, int thread)
{
    const struct esp_cpu_pass *p = step;
    const int tiles = tiles_of(p);
    int begin, end;
    esp_cpu_share(p->c->kv_heads * tiles, part, p->parts, &begin, &end);
    for (int i = begin; i < end; i++)
        attend_tile(p, thread, p->c->kv_begin + i / tiles, i % tiles);
}

/* Runs a part of steps 3 and 4 together. The two steps are divided by heads. */
static void heads_part(void *step, int part, int thread)
{
    const struct esp_cpu_pass *p = step;
    int begin, end;
    esp_cpu_share(p->c->kv_heads, part, p->parts, &begin, &end);
    for (int i = begin; i < end; i++) {
        const int head = p->c->kv_begin + i;
        for (int row = 0; row < p->batch->rows; row++)
            append(p, head, row);
        for (int tile = 0; tile < tiles_of(p); tile++)
            attend_tile(p, thread, head, tile);
    }
}

/* Quantises a row of step 4's output. Used if a block of columns can span two heads. */
static void cut_row(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    p->isa->cut(&p->c->attended, row, 0, (int)p->c->q_width);
}

/* If the key/value heads can be divided evenly among the threads, steps 3 and 4 run together,
 * so that no thread has to wait between them. */
void esp_cpu_attention(struct esp_cpu_pass *p)
{
    const int kv_heads = p->c->kv_heads;
    const struct esp_layer *layer = &p->d->layer[p->layer];
    if (of_all_heads(p, &layer->query_norm))
        esp_cpu_gather_heads(p, p->c->q, p->c->q_width, p->d->heads, p->batch->rows);
    if (of_all_heads(p, &layer->key_norm))
        esp_cpu_gather_heads(p, p->c->key, p->c->kv_width, p->d->kv_heads, p->batch->rows);
    if (of_all_heads(p, &layer->query_norm) || of_all_heads(p, &layer->key_norm))
        esp_cpu_run_rows(p, p->batch->rows, p->c->q_width, norm_heads, p);
    if (kv_heads % p->threads == 0) {
        esp_cpu_run_step(p, kv_heads, heads_part, p);
    } else {
        esp_cpu_run_rows(p, kv_heads * p->batch->rows, (size_t)p->d->head_dim, append_one, p);
        esp_cpu_run_step(p, kv_heads * tiles_of(p), attend_part, p);
    }
    if (esp_cpu_divides(p, ESP_RANK_ATTENTION)) {
        esp_cpu_gather_heads(p, p->c->attended.x, p->c->q_width, p->d->heads, p->rows);
        esp_cpu_prepare_all(p, &p->c->attended);
    } else if (p->w->cut && !whole_blocks(p)) {
        esp_cpu_run_rows(p, p->rows, p->c->q_width, cut_row, p);
    }
}
