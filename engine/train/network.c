/* network.c - runs a draft head or draft model forward and backward; see network.h.
 *
 * The forward direction runs one pass after the other, and in each pass one layer after the
 * other. The keys and values of all rows are in one array per layer. In this way, later passes
 * can read the keys and values of earlier passes. The backward direction runs in reverse order.
 * When it reaches a pass, all rows that read the keys, values and outputs of this pass have
 * already added to the gradients of these keys, values and outputs.
 */
#include "engine/train/network.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

enum { QUERIES_TOGETHER = 48 };

/* Describes a matrix with `width` numbers for each row of the batch. */
struct matrix {
    float *at; /* (rows, width) */
    int width;
};

struct layer_memory {
    struct matrix x, normed1, factor1; /* x: input of the layer; if there is no norm1, normed1
                                          is x */
    struct matrix q, k, v;             /* q and k are rotated */
    struct matrix attended, x1, normed2, factor2, gate, up, active, dk, dv;
};

struct esp_network_memory {
    struct matrix input, dinput; /* for a draft head. input: embedding and feature; dinput: the
                                    gradients of input */
    struct matrix out, final_factor, cosine, sine, d_out, dq, dnormed, dffn, dattended;
    struct matrix dx; /* the input of the final norm, if there is such a norm */
    int rows;
    float *block; /* memory of all matrices; while it is NULL, lay_out() only counts `used` */
    size_t used;
    struct layer_memory layer[];
};

/* ------------------------------------------------------------------ parameters */

static int add(struct esp_network *d, int layer, const char *name, const char *kind, int rows,
               int columns)
{
    char whole[ESP_PARAMETER_NAME];
    snprintf(whole, sizeof whole, "%slayers.%d.%s.%s", d->shape.features ? "" : "model.", layer,
             name, kind);
    return esp_parameters_add(&d->parameters, whole, rows, columns);
}

static struct esp_network_linear add_linear(struct esp_network *d, int layer, const char *name,
                                            int out, int in, bool bias)
{
    const int weight = add(d, layer, name, "weight", out, in);
    return (struct esp_network_linear){weight, bias ? add(d, layer, name, "bias", out, 0) : -1};
}

static void add_layer(struct esp_network *d, int i)
{
    const struct esp_network_shape *s = &d->shape;
    struct esp_network_layer *l = &d->layer[i];
    const int h = s->hidden, queries = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;
    const bool norm1 = !s->features || i > 0;
    l->norm1 = norm1 ? add(d, i, "input_layernorm", "weight", h, 0) : -1;
    l->query = add_linear(d, i, "self_attn.q_proj", queries, h, s->qkv_bias);
    l->key = add_linear(d, i, "self_attn.k_proj", keys, h, s->qkv_bias);
    l->value = add_linear(d, i, "self_attn.v_proj", keys, h, s->qkv_bias);
    l->output = add_linear(d, i, "self_attn.o_proj", h, queries, false);
    l->norm2 = add(d, i, "post_attention_layernorm", "weight", h, 0);
    l->gate = add_linear(d, i, "mlp.gate_proj", s->ffn, h, false);
    l->up = add_linear(d, i, "mlp.up_proj", s->ffn, h, false);
    l->down = add_linear(d, i, "mlp.down_proj", h, s->ffn, false);
}

static void add_parameters(struct esp_network *d)
{
    const struct esp_network_shape *s = &d->shape;
    struct esp_parameters *p = &d->parameters;
    d->embedding = d->head = d->fc.weight = d->fc.bias = d->norm_final = -1;
    if (s->features) {
        d->fc.weight = esp_parameters_add(p, "fc.weight", s->hidden, 2 * s->hidden);
        if (s->fc_bias)
            d->fc.bias = esp_parameters_add(p, "fc.bias", s->hidden, 0);
    } else {
        d->embedding =
            esp_parameters_add(p, "model.embed_tokens.weight", s->vocabulary, s->hidden);
        d->norm_final = esp_parameters_add(p, "model.norm.weight", s->hidden, 0);
        d->head = s->tied ? d->embedding
                          : esp_parameters_add(p, "lm_head.weight", s->vocabulary, s->hidden);
    }
    for (int i = 0; i < s->layers; i++)
        add_layer(d, i);
}

