/* network.c - a draft head or draft model, forward and backward; see network.h.
 *
 * Forward goes pass by pass, and in a pass layer by layer. Keys and values of all rows are in
 * one array per layer, so that later passes see those of earlier ones. Backward goes in reverse
 * order: when it reaches a pass, all rows that see the keys, values and outputs of that pass
 * have already added to their gradients.
 */
#include "engine/train/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/status.h"

enum { QUERIES_TOGETHER = 48 };

struct layer_memory {
    float *x;                 /* (rows, hidden) input of the layer */
    float *normed1, *factor1; /* without norm1: x itself */
    float *q, *k, *v;         /* rotated */
    float *attended, *x1, *normed2, *factor2;
    float *gate, *up, *active;
    float *dk, *dv;
};

struct esp_network_memory {
    float *input; /* (rows, 2 hidden) embedding and feature, with features */
    float *dinput;
    float *out, *final_factor; /* (rows, hidden) */
    float *cosine, *sine;      /* (rows, head_dim / 2) */
    float *d_out, *dq, *dnormed, *dffn, *dattended;
    float *dx; /* in the forward pass: input of the final norm, if there is one */
    struct layer_memory *layer;
    float *block;
};

static size_t floats(int rows, int width)
{
    return ((size_t)rows * (size_t)width + ESP_LANES - 1) / ESP_LANES * ESP_LANES;
}

/* ------------------------------------------------------------------ parameters */

static int add_layer(struct esp_network *d, int i)
{
    const struct esp_network_shape *s = &d->shape;
    struct esp_network_layer *l = &d->layer[i];
    const int queries = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;
    const char *prefix = s->features ? "" : "model.";
    const struct {
        int *number;
        const char *name;
        int rows, columns;
        bool there;
    } wanted[] = {
        {&l->norm1, "input_layernorm.weight", s->hidden, 0, !s->features || i > 0},
        {&l->query, "self_attn.q_proj.weight", queries, s->hidden, true},
        {&l->query_bias, "self_attn.q_proj.bias", queries, 0, s->qkv_bias},
        {&l->key, "self_attn.k_proj.weight", keys, s->hidden, true},
        {&l->key_bias, "self_attn.k_proj.bias", keys, 0, s->qkv_bias},
        {&l->value, "self_attn.v_proj.weight", keys, s->hidden, true},
        {&l->value_bias, "self_attn.v_proj.bias", keys, 0, s->qkv_bias},
        {&l->output, "self_attn.o_proj.weight", s->hidden, queries, true},
        {&l->norm2, "post_attention_layernorm.weight", s->hidden, 0, true},
        {&l->gate, "mlp.gate_proj.weight", s->ffn, s->hidden, true},
        {&l->up, "mlp.up_proj.weight", s->ffn, s->hidden, true},
        {&l->down, "mlp.down_proj.weight", s->hidden, s->ffn, true},
    };
    for (size_t j = 0; j < sizeof wanted / sizeof *wanted; j++) {
        char name[ESP_PARAMETER_NAME];
        snprintf(name, sizeof name, "%slayers.%d.%s", prefix, i, wanted[j].name);
        *wanted[j].number =
            wanted[j].there
                ? esp_parameters_add(&d->parameters, name, wanted[j].rows, wanted[j].columns)
                : -1;
        if (wanted[j].there && *wanted[j].number < 0)
            return ESP_E_MEMORY;
    }
    return ESP_OK;
}

static int add_parameters(struct esp_network *d)
{
    const struct esp_network_shape *s = &d->shape;
    d->embedding = d->head = d->fc = d->fc_bias = d->norm_final = -1;
    if (s->features) {
        d->fc = esp_parameters_add(&d->parameters, "fc.weight", s->hidden, 2 * s->hidden);
        if (s->fc_bias)
            d->fc_bias = esp_parameters_add(&d->parameters, "fc.bias", s->hidden, 0);
    } else {
        d->embedding = esp_parameters_add(&d->parameters, "model.embed_tokens.weight",
                                          s->vocabulary, s->hidden);
        d->norm_final = esp_parameters_add(&d->parameters, "model.norm.weight", s->hidden, 0);
        d->head = s->tied ? d->embedding
                          : esp_parameters_add(&d->parameters, "lm_head.weight", s->vocabulary,
                                               s->hidden);
    }
    int status = ESP_OK;
    for (int i = 0; i < s->layers && status == ESP_OK; i++)
        status = add_layer(d, i);
    return status;
}

