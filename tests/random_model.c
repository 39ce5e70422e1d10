/* random_model.c - makes random weights and computes the reference; see random_model.h. */
#include "tests/random_model.h"

#include "kernels/model_desc.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ weights */

/* Stores a number in the given type, rounded towards zero. All numbers that tests use are far
 * from the limits of the type's range. */
static void store(unsigned char *at, enum esp_dtype dtype, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    uint32_t sign = bits >> 31, exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
    uint16_t half = (uint16_t)(bits >> 16);
    if (dtype == ESP_F32) {
        memcpy(at, &bits, sizeof bits);
        return;
    }
    if (dtype == ESP_F16)
        half = exponent < 113
                   ? (uint16_t)(sign << 15)
                   : (uint16_t)(sign << 15 | (exponent - 112) << 10 | fraction >> 13);
    memcpy(at, &half, sizeof half);
}

/* Reads `count` numbers of a row, beginning at column `column`. */
static void read_values(const struct esp_tensor *t, int row, int column, int count, double *to)
{
    const size_t size = t->dtype == ESP_F32 ? 4 : 2;
    const size_t at =
        (size_t)(row / t->block * t->stride + row % t->block) * (size_t)t->columns;
    const unsigned char *p = (const unsigned char *)t->data + (at + (size_t)column) * size;
    if (t->dtype == ESP_F32) {
        for (int i = 0; i < count; i++) {
            float value;
            memcpy(&value, p + 4 * i, sizeof value);
            to[i] = value;
        }
    } else if (t->dtype == ESP_BF16) { /* BF16 is the upper half of a float */
        for (int i = 0; i < count; i++) {
            uint32_t bits = (uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24;
            float value;
            memcpy(&value, &bits, sizeof value);
            to[i] = value;
        }
    } else {
        for (int i = 0; i < count; i++) {
            int bits = p[2 * i] | p[2 * i + 1] << 8, sign = bits & 0x8000 ? -1 : 1;
            int exponent = (bits & 0x7fff) >> 10, fraction = bits & 1023;
            to[i] = sign * (exponent == 0 ? ldexp(fraction, -24)
                                          : ldexp(fraction + 1024, exponent - 25));
        }
    }
}

static double value_of(const struct esp_tensor *t, int row, int column)
{
    double value;
    read_values(t, row, column, 1, &value);
    return value;
}

/* Makes a tensor of `rows` x `columns` random numbers around `middle`. The model owns the
 * tensor's memory. The address is odd, to test unaligned reads. */
static struct esp_tensor tensor(struct random_model *m, int rows, int columns, double middle,
                                double spread)
{
    enum esp_dtype dtype = esp_dtype_quantised(m->shape.dtype) ? ESP_F32 : m->shape.dtype;
    size_t size = dtype == ESP_F32 ? 4 : 2, n = (size_t)rows * (size_t)columns;
    unsigned char *data = malloc(n * size + 1);
    m->memory[m->count++] = data;
    for (size_t i = 0; i < n; i++)
        store(data + 1 + i * size, dtype, middle + spread * (2 * check_uniform(&m->state) - 1));
    return (struct esp_tensor){.data = data + 1,
                               .dtype = dtype,
                               .rows = rows,
                               .columns = columns,
                               .block = rows,
                               .stride = rows};
}

/* Returns a quantised type for tensor number `i`. Successive tensors get different types. The
 * type's block size divides the number of columns. */
static enum esp_dtype type_of(int i, int columns)
{
    for (;; i++) {
        enum esp_dtype dtype = (enum esp_dtype)(ESP_Q8_0 + i % (ESP_DTYPE_COUNT - ESP_Q8_0));
        if (columns % esp_dtype_block(dtype) == 0)
            return dtype;
    }
}

static struct esp_tensor quantised(struct random_model *m, enum esp_dtype dtype, int rows,
                                   int columns)
{
    const size_t row_bytes = esp_dtype_row_bytes(dtype, columns);
    float *row = malloc((size_t)columns * sizeof *row);
    char *data = malloc((size_t)rows * row_bytes);
    m->memory[m->count++] = data;
    for (int i = 0; i < rows; i++) {
        for (int c = 0; c < columns; c++)
            row[c] = (float)((4 * check_uniform(&m->state) - 2) / sqrt(columns));
        esp_quantise(dtype, row, columns, data + (size_t)i * row_bytes);
    }
    free(row);
    return (struct esp_tensor){.data = data,
                               .dtype = dtype,
                               .rows = rows,
                               .columns = columns,
                               .block = rows,
                               .stride = rows};
}

static struct esp_tensor matrix(struct random_model *m, int rows, int columns)
{
    if (esp_dtype_quantised(m->shape.dtype))
        return quantised(m, type_of(m->count, columns), rows, columns);
    return tensor(m, rows, columns, 0, 2 / sqrt(columns));
}

/* Makes matrix number `part` of an expert. As in model files, this matrix has the same type in
 * all experts. */
static struct esp_tensor expert_matrix(struct random_model *m, int part, int rows, int columns)
{
    if (esp_dtype_quantised(m->shape.dtype))
        return quantised(m, type_of(m->shape.dtype - ESP_Q8_0 + part, columns), rows, columns);
    return matrix(m, rows, columns);
}

static struct esp_tensor bias(struct random_model *m, int rows)
{
    struct esp_tensor none = {0};
    return m->shape.bias ? tensor(m, rows, 1, 0, 0.5) : none;
}

/* Returns q, k or v, which is part number `part` of the tensor `fused`. In this tensor, the
 * rows of q, k and v of each head are stored together. */
static struct esp_tensor third(struct esp_tensor fused, int part, int head_dim)
{
    if (!fused.data)
        return fused;
    size_t size = fused.dtype == ESP_F32 ? 4 : 2;
    fused.data = (const char *)fused.data +
                 (size_t)part * (size_t)head_dim * (size_t)fused.columns * size;
    fused.rows /= 3;
    fused.block = head_dim;
    fused.stride = 3 * head_dim;
    return fused;
}

static void make_layer(struct random_model *m, struct esp_layer *layer)
{
    const struct random_shape *s = &m->shape;
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    layer->norm1 = tensor(m, s->hidden, 1, 1, 0.3);
    layer->norm2 = tensor(m, s->hidden, 1, 1, 0.3);
    if (s->neox) {
        struct esp_tensor fused = matrix(m, 3 * q, s->hidden), fused_bias = bias(m, 3 * q);
        layer->norm1_bias = tensor(m, s->hidden, 1, 0, 0.3);
        layer->norm2_bias = tensor(m, s->hidden, 1, 0, 0.3);
        layer->query = third(fused, 0, s->head_dim);
        layer->key = third(fused, 1, s->head_dim);
        layer->value = third(fused, 2, s->head_dim);
        layer->query_bias = third(fused_bias, 0, s->head_dim);
        layer->key_bias = third(fused_bias, 1, s->head_dim);
        layer->value_bias = third(fused_bias, 2, s->head_dim);
    } else {
        layer->query = matrix(m, q, s->hidden);
        layer->key = matrix(m, kv, s->hidden);
        layer->value = matrix(m, kv, s->hidden);
        layer->query_bias = bias(m, q);
        layer->key_bias = bias(m, kv);
        layer->value_bias = bias(m, kv);
        if (s->head_norm) {
            layer->query_norm = tensor(m, s->head_dim, 1, 1, 0.3);
            layer->key_norm = tensor(m, s->head_dim, 1, 1, 0.3);
        }
        layer->gate = matrix(m, s->ffn, s->hidden);
        layer->gate_bias = bias(m, s->ffn);
    }
    layer->output = matrix(m, s->hidden, q);
    layer->output_bias = bias(m, s->hidden);
    layer->up = matrix(m, s->ffn, s->hidden);
    layer->up_bias = bias(m, s->ffn);
    layer->down = matrix(m, s->hidden, s->ffn);
    layer->down_bias = bias(m, s->hidden);
}

void random_model_make(struct random_model *m, const struct random_shape *s,
                       unsigned long long seed)
{
    *m = (struct random_model){.shape = *s, .state = seed};
    for (int i = 0; i < s->rotary / 2; i++)
        m->inverse_frequency[i] = (float)pow(10000, -2.0 * i / s->rotary);
    for (int i = 0; i < s->layers; i++)
        make_layer(m, &m->layers[i]);
    m->desc = (struct esp_model_desc){
        .layers = s->layers,
        .hidden = s->hidden,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .ffn = s->ffn,
        .vocabulary = s->vocabulary,
        .outputs = s->vocabulary,
        .context = 1024,
        .norm = s->neox ? ESP_NORM_LAYER : ESP_NORM_RMS,
        .activation = s->neox ? ESP_GELU : ESP_SWIGLU,
        .parallel_residual = s->parallel,
        .norm_epsilon = 1e-5f,
        .rotary = s->rotary,
        .inverse_frequency = m->inverse_frequency,
        .embedding = tensor(m, s->vocabulary, s->hidden, 0, 1),
        .norm_final = tensor(m, s->hidden, 1, 1, 0.3),
        .layer = m->layers,
    };
    if (s->neox)
        m->desc.norm_final_bias = tensor(m, s->hidden, 1, 0, 0.3);
    m->desc.head = s->tied ? m->desc.embedding : matrix(m, s->vocabulary, s->hidden);
}

void random_head_make(struct random_model *m, const struct random_shape *s,
                      unsigned long long seed)
{
    const struct esp_tensor none = {0};
    random_model_make(m, s, seed);
    m->desc.reads = ESP_READS_EAGLE;
    m->desc.input = s->hidden;
    m->desc.fc = matrix(m, s->hidden, 2 * s->hidden);
    m->desc.fc_bias = tensor(m, s->hidden, 1, 0, 0.5);
    m->desc.norm_final = m->layers[0].norm1 = none;
}

void random_model_mix(struct random_model *m, int layer, int used, int expert_ffn)
{
    struct esp_layer *l = &m->layers[layer];
    const struct esp_tensor none = {0};
    const int hidden = m->desc.hidden;
    m->desc.experts = RANDOM_EXPERTS;
    m->desc.experts_used = used;
    m->desc.expert_ffn = expert_ffn;
    l->router = tensor(m, RANDOM_EXPERTS, hidden, 0, 2 / sqrt(hidden));
    l->expert = m->experts;
    for (int i = 0; i < RANDOM_EXPERTS; i++)
        m->experts[i] = (struct esp_expert){.gate = expert_matrix(m, 0, expert_ffn, hidden),
                                            .gate_bias = bias(m, expert_ffn),
                                            .up = expert_matrix(m, 1, expert_ffn, hidden),
                                            .up_bias = bias(m, expert_ffn),
                                            .down = expert_matrix(m, 2, hidden, expert_ffn),
                                            .down_bias = bias(m, hidden)};
    l->gate = l->up = l->down = none;
}

void random_model_add_sinks(struct random_model *m)
{
    for (int i = 0; i < m->desc.layers; i++) {
        m->layers[i].sink_logit = tensor(m, m->desc.heads, 1, 0, 2);
        if (m->layers[i].router.data)
            m->layers[i].router_bias = tensor(m, RANDOM_EXPERTS, 1, 0, 1);
    }
    m->desc.activation = ESP_SWIGLU_CLAMPED;
    m->desc.clamp = (struct esp_clamp){0.8f, 1.702f};
}

void random_model_recur(struct random_model *m, int layer, enum esp_mixer mixer)
{
    struct esp_layer *l = &m->layers[layer];
    struct esp_model_desc *d = &m->desc;
    const struct esp_tensor none = {0};
    const bool conv = mixer == ESP_MIXER_CONV;
    d->conv_kernel = 4;
    d->state_heads = conv ? 0 : 4;
    d->key_heads = conv ? 0 : 2;
    d->key_dim = conv ? 0 : d->key_dim > 0 ? d->key_dim : 12;
    d->value_dim = conv ? 0 : 32;
    d->least_step = 0.01f;
    d->most_step = 2.0f;
    const int width = esp_conv_width(d, mixer), out = esp_mixed_width(d, mixer);
    l->mixer = mixer;
    l->query = l->key = l->value = l->output = l->query_norm = l->key_norm = none;
    l->query_bias = l->key_bias = l->value_bias = l->output_bias = none;
    l->conv_in = matrix(m, width, d->hidden);
    l->out_gate = matrix(m, out, d->hidden);
    l->conv = tensor(m, width, d->conv_kernel, 0, 1);
    l->conv_bias = tensor(m, width, 1, 0, 0.5);
    l->mixed = matrix(m, d->hidden, out);
    if (conv) {
        l->in_gate = matrix(m, width, d->hidden);
        return;
    }
    l->decay = matrix(m, d->state_heads, d->hidden);
    l->decay_bias = tensor(m, d->state_heads, 1, 0, 1);
    l->rate = tensor(m, d->state_heads, 1, -0.15, 0.1);
    l->mixed_norm = tensor(m, mixer == ESP_MIXER_SSM ? out : d->value_dim, 1, 1, 0.3);
    if (mixer == ESP_MIXER_SSM)
        l->skip = tensor(m, d->state_heads, 1, 0, 1);
    else
        l->write = matrix(m, d->state_heads, d->hidden);
}

void random_model_free(struct random_model *m)
{
    for (int i = 0; i < m->count; i++)
        free(m->memory[i]);
}

/* ------------------------------------------------------------------ the reference */

static void norm(const struct random_model *m, const struct esp_tensor *weight,
                 const struct esp_tensor *shift, const double *x, double *out)
{
    int n = m->desc.hidden;
    double mean = 0, variance = 0;
    if (!weight->data) {
        memcpy(out, x, (size_t)n * sizeof *out);
        return;
    }
    for (int i = 0; m->shape.neox && i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        out[i] =
            (x[i] - mean) / sqrt(variance + m->desc.norm_epsilon) * value_of(weight, i, 0) +
            (shift->data ? value_of(shift, i, 0) : 0);
}

static void linear(const struct esp_tensor *w, const struct esp_tensor *b, const double *x,
                   double *out)
{
    double *row = malloc((size_t)w->columns * sizeof *row);
    for (int i = 0; i < w->rows; i++) {
        out[i] = b && b->data ? value_of(b, i, 0) : 0;
        read_values(w, i, 0, w->columns, row);
        for (int j = 0; j < w->columns; j++)
            out[i] += row[j] * x[j];
    }
    free(row);
}

static void norm_heads(const struct random_model *m, const struct esp_tensor *weight,
                       double *heads, int count)
{
    int n = m->desc.head_dim;
    for (int h = 0; weight->data && h < count; h++) {
        double *x = heads + h * n, square = 0;
        for (int i = 0; i < n; i++)
            square += x[i] * x[i] / n;
        for (int i = 0; i < n; i++)
            x[i] *= value_of(weight, i, 0) / sqrt(square + m->desc.norm_epsilon);
    }
}

static void rotate(const struct random_model *m, double *heads, int count, int position)
{
    int half = m->desc.rotary / 2;
    for (int h = 0; h < count; h++)
        for (int i = 0; i < half; i++) {
            double *x = heads + h * m->desc.head_dim + i, a = x[0], b = x[half];
            double angle = (double)position * m->inverse_frequency[i];
            x[0] = a * cos(angle) - b * sin(angle);
            x[half] = b * cos(angle) + a * sin(angle);
        }
}

/* Computes the attention of one query head of a node, over the node and its ancestors. */
static void attend(const struct random_model *m, const double *q, const double *keys,
                   const double *values, size_t stride, const int32_t *parents, int node,
                   int window, double *out)
{
    int dim = m->desc.head_dim, seen = 0;
    double total = 0;
    memset(out, 0, (size_t)dim * sizeof *out);
    for (int at = node; at >= 0 && (window == 0 || seen < window); at = parents[at], seen++) {
        double score = 0;
        for (int i = 0; i < dim; i++)
            score += q[i] * keys[(size_t)at * stride + (size_t)i];
        double weight = exp(score / sqrt(dim));
        total += weight;
        for (int i = 0; i < dim; i++)
            out[i] += weight * values[(size_t)at * stride + (size_t)i];
    }
    for (int i = 0; i < dim; i++)
        out[i] /= total;
}

static void mlp(const struct random_model *m, const struct esp_layer *layer, const double *x,
                double *out)
{
    int n = m->desc.ffn;
    double *up = calloc((size_t)n, sizeof *up), *gate = calloc((size_t)n, sizeof *gate);
    linear(&layer->up, &layer->up_bias, x, up);
    if (!m->shape.neox)
        linear(&layer->gate, &layer->gate_bias, x, gate);
    for (int i = 0; i < n; i++)
        up[i] *=
            m->shape.neox ? 0.5 * (1 + erf(up[i] / sqrt(2))) : gate[i] / (1 + exp(-gate[i]));
    linear(&layer->down, &layer->down_bias, up, out);
    free(up);
    free(gate);
}

/* Computes the input x (hidden) of layer 0. */
static void begin(const struct random_model *m, int32_t token, const double *input, double *x)
{
    const struct esp_model_desc *d = &m->desc;
    double *joined = calloc((size_t)(d->hidden + d->input), sizeof *joined);
    for (int i = 0; i < d->hidden; i++)
        joined[i] = value_of(&d->embedding, token, i);
    for (int i = 0; i < d->input; i++)
        joined[d->hidden + i] = input[i];
    if (d->reads == ESP_READS_EAGLE)
        linear(&d->fc, &d->fc_bias, joined, x);
    else
        memcpy(x, joined, (size_t)d->hidden * sizeof *x);
    free(joined);
}

void random_model_reference(const struct random_model *m, const int32_t *tokens,
                            const int32_t *parents, int n, double *logits)
{
    random_model_states(m, tokens, parents, n, NULL, NULL, logits);
}

void random_model_states(const struct random_model *m, const int32_t *tokens,
                         const int32_t *parents, int n, const double *input, double *states,
                         double *logits)
{
    const struct esp_model_desc *d = &m->desc;
    size_t hidden = (size_t)d->hidden, dim = (size_t)d->head_dim;
    size_t q_width = (size_t)d->heads * dim, kv_width = (size_t)d->kv_heads * dim;
    double *x = calloc((size_t)n * hidden, sizeof *x), *q = calloc(q_width, sizeof *q);
    double *keys = calloc((size_t)(d->layers * n) * kv_width, sizeof *keys);
    double *values = calloc((size_t)(d->layers * n) * kv_width, sizeof *values);
    double *normed = calloc(hidden, sizeof *normed), *mixed = calloc(q_width, sizeof *mixed);
    double *attended = calloc(hidden, sizeof *attended), *fed = calloc(hidden, sizeof *fed);
    for (int node = 0; node < n; node++) {
        double *at = x + (size_t)node * hidden;
        int depth = 0;
        for (int up = parents[node]; up >= 0; up = parents[up])
            depth++;
        begin(m, tokens[node], input ? input + (size_t)node * (size_t)d->input : NULL, at);
        for (int l = 0; l < d->layers; l++) {
            if (states)
                memcpy(states + (size_t)(l * n + node) * hidden, at, hidden * sizeof *at);
            const struct esp_layer *layer = &d->layer[l];
            double *k = keys + (size_t)(l * n) * kv_width,
                   *v = values + (size_t)(l * n) * kv_width;
            norm(m, &layer->norm1, &layer->norm1_bias, at, normed);
            linear(&layer->query, &layer->query_bias, normed, q);
            linear(&layer->key, &layer->key_bias, normed, k + (size_t)node * kv_width);
            linear(&layer->value, &layer->value_bias, normed, v + (size_t)node * kv_width);
            norm_heads(m, &layer->query_norm, q, d->heads);
            norm_heads(m, &layer->key_norm, k + (size_t)node * kv_width, d->kv_heads);
            rotate(m, q, d->heads, depth);
            rotate(m, k + (size_t)node * kv_width, d->kv_heads, depth);
            for (int h = 0; h < d->heads; h++) {
                size_t shared = (size_t)(h / (d->heads / d->kv_heads)) * dim;
                attend(m, q + (size_t)h * dim, k + shared, v + shared, kv_width, parents, node,
                       layer->window, mixed + (size_t)h * dim);
            }
            linear(&layer->output, &layer->output_bias, mixed, attended);
            for (int i = 0; !d->parallel_residual && i < d->hidden; i++)
                at[i] += attended[i];
            norm(m, &layer->norm2, &layer->norm2_bias, at, normed);
            mlp(m, layer, normed, fed);
            for (int i = 0; i < d->hidden; i++)
                at[i] += fed[i] + (d->parallel_residual ? attended[i] : 0);
        }
        norm(m, &d->norm_final, &d->norm_final_bias, at, normed);
        for (int l = d->layers; states && l < d->layers + 2; l++)
            memcpy(states + (size_t)(l * n + node) * hidden, l == d->layers ? at : normed,
                   hidden * sizeof *at);
        linear(&d->head, NULL, normed, logits + (size_t)node * (size_t)d->vocabulary);
    }
    free(x), free(q), free(keys), free(values), free(normed), free(mixed), free(attended),
        free(fed);
}