int esp_network_open(struct esp_network *d, const struct esp_network_shape *shape,
                     struct esp_workers *workers, const float *frozen_embedding, char *err,
                     size_t errlen)
{
    *d = (struct esp_network){
        .shape = *shape, .workers = workers, .frozen_embedding = frozen_embedding};
    d->layer = calloc((size_t)shape->layers, sizeof *d->layer);
    if (!d->layer)
        return esp_fail(err, errlen, ESP_E_MEMORY, "not enough memory to train");
    add_parameters(d);
    return esp_parameters_open(&d->parameters, err, errlen);
}

static void forget(struct esp_network *d)
{
    if (d->memory)
        esp_cpu_free(d->memory->block);
    free(d->memory);
    d->memory = NULL;
}

void esp_network_close(struct esp_network *d)
{
    forget(d);
    esp_parameters_close(&d->parameters);
    free(d->layer);
    d->layer = NULL;
}

/* ------------------------------------------------------------------ memory of a batch */

/* Gives each matrix in the list its memory from the block, for rows of `width` numbers. The
 * list ends with NULL. */
static void take(struct esp_network_memory *m, int width, ...)
{
    va_list list;
    va_start(list, width);
    for (struct matrix *x; (x = va_arg(list, struct matrix *));) {
        *x = (struct matrix){m->block ? m->block + m->used : NULL, width};
        m->used += ((size_t)m->rows * (size_t)width + ESP_LANES - 1) / ESP_LANES * ESP_LANES;
    }
    va_end(list);
}

static void lay_out(const struct esp_network *d, struct esp_network_memory *m)
{
    const struct esp_network_shape *s = &d->shape;
    const int h = s->hidden, queries = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;
    struct matrix *const none = NULL;
    m->used = 0;
    take(m, s->features ? 2 * h : 0, &m->input, none);
    take(m, s->features ? 2 * h : h, &m->dinput, none);
    take(m, h, &m->out, &m->d_out, &m->dx, &m->dnormed, none);
    take(m, queries, &m->dq, &m->dattended, none);
    take(m, s->ffn, &m->dffn, none);
    take(m, s->head_dim / 2, &m->cosine, &m->sine, none);
    take(m, 1, &m->final_factor, none);
    for (int i = 0; i < s->layers; i++) {
        struct layer_memory *l = &m->layer[i];
        take(m, h, &l->x, &l->x1, &l->normed2, none);
        l->normed1 = l->x;
        if (d->layer[i].norm1 >= 0)
            take(m, h, &l->normed1, none);
        take(m, queries, &l->q, &l->attended, none);
        take(m, keys, &l->k, &l->v, &l->dk, &l->dv, none);
        take(m, s->ffn, &l->gate, &l->up, &l->active, none);
        take(m, 1, &l->factor1, &l->factor2, none);
    }
}

static int make_room(struct esp_network *d, const struct esp_training_rows *rows)
{
    int keys = 0;
    for (int i = 0; i < rows->count; i++)
        keys = rows->seen[i] > keys ? rows->seen[i] : keys;
    int status = esp_workers_reserve(
        d->workers, esp_tree_attention_scratch(QUERIES_TOGETHER, keys, rows->extras));
    if (status < 0 || (d->memory && rows->count <= d->memory->rows))
        return status;
    forget(d);
    struct esp_network_memory *m =
        calloc(1, sizeof *m + (size_t)d->shape.layers * sizeof *m->layer);
    if (!(d->memory = m))
        return ESP_E_MEMORY;
    m->rows = rows->count;
    lay_out(d, m);
    m->block = esp_cpu_alloc(m->used, sizeof *m->block);
    lay_out(d, m);
    if (m->block)
        return ESP_OK;
    forget(d);
    return ESP_E_MEMORY;
}