int esp_network_open(struct esp_network *d, const struct esp_network_shape *shape,
                     struct esp_workers *workers, const float *frozen_embedding, char *err,
                     size_t errlen)
{
    *d = (struct esp_network){
        .shape = *shape, .workers = workers, .frozen_embedding = frozen_embedding};
    d->layer = calloc((size_t)shape->layers, sizeof *d->layer);
    int status = d->layer ? add_parameters(d) : ESP_E_MEMORY;
    if (status < 0)
        esp_fail(err, errlen, status, "not enough memory to train");
    else
        status = esp_parameters_open(&d->parameters, err, errlen);
    if (status < 0)
        esp_network_close(d);
    return status;
}

static void forget(struct esp_network *d)
{
    if (d->memory) {
        esp_cpu_free(d->memory->block);
        free(d->memory->layer);
        free(d->memory);
    }
    d->memory = NULL;
    d->rows = 0;
}

void esp_network_close(struct esp_network *d)
{
    forget(d);
    esp_parameters_close(&d->parameters);
    free(d->layer);
    d->layer = NULL;
}

/* ------------------------------------------------------------------ memory of a batch */

struct wanted {
    float **where;
    int width;
};

/* The memory of a batch of `rows` rows, in one block. */
static int lay_out(struct esp_network *d, struct esp_network_memory *m, int rows)
{
    enum { OF_LAYER = 15, REST = 12 };
    const struct esp_network_shape *s = &d->shape;
    const int h = s->hidden, queries = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;
    const int count = REST + OF_LAYER * s->layers;
    struct wanted *all = calloc((size_t)count, sizeof *all);
    if (!all)
        return ESP_E_MEMORY;
    const struct wanted rest[REST] = {{&m->input, s->features ? 2 * h : 0},
                                      {&m->dinput, s->features ? 2 * h : h},
                                      {&m->out, h},
                                      {&m->final_factor, 1},
                                      {&m->cosine, s->head_dim / 2},
                                      {&m->sine, s->head_dim / 2},
                                      {&m->d_out, h},
                                      {&m->dx, h},
                                      {&m->dq, queries},
                                      {&m->dnormed, h},
                                      {&m->dffn, s->ffn},
                                      {&m->dattended, queries}};
    memcpy(all, rest, sizeof rest);
    for (int i = 0; i < s->layers; i++) {
        struct layer_memory *l = &m->layer[i];
        const struct wanted of[OF_LAYER] = {{&l->x, h},
                                            {&l->normed1, d->layer[i].norm1 < 0 ? 0 : h},
                                            {&l->factor1, 1},
                                            {&l->q, queries},
                                            {&l->k, keys},
                                            {&l->v, keys},
                                            {&l->attended, queries},
                                            {&l->x1, h},
                                            {&l->normed2, h},
                                            {&l->factor2, 1},
                                            {&l->gate, s->ffn},
                                            {&l->up, s->ffn},
                                            {&l->active, s->ffn},
                                            {&l->dk, keys},
                                            {&l->dv, keys}};
        memcpy(all + REST + i * OF_LAYER, of, sizeof of);
    }
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += floats(rows, all[i].width);
    m->block = esp_cpu_alloc(total, sizeof *m->block);
    float *at = m->block;
    for (int i = 0; i < count && at; i++) {
        *all[i].where = at;
        at += floats(rows, all[i].width);
    }
    free(all);
    return m->block ? ESP_OK : ESP_E_MEMORY;
}

static int make_room(struct esp_network *d, const struct esp_training_rows *rows)
{
    int keys = 0;
    for (int i = 0; i < rows->count; i++)
        keys = rows->seen[i] > keys ? rows->seen[i] : keys;
    int status = esp_workers_reserve(
        d->workers, esp_tree_attention_scratch(QUERIES_TOGETHER, keys, rows->extras));
    if (status < 0 || rows->count <= d->rows)
        return status;
    forget(d);
    d->memory = calloc(1, sizeof *d->memory);
    if (!d->memory)
        return ESP_E_MEMORY;
    d->memory->layer = calloc((size_t)d->shape.layers, sizeof *d->memory->layer);
    status = d->memory->layer ? lay_out(d, d->memory, rows->count) : ESP_E_MEMORY;
    if (status < 0)
        forget(d);
    else
        d->rows = rows->count;
    return status;
}

/* ------------------------------------------------------------------ one step of a pass */

struct step {
    struct esp_network *d;
    const struct esp_training_rows *rows;
    struct esp_network_memory *m;
    const struct esp_network_layer *p;
    struct layer_memory *l;
    int begin, end; /* rows of the pass */
    bool backward;
};

static float *value(const struct step *s, int number)
{
    return esp_parameter_value(&s->d->parameters, number);
}

static float *gradient(const struct step *s, int number)
{
    return esp_parameter_gradient(&s->d->parameters, number);
}

static float *row_of(float *x, int row, int width)
{
    return x + (size_t)row * (size_t)width;
}

/* Cosines and sines of the positions of rows begin..end-1. */
static void angles_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const int half = s->d->shape.head_dim / 2;
    (void)scratch;
    for (int i = begin; i < end; i++)
        for (int j = 0; j < half; j++) {
            float angle = (float)s->rows->position[i] * s->d->shape.inverse_frequency[j];
            row_of(s->m->cosine, i, half)[j] = cosf(angle);
            row_of(s->m->sine, i, half)[j] = sinf(angle);
        }
}

static void embed_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const struct esp_network *d = s->d;
    const int h = d->shape.hidden;
    const float *table = d->shape.features ? d->frozen_embedding : value(s, d->embedding);
    (void)scratch;
    for (int i = s->begin + begin; i < s->begin + end; i++) {
        float *to =
            d->shape.features ? row_of(s->m->input, i, 2 * h) : row_of(s->m->layer[0].x, i, h);
        memcpy(to, table + (size_t)s->rows->token[i] * (size_t)h, (size_t)h * sizeof *to);
        if (!d->shape.features)
            continue;
        const int parent = s->rows->parent[i];
        memcpy(to + h,
               parent < 0 ? s->rows->feature + (size_t)i * (size_t)h
                          : row_of(s->m->out, parent, h),
               (size_t)h * sizeof *to);
    }
}

/* Rotates heads of x (rows, heads * head_dim) by the angles of their rows, or back. */
struct rotation {
    const struct step *s;
    float *x;
    int heads;
};

static void rotate_part(void *arg, int begin, int end, float *scratch)
{
    const struct rotation *r = arg;
    const struct step *s = r->s;
    const int n = s->d->shape.head_dim, half = n / 2;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    float *negative = scratch;
    for (int i = s->begin + begin; i < s->begin + end; i++) {
        const float *sine = row_of(s->m->sine, i, half);
        for (int j = 0; j < half && s->backward; j++)
            negative[j] = -sine[j];
        for (int head = 0; head < r->heads; head++)
            g->rope(row_of(r->x, i, r->heads * n) + head * n, half,
                    row_of(s->m->cosine, i, half), s->backward ? negative : sine);
    }
}

static void rotate(struct step *s, float *x, int heads)
{
    struct rotation r = {s, x, heads};
    esp_workers_share(s->d->workers, s->end - s->begin, rotate_part, &r);
}

/* ------------------------------------------------------------------ attention */