/* ------------------------------------------------------------------ one step of a pass */

struct step {
    struct esp_network *d;
    const struct esp_training_rows *rows;
    struct esp_network_memory *m;
    const struct esp_network_layer *p;
    const struct layer_memory *l;
    int begin, end; /* rows of the pass */
    bool backward;
    struct matrix x; /* the matrix that the threads process */
};

static float *value(const struct step *s, int number)
{
    return esp_parameter_value(&s->d->parameters, number);
}

static float *gradient(const struct step *s, int number)
{
    return esp_parameter_gradient(&s->d->parameters, number);
}

static float *row_of(struct matrix x, int row)
{
    return x.at + (size_t)row * (size_t)x.width;
}

/* Returns the rows of x that belong to the pass. */
static float *rows_of(const struct step *s, struct matrix x)
{
    return row_of(x, s->begin);
}

static size_t numbers_of(const struct step *s, struct matrix x)
{
    return (size_t)(s->end - s->begin) * (size_t)x.width;
}

/* Computes y = x W^T + b, or y += x W^T. */
static void linear(const struct step *s, struct matrix y, struct matrix x,
                   struct esp_network_linear w, bool add)
{
    esp_linear(s->d->workers, rows_of(s, y), rows_of(s, x), value(s, w.weight),
               value(s, w.bias), s->end - s->begin, x.width, y.width, add);
}

/* Computes y = before + x W^T. */
static void residual(const struct step *s, struct matrix y, struct matrix before,
                     struct matrix x, struct esp_network_linear w)
{
    memcpy(rows_of(s, y), rows_of(s, before), numbers_of(s, y) * sizeof(float));
    linear(s, y, x, w, true);
}

/* Adds to the gradients of W and b. Computes dx = dy W, or dx += dy W, unless dx is empty. */
static void linear_back(const struct step *s, struct matrix dx, struct matrix dy,
                        struct matrix x, struct esp_network_linear w, bool add)
{
    esp_linear_back(s->d->workers, dx.at ? rows_of(s, dx) : NULL, gradient(s, w.weight),
                    gradient(s, w.bias), rows_of(s, dy), rows_of(s, x), value(s, w.weight),
                    s->end - s->begin, x.width, dy.width, add);
}

/* Computes y = norm(x). Does nothing if there is no such norm (weight = -1). */
static void norm(const struct step *s, struct matrix y, struct matrix factor, struct matrix x,
                 int weight)
{
    if (weight >= 0)
        esp_rmsnorm(s->d->workers, rows_of(s, y), rows_of(s, factor), rows_of(s, x),
                    value(s, weight), s->end - s->begin, x.width, s->d->shape.epsilon);
}

/* Adds to the gradient of the norm's weight and to dx. Does nothing if weight = -1. */
static void norm_back(const struct step *s, struct matrix dx, struct matrix dy, struct matrix x,
                      struct matrix factor, int weight)
{
    if (weight >= 0)
        esp_rmsnorm_backward(s->d->workers, rows_of(s, dx), gradient(s, weight), rows_of(s, x),
                             value(s, weight), rows_of(s, dy), rows_of(s, factor),
                             s->end - s->begin, x.width);
}

/* Computes cosines and sines for the positions of rows begin..end-1. */
static void angles_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    (void)scratch;
    for (int i = begin; i < end; i++)
        for (int j = 0; j < s->m->cosine.width; j++) {
            float angle = (float)s->rows->position[i] * s->d->shape.inverse_frequency[j];
            row_of(s->m->cosine, i)[j] = cosf(angle);
            row_of(s->m->sine, i)[j] = sinf(angle);
        }
}