/* The end, within the pass, of the rows of the text of row `row`. */
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
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    const int n = shape->head_dim, kv_head = head / (shape->heads / shape->kv_heads);
    const int queries = shape->heads * n, keys = shape->kv_heads * n,
              first = rows->first[begin];
    struct esp_tree_attention a = {
        .rows = end - begin,
        .head_dim = n,
        .seen = rows->seen + begin,
        .extra = rows->extra + (size_t)begin * (size_t)rows->extras,
        .extras = rows->extras,
        .scale = 1.0f / sqrtf((float)n),
        .q_stride = (size_t)queries,
        .kv_stride = (size_t)keys,
        .q = row_of(s->l->q, begin, queries) + head * n,
        .k = row_of(s->l->k, first, keys) + kv_head * n,
        .v = row_of(s->l->v, first, keys) + kv_head * n,
        .out = row_of(s->l->attended, begin, queries) + head * n,
        .d_out = row_of(s->m->dattended, begin, queries) + head * n,
        .dq = row_of(s->m->dq, begin, queries) + head * n,
        .dk = row_of(s->l->dk, first, keys) + kv_head * n,
        .dv = row_of(s->l->dv, first, keys) + kv_head * n,
        .scratch = scratch,
    };
    for (int i = 0; i < a.rows; i++)
        a.keys = a.seen[i] > a.keys ? a.seen[i] : a.keys;
    if (s->backward)
        g->attention_backward(&a);
    else
        g->attention(&a);
}

/* A task is a key/value head of one text: no other task adds to its keys and values. */
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

/* ------------------------------------------------------------------ forward */

static float *normed1(const struct step *s)
{
    return s->p->norm1 < 0 ? s->l->x : s->l->normed1;
}

/* The layer reads l->x and writes `out`, rows begin..end-1 of each. */
static void forward_layer(struct step *s, float *out)
{
    const struct esp_network_shape *shape = &s->d->shape;
    struct esp_workers *w = s->d->workers;
    struct layer_memory *l = s->l;
    const int n = s->end - s->begin, b = s->begin, h = shape->hidden;
    const int queries = shape->heads * shape->head_dim,
              keys = shape->kv_heads * shape->head_dim;
    const float *x = row_of(normed1(s), b, h);
    if (s->p->norm1 >= 0)
        esp_rmsnorm(w, row_of(l->normed1, b, h), l->factor1 + b, row_of(l->x, b, h),
                    value(s, s->p->norm1), n, h, shape->epsilon);
    esp_linear(w, row_of(l->q, b, queries), x, value(s, s->p->query),
               value(s, s->p->query_bias), n, h, queries, false);
    esp_linear(w, row_of(l->k, b, keys), x, value(s, s->p->key), value(s, s->p->key_bias), n, h,
               keys, false);
    esp_linear(w, row_of(l->v, b, keys), x, value(s, s->p->value), value(s, s->p->value_bias),
               n, h, keys, false);
    rotate(s, l->q, shape->heads);
    rotate(s, l->k, shape->kv_heads);
    attend(s);
    memcpy(row_of(l->x1, b, h), row_of(l->x, b, h), (size_t)n * (size_t)h * sizeof *l->x);
    esp_linear(w, row_of(l->x1, b, h), row_of(l->attended, b, queries), value(s, s->p->output),
               NULL, n, queries, h, true);
    esp_rmsnorm(w, row_of(l->normed2, b, h), l->factor2 + b, row_of(l->x1, b, h),
                value(s, s->p->norm2), n, h, shape->epsilon);
    esp_linear(w, row_of(l->gate, b, shape->ffn), row_of(l->normed2, b, h),
               value(s, s->p->gate), NULL, n, h, shape->ffn, false);
    esp_linear(w, row_of(l->up, b, shape->ffn), row_of(l->normed2, b, h), value(s, s->p->up),
               NULL, n, h, shape->ffn, false);
    esp_swiglu(w, row_of(l->active, b, shape->ffn), row_of(l->gate, b, shape->ffn),
               row_of(l->up, b, shape->ffn), (size_t)n * (size_t)shape->ffn);
    memcpy(row_of(out, b, h), row_of(l->x1, b, h), (size_t)n * (size_t)h * sizeof *out);
    esp_linear(w, row_of(out, b, h), row_of(l->active, b, shape->ffn), value(s, s->p->down),
               NULL, n, shape->ffn, h, true);
}

static void enter_layer(struct step *s, int i)
{
    s->p = &s->d->layer[i];
    s->l = &s->m->layer[i];
}

static void forward_pass(struct step *s)
{
    struct esp_network *d = s->d;
    const int n = s->end - s->begin, b = s->begin, h = d->shape.hidden, last = d->shape.layers;
    esp_workers_share(d->workers, n, embed_part, s);
    if (d->shape.features)
        esp_linear(d->workers, row_of(s->m->layer[0].x, b, h), row_of(s->m->input, b, 2 * h),
                   value(s, d->fc), value(s, d->fc_bias), n, 2 * h, h, false);
    /* The output of the last layer is in dx, for the final norm, if there is one. */
    for (int i = 0; i < last; i++) {
        enter_layer(s, i);
        forward_layer(s, i + 1 < last         ? s->m->layer[i + 1].x
                         : d->norm_final >= 0 ? s->m->dx
                                              : s->m->out);
    }
    if (d->norm_final >= 0)
        esp_rmsnorm(d->workers, row_of(s->m->out, b, h), s->m->final_factor + b,
                    row_of(s->m->dx, b, h), value(s, d->norm_final), n, h, d->shape.epsilon);
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
    return d->memory->out;
}

/* ------------------------------------------------------------------ backward */

float *esp_network_output_gradient(struct esp_network *d, const struct esp_training_rows *rows)
{
    const size_t keys = (size_t)d->shape.kv_heads * (size_t)d->shape.head_dim;
    memset(d->memory->d_out, 0,
           (size_t)rows->count * (size_t)d->shape.hidden * sizeof *d->memory->d_out);
    for (int i = 0; i < d->shape.layers; i++) {
        memset(d->memory->layer[i].dk, 0, (size_t)rows->count * keys * sizeof(float));
        memset(d->memory->layer[i].dv, 0, (size_t)rows->count * keys * sizeof(float));
    }
    return d->memory->d_out;
}

/* dx (rows begin..end-1) is the gradient by the output of the residual MLP, and becomes the
 * gradient by its input. */
static void backward_mlp(struct step *s, float *dx)
{
    const struct esp_network_shape *shape = &s->d->shape;
    struct esp_workers *w = s->d->workers;
    struct layer_memory *l = s->l;
    const int n = s->end - s->begin, b = s->begin, h = shape->hidden, f = shape->ffn;
    float *dnormed = row_of(s->m->dnormed, b, h), *dffn = row_of(s->m->dffn, b, f);
    float *gate = row_of(l->gate, b, f), *up = row_of(l->up, b, f);
    const float *normed = row_of(l->normed2, b, h);
    esp_linear_dx(w, dffn, dx, value(s, s->p->down), n, f, h, false);
    esp_linear_dw(w, gradient(s, s->p->down), NULL, dx, row_of(l->active, b, f), n, f, h);
    esp_swiglu_backward(w, gate, up, dffn, (size_t)n * (size_t)f);
    esp_linear_dx(w, dnormed, gate, value(s, s->p->gate), n, h, f, false);
    esp_linear_dx(w, dnormed, up, value(s, s->p->up), n, h, f, true);
    esp_linear_dw(w, gradient(s, s->p->gate), NULL, gate, normed, n, h, f);
    esp_linear_dw(w, gradient(s, s->p->up), NULL, up, normed, n, h, f);
    esp_rmsnorm_backward(w, dx, gradient(s, s->p->norm2), row_of(l->x1, b, h),
                         value(s, s->p->norm2), dnormed, l->factor2 + b, n, h);
}