static void embed_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const struct esp_network *d = s->d;
    const bool features = d->shape.features;
    const size_t h = (size_t)d->shape.hidden;
    const float *table = features ? d->frozen_embedding : value(s, d->embedding);
    (void)scratch;
    for (int i = s->begin + begin; i < s->begin + end; i++) {
        float *to = row_of(features ? s->m->input : s->m->layer[0].x, i);
        memcpy(to, table + (size_t)s->rows->token[i] * h, h * sizeof *to);
        const int parent = features ? s->rows->parent[i] : -1;
        if (features)
            memcpy(to + h,
                   parent < 0 ? s->rows->feature + (size_t)i * h : row_of(s->m->out, parent),
                   h * sizeof *to);
    }
}

static void rotate_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const int n = s->d->shape.head_dim, half = n / 2;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    float *negative = scratch;
    for (int i = s->begin + begin; i < s->begin + end; i++) {
        const float *sine = row_of(s->m->sine, i);
        for (int j = 0; j < half && s->backward; j++)
            negative[j] = -sine[j];
        for (int head = 0; head < s->x.width; head += n)
            g->rope(row_of(s->x, i) + head, half, row_of(s->m->cosine, i),
                    s->backward ? negative : sine);
    }
}

/* Rotates the heads of x by the angles of their rows. In the backward pass it rotates in the
 * other direction. */
static void rotate(struct step *s, struct matrix x)
{
    s->x = x;
    esp_workers_share(s->d->workers, s->end - s->begin, rotate_part, s);
}

/* ------------------------------------------------------------------ attention */

/* Finds the last row of this pass that belongs to the same text as row `row`. Returns the index
 * after that row. */
static int text_end(const struct step *s, int row)
{
    int end = row + 1;
    while (end < s->end && s->rows->first[end] == s->rows->first[row])
        end++;
    return end;
}

static void attend_rows(const struct step *s, int head, int begin, int end, float *scratch)
{
    const struct esp_network_shape *shape = &s->d->shape;
    const struct esp_training_rows *rows = s->rows;
    const struct layer_memory *l = s->l;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    const int n = shape->head_dim, first = rows->first[begin], q_at = head * n,
              kv_at = head / (shape->heads / shape->kv_heads) * n;
    struct esp_tree_attention a = {
        .rows = end - begin,
        .head_dim = n,
        .seen = rows->seen + begin,
        .extra = rows->extra + (size_t)begin * (size_t)rows->extras,
        .extras = rows->extras,
        .scale = 1.0f / sqrtf((float)n),
        .q_stride = (size_t)l->q.width,
        .kv_stride = (size_t)l->k.width,
        .q = row_of(l->q, begin) + q_at,
        .k = row_of(l->k, first) + kv_at,
        .v = row_of(l->v, first) + kv_at,
        .out = row_of(l->attended, begin) + q_at,
        .d_out = row_of(s->m->dattended, begin) + q_at,
        .dq = row_of(s->m->dq, begin) + q_at,
        .dk = row_of(l->dk, first) + kv_at,
        .dv = row_of(l->dv, first) + kv_at,
        .scratch = scratch,
    };
    for (int i = 0; i < a.rows; i++)
        a.keys = a.seen[i] > a.keys ? a.seen[i] : a.keys;
    (s->backward ? g->attention_backward : g->attention)(&a);
}

/* Computes the attention of one key/value head in one text. No other task adds to the gradients
 * of this head's keys and values in this text. */
static void attend_task(void *arg, int task, float *scratch)
{
    const struct step *s = arg;
    const int group = s->d->shape.heads / s->d->shape.kv_heads;
    const int kv_head = task % s->d->shape.kv_heads, text = task / s->d->shape.kv_heads;
    int begin = s->begin, end = text_end(s, begin);
    for (int i = 0; i < text; i++) {
        begin = end;
        end = text_end(s, begin);
    }
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        for (int row = begin; row < end; row += QUERIES_TOGETHER)
            attend_rows(s, head, row,
                        row + QUERIES_TOGETHER < end ? row + QUERIES_TOGETHER : end, scratch);
}