/* The same for the attention. */
static void backward_attention(struct step *s, float *dx)
{
    const struct esp_network_shape *shape = &s->d->shape;
    struct esp_workers *w = s->d->workers;
    struct layer_memory *l = s->l;
    const int n = s->end - s->begin, b = s->begin, h = shape->hidden;
    const int queries = shape->heads * shape->head_dim,
              keys = shape->kv_heads * shape->head_dim;
    const float *x = row_of(normed1(s), b, h);
    float *dq = row_of(s->m->dq, b, queries), *dk = row_of(l->dk, b, keys);
    float *dv = row_of(l->dv, b, keys), *dnormed = row_of(s->m->dnormed, b, h);
    esp_linear_dx(w, row_of(s->m->dattended, b, queries), dx, value(s, s->p->output), n,
                  queries, h, false);
    esp_linear_dw(w, gradient(s, s->p->output), NULL, dx, row_of(l->attended, b, queries), n,
                  queries, h);
    attend(s);
    rotate(s, s->m->dq, shape->heads);
    rotate(s, l->dk, shape->kv_heads);
    esp_linear_dw(w, gradient(s, s->p->query), gradient(s, s->p->query_bias), dq, x, n, h,
                  queries);
    esp_linear_dw(w, gradient(s, s->p->key), gradient(s, s->p->key_bias), dk, x, n, h, keys);
    esp_linear_dw(w, gradient(s, s->p->value), gradient(s, s->p->value_bias), dv, x, n, h,
                  keys);
    const bool norm = s->p->norm1 >= 0;
    float *to = norm ? dnormed : dx;
    esp_linear_dx(w, to, dq, value(s, s->p->query), n, h, queries, !norm);
    esp_linear_dx(w, to, dk, value(s, s->p->key), n, h, keys, true);
    esp_linear_dx(w, to, dv, value(s, s->p->value), n, h, keys, true);
    if (norm)
        esp_rmsnorm_backward(w, dx, gradient(s, s->p->norm1), row_of(l->x, b, h),
                             value(s, s->p->norm1), dnormed, l->factor1 + b, n, h);
}

struct scatter {
    const struct step *s;
    const float *dx;
};

/* Columns begin..end-1 of the gradient of the embedding. */
static void scatter_part(void *arg, int begin, int end, float *scratch)
{
    const struct scatter *c = arg;
    const struct step *s = c->s;
    const int h = s->d->shape.hidden;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    (void)scratch;
    for (int i = s->begin; i < s->end; i++)
        g->add(row_of(gradient(s, s->d->embedding), s->rows->token[i], h) + begin,
               c->dx + (size_t)(i - s->begin) * (size_t)h + begin, (size_t)(end - begin));
}

/* Columns begin..end-1 of the gradients by outputs that were features of this pass. */
static void feed_back_part(void *arg, int begin, int end, float *scratch)
{
    const struct step *s = arg;
    const int h = s->d->shape.hidden;
    const struct esp_cpu_gradients *g = esp_workers_gradients(s->d->workers);
    (void)scratch;
    for (int i = s->begin; i < s->end; i++)
        if (s->rows->parent[i] >= 0)
            g->add(row_of(s->m->d_out, s->rows->parent[i], h) + begin,
                   row_of(s->m->dinput, i, 2 * h) + h + begin, (size_t)(end - begin));
}

static void backward_input(struct step *s, float *dx)
{
    struct esp_network *d = s->d;
    const int n = s->end - s->begin, b = s->begin, h = d->shape.hidden;
    if (!d->shape.features) {
        struct scatter c = {s, dx};
        esp_workers_share(d->workers, h, scatter_part, &c);
        return;
    }
    esp_linear_dw(d->workers, gradient(s, d->fc), gradient(s, d->fc_bias), dx,
                  row_of(s->m->input, b, 2 * h), n, 2 * h, h);
    if (b == 0)
        return; /* the features were the target's */
    esp_linear_dx(d->workers, row_of(s->m->dinput, b, 2 * h), dx, value(s, d->fc), n, 2 * h, h,
                  false);
    esp_workers_share(d->workers, h, feed_back_part, s);
}

static void backward_pass(struct step *s)
{
    struct esp_network *d = s->d;
    const int n = s->end - s->begin, h = d->shape.hidden;
    float *d_out = row_of(s->m->d_out, s->begin, h), *dx = d_out;
    if (d->norm_final >= 0) {
        /* Rows begin..end-1 of dx still hold the input of the norm. */
        dx = s->m->dinput;
        memset(dx, 0, (size_t)n * (size_t)h * sizeof *dx);
        esp_rmsnorm_backward(d->workers, dx, gradient(s, d->norm_final),
                             row_of(s->m->dx, s->begin, h), value(s, d->norm_final), d_out,
                             s->m->final_factor + s->begin, n, h);
    }
    for (int i = d->shape.layers - 1; i >= 0; i--) {
        enter_layer(s, i);
        backward_mlp(s, dx);
        backward_attention(s, dx);
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