static void attend(struct step *s)
{
    int texts = 0;
    for (int row = s->begin; row < s->end; row = text_end(s, row))
        texts++;
    esp_workers_each(s->d->workers, texts * s->d->shape.kv_heads, attend_task, s);
}

/* ------------------------------------------------------------------ layers */

/* In the backward pass, `gate` and `up` are overwritten by their gradients. */
static void swiglu_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const struct layer_memory *l = s->l;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    const int row = s->begin + begin, n = (end - begin) * l->gate.width;
    (void)scratch;
    if (s->backward)
        g->swiglu_backward(row_of(l->gate, row), row_of(l->up, row), row_of(s->m->dffn, row),
                           n);
    else
        g->swiglu(row_of(l->active, row), row_of(l->gate, row), row_of(l->up, row), n);
}

static void forward_layer(struct step *s, struct matrix out)
{
    const struct esp_network_layer *p = s->p;
    const struct layer_memory *l = s->l;
    norm(s, l->normed1, l->factor1, l->x, p->norm1);
    linear(s, l->q, l->normed1, p->query, false);
    linear(s, l->k, l->normed1, p->key, false);
    linear(s, l->v, l->normed1, p->value, false);
    rotate(s, l->q);
    rotate(s, l->k);
    attend(s);
    residual(s, l->x1, l->x, l->attended, p->output);
    norm(s, l->normed2, l->factor2, l->x1, p->norm2);
    linear(s, l->gate, l->normed2, p->gate, false);
    linear(s, l->up, l->normed2, p->up, false);
    esp_workers_share(s->d->workers, s->end - s->begin, swiglu_part, s);
    residual(s, out, l->x1, l->active, p->down);
}

/* Runs a layer backward: dx is the gradient with respect to the layer's output and becomes
 * the gradient with respect to its input. */
static void backward_layer(struct step *s, struct matrix dx)
{
    const struct esp_network_layer *p = s->p;
    const struct layer_memory *l = s->l;
    const struct esp_network_memory *m = s->m;
    const bool norm1 = p->norm1 >= 0;
    const struct matrix dnormed1 = norm1 ? m->dnormed : dx;
    linear_back(s, m->dffn, dx, l->active, p->down, false);
    esp_workers_share(s->d->workers, s->end - s->begin, swiglu_part, s);
    linear_back(s, m->dnormed, l->gate, l->normed2, p->gate, false);
    linear_back(s, m->dnormed, l->up, l->normed2, p->up, true);
    norm_back(s, dx, m->dnormed, l->x1, l->factor2, p->norm2);
    linear_back(s, m->dattended, dx, l->attended, p->output, false);
    attend(s);
    rotate(s, m->dq);
    rotate(s, l->dk);
    linear_back(s, dnormed1, m->dq, l->normed1, p->query, !norm1);
    linear_back(s, dnormed1, l->dk, l->normed1, p->key, true);
    linear_back(s, dnormed1, l->dv, l->normed1, p->value, true);
    norm_back(s, dx, m->dnormed, l->x, l->factor1, p->norm1);
}

/* ------------------------------------------------------------------ forward */

static void forward_pass(struct step *s)
{
    struct esp_network *d = s->d;
    struct esp_network_memory *m = s->m;
    esp_workers_share(d->workers, s->end - s->begin, embed_part, s);
    if (d->shape.features)
        linear(s, m->layer[0].x, m->input, d->fc, false);
    /* If there is a final norm, the last layer's output is written to m->dx. */
    for (int i = 0; i < d->shape.layers; i++) {
        s->p = &d->layer[i];
        s->l = &m->layer[i];
        forward_layer(s, i + 1 < d->shape.layers ? m->layer[i + 1].x
                         : d->norm_final >= 0    ? m->dx
                                                 : m->out);
    }
    norm(s, m->out, m->final_factor, m->dx, d->norm_final);
}

const float *esp_network_forward(struct esp_network *d, const struct esp_training_rows *rows)
{
    if (make_room(d, rows) < 0)
        return NULL;
    struct step s = {.d = d, .rows = rows, .m = d->memory};
    esp_workers_share(d->workers, rows->count, angles_part, &s);
    for (int pass = 0; pass < rows->passes; pass++) {
        s.begin = s.end;
        s.end = rows->pass_end[pass];
        if (s.begin < s.end)
            forward_pass(&s);
    }
    return d->memory->out.at;
}

/* ------------------------------------------------------------------ backward */

float *esp_network_output_gradient(struct esp_network *d, const struct esp_training_rows *rows)
{
    const struct step all = {.d = d, .end = rows->count};
    memset(d->memory->d_out.at, 0, numbers_of(&all, d->memory->d_out) * sizeof(float));
    for (int i = 0; i < d->shape.layers; i++) {
        const struct layer_memory *l = &d->memory->layer[i];
        memset(l->dk.at, 0, numbers_of(&all, l->dk) * sizeof(float));
        memset(l->dv.at, 0, numbers_of(&all, l->dv) * sizeof(float));
    }
    return d->memory->d_out.at;
}

/* Adds the gradients of the rows to the gradient of the embedding, in columns begin..end-1. */
static void scatter_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    const struct matrix to = {gradient(s, s->d->embedding), s->x.width};
    (void)scratch;
    for (int i = s->begin; i < s->end; i++)
        g->add(row_of(to, s->rows->token[i]) + begin, row_of(s->x, i) + begin,
               (size_t)(end - begin));
}

/* The pass has read outputs of earlier passes as features. This function adds to columns
 * begin..end-1 of the gradients of these outputs. */
static void feed_back_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const int h = s->d->shape.hidden;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    (void)scratch;
    for (int i = s->begin; i < s->end; i++)
        if (s->rows->parent[i] >= 0)
            g->add(row_of(s->m->d_out, s->rows->parent[i]) + begin,
                   row_of(s->m->dinput, i) + h + begin, (size_t)(end - begin));
}

static void backward_input(struct step *s, struct matrix dx)
{
    struct esp_network *d = s->d;
    const bool own = s->begin > 0; /* true: the features are the head's own. In pass 0, they
                                      are the target's. */
    s->x = dx;
    if (!d->shape.features) {
        esp_workers_share(d->workers, d->shape.hidden, scatter_part, s);
        return;
    }
    linear_back(s, own ? s->m->dinput : (struct matrix){0}, dx, s->m->input, d->fc, false);
    if (own)
        esp_workers_share(d->workers, d->shape.hidden, feed_back_part, s);
}

static void backward_pass(struct step *s)
{
    struct esp_network *d = s->d;
    struct esp_network_memory *m = s->m;
    struct matrix dx = m->d_out;
    if (d->norm_final >= 0) {
        /* Rows begin..end-1 of m->dx still contain the input of the norm. */
        dx = m->dinput;
        memset(rows_of(s, dx), 0, numbers_of(s, dx) * sizeof(float));
        norm_back(s, dx, m->d_out, m->dx, m->final_factor, d->norm_final);
    }
    for (int i = d->shape.layers - 1; i >= 0; i--) {
        s->p = &d->layer[i];
        s->l = &m->layer[i];
        backward_layer(s, dx);
    }
    backward_input(s, dx);
}

void esp_network_backward(struct esp_network *d, const struct esp_training_rows *rows)
{
    struct step s = {.d = d, .rows = rows, .m = d->memory, .backward = true};
    for (int pass = rows->passes - 1; pass >= 0; pass--) {
        s.begin = pass > 0 ? rows->pass_end[pass - 1] : 0;
        s.end = rows->pass_end[pass];
        if (s.begin < s.end)
            backward_pass(&s);
    }
}
