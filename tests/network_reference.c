/* network_reference.c - computes the network of engine/train in a simple way; see
 * network_reference.h. */
#include "tests/network_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static const float frequencies[3] = {1.0f, 0.3f, 0.05f};

void reference_shape(struct esp_network_shape *shape, bool features, bool bias, bool tied)
{
    *shape = (struct esp_network_shape){
        .layers = features ? 1 : 2,
        .hidden = REFERENCE_HIDDEN,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 6,
        .ffn = 19,
        .vocabulary = REFERENCE_VOCABULARY,
        .features = features,
        .fc_bias = bias,
        .qkv_bias = bias,
        .tied = tied,
        .epsilon = 1e-5f,
        .inverse_frequency = frequencies,
    };
}

void reference_randomise(struct esp_parameters *p, unsigned long long seed)
{
    for (int i = 0; i < p->count; i++)
        for (size_t j = 0; j < esp_parameter_size(&p->list[i]); j++) {
            double x = 2 * check_uniform(&seed) - 1;
            bool norm = strstr(p->list[i].name, "norm");
            p->value[p->list[i].offset + j] = (float)(norm ? 1 + 0.3 * x : 0.25 * x);
        }
}

/* ------------------------------------------------------------------ the batch */

static int add_row(struct reference_batch *b, int token, int position, int first, int seen,
                   int parent, int depth)
{
    const int row = b->rows.count++;
    b->token[row] = token;
    b->position[row] = position;
    b->first[row] = first;
    b->seen[row] = seen;
    b->parent[row] = parent;
    b->depth[row] = depth;
    b->extra[2 * row] = b->extra[2 * row + 1] = -1;
    if (depth > 0)
        b->extra[2 * row + depth - 1] = row - first;
    if (depth > 1)
        b->extra[2 * row] = parent - first;
    return row;
}

static const int lengths[2] = {6, 4};

static void add_text(struct reference_batch *b, int text, unsigned long long *state)
{
    const int first = b->rows.count;
    for (int i = 0; i < lengths[text]; i++)
        add_row(b, (int)(check_uniform(state) * REFERENCE_VOCABULARY), i, first, i + 1, -1, 0);
}

/* Adds the nodes of depth `depth` of all trees of a text. Writes their rows to
 * at[root][child], which contains the rows of their parents if `depth` is 2. */
static void add_nodes(struct reference_batch *b, int text, int first, int depth, int at[3][2],
                      unsigned long long *state)
{
    for (int root = 0; 2 * root < lengths[text]; root++)
        for (int child = 0; child < 2; child++)
            at[root][child] = add_row(b, (int)(check_uniform(state) * REFERENCE_VOCABULARY),
                                      2 * root + depth, first, 2 * root + 1,
                                      depth > 1 ? at[root][child] : first + 2 * root, depth);
}

void reference_batch_make(struct reference_batch *b, bool features)
{
    unsigned long long state = 7;
    int at[2][3][2], first[2] = {0, lengths[0]};
    *b = (struct reference_batch){0};
    if (features) {
        for (int text = 0; text < 2; text++)
            add_text(b, text, &state);
        b->rows.pass_end[b->rows.passes++] = b->rows.count;
        for (int depth = 1; depth <= 2; depth++) {
            for (int text = 0; text < 2; text++)
                add_nodes(b, text, first[text], depth, at[text], &state);
            b->rows.pass_end[b->rows.passes++] = b->rows.count;
        }
    } else {
        for (int text = 0; text < 2; text++) {
            first[text] = b->rows.count;
            add_text(b, text, &state);
            for (int depth = 1; depth <= 2; depth++)
                add_nodes(b, text, first[text], depth, at[text], &state);
        }
        b->rows.pass_end[b->rows.passes++] = b->rows.count;
    }
    b->rows.extras = 2;
    b->rows.token = b->token;
    b->rows.position = b->position;
    b->rows.parent = b->parent;
    b->rows.first = b->first;
    b->rows.seen = b->seen;
    b->rows.extra = b->extra;
    b->rows.feature = features ? b->feature : NULL;
    for (int i = 0; i < b->rows.count; i++)
        b->weight[i] = (float)(0.02 + 0.1 * check_uniform(&state));
    for (int i = 0; i < REFERENCE_ROWS * REFERENCE_HIDDEN; i++) {
        b->feature[i] = (float)(2 * check_uniform(&state) - 1);
        b->target_feature[i] = (float)(4 * check_uniform(&state) - 2);
    }
}

/* ------------------------------------------------------------------ the network */

struct memory {
    double k[4][REFERENCE_ROWS][12], v[4][REFERENCE_ROWS][12];
    double out[REFERENCE_ROWS][REFERENCE_HIDDEN];
};

static const double *weights_of(const struct esp_network *d, const double *value, int number)
{
    return number < 0 ? NULL : value + d->parameters.list[number].offset;
}

static void multiply(double *y, const double *w, const double *bias, const double *x, int out,
                     int in)
{
    for (int i = 0; i < out; i++) {
        y[i] = bias ? bias[i] : 0;
        for (int j = 0; j < in; j++)
            y[i] += w[i * in + j] * x[j];
    }
}

static void norm(double *y, const double *w, const double *x, int n, double epsilon)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / n + epsilon) * w[i];
}

static void rotate(double *x, int heads, int position)
{
    for (int head = 0; head < heads; head++)
        for (int i = 0; i < 3; i++) {
            double *a = &x[head * 6 + i], *b = a + 3, angle = position * (double)frequencies[i];
            double rotated = *a * cos(angle) - *b * sin(angle);
            *b = *b * cos(angle) + *a * sin(angle);
            *a = rotated;
        }
}

static void attend(const struct reference_batch *b, const struct memory *m, int layer, int row,
                   const double *q, double *out)
{
    int sees[REFERENCE_ROWS], count = 0;
    for (int i = 0; i < b->seen[row]; i++)
        sees[count++] = b->first[row] + i;
    for (int i = 0; i < 2; i++)
        if (b->extra[2 * row + i] >= 0)
            sees[count++] = b->first[row] + b->extra[2 * row + i];
    for (int head = 0; head < 4; head++) {
        double weight[REFERENCE_ROWS], total = 0;
        for (int i = 0; i < count; i++) {
            double score = 0;
            for (int j = 0; j < 6; j++)
                score += q[head * 6 + j] * m->k[layer][sees[i]][head / 2 * 6 + j];
            total += weight[i] = exp(score / sqrt(6.0));
        }
        for (int j = 0; j < 6; j++) {
            out[head * 6 + j] = 0;
            for (int i = 0; i < count; i++)
                out[head * 6 + j] += weight[i] / total * m->v[layer][sees[i]][head / 2 * 6 + j];
        }
    }
}

static void run_layer(const struct esp_network *d, const double *value,
                      const struct reference_batch *b, struct memory *m, int layer, int row,
                      double *x)
{
    enum { H = REFERENCE_HIDDEN, F = 19 };
    const struct esp_network_layer *l = &d->layer[layer];
    double n[H], q[H], a[H], y[H], gate[F], up[F];
    memcpy(n, x, sizeof n);
    if (l->norm1 >= 0)
        norm(n, weights_of(d, value, l->norm1), x, H, d->shape.epsilon);
    multiply(q, weights_of(d, value, l->query.weight), weights_of(d, value, l->query.bias), n,
             H, H);
    multiply(m->k[layer][row], weights_of(d, value, l->key.weight),
             weights_of(d, value, l->key.bias), n, 12, H);
    multiply(m->v[layer][row], weights_of(d, value, l->value.weight),
             weights_of(d, value, l->value.bias), n, 12, H);
    rotate(q, 4, b->position[row]);
    rotate(m->k[layer][row], 2, b->position[row]);
    attend(b, m, layer, row, q, a);
    multiply(y, weights_of(d, value, l->output.weight), NULL, a, H, H);
    for (int i = 0; i < H; i++)
        x[i] += y[i];
    norm(n, weights_of(d, value, l->norm2), x, H, d->shape.epsilon);
    multiply(gate, weights_of(d, value, l->gate.weight), NULL, n, F, H);
    multiply(up, weights_of(d, value, l->up.weight), NULL, n, F, H);
    for (int i = 0; i < F; i++)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    multiply(y, weights_of(d, value, l->down.weight), NULL, up, H, F);
    for (int i = 0; i < H; i++)
        x[i] += y[i];
}

static void run_row(const struct esp_network *d, const double *value,
                    const struct reference_batch *b, struct memory *m, int row)
{
    enum { H = REFERENCE_HIDDEN };
    double x[H], input[2 * H];
    if (d->shape.features) {
        for (int i = 0; i < H; i++) {
            input[i] = d->frozen_embedding[b->token[row] * H + i];
            input[H + i] =
                b->parent[row] < 0 ? b->feature[row * H + i] : m->out[b->parent[row]][i];
        }
        multiply(x, weights_of(d, value, d->fc.weight), weights_of(d, value, d->fc.bias), input,
                 H, 2 * H);
    } else {
        memcpy(x, weights_of(d, value, d->embedding) + b->token[row] * H, sizeof x);
    }
    for (int layer = 0; layer < d->shape.layers; layer++)
        run_layer(d, value, b, m, layer, row, x);
    memcpy(m->out[row], x, sizeof x);
    if (d->norm_final >= 0)
        norm(m->out[row], weights_of(d, value, d->norm_final), x, H, d->shape.epsilon);
}

/* ------------------------------------------------------------------ the loss */

static void softmax(double *x, int n)
{
    double total = 0, top = x[0];
    for (int i = 1; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (int i = 0; i < n; i++)
        total += x[i] = exp(x[i] - top);
    for (int i = 0; i < n; i++)
        x[i] /= total;
}

static int rank_of(const double *p, int token)
{
    int rank = 0;
    for (int i = 0; i < REFERENCE_VOCABULARY; i++)
        rank += p[i] > p[token];
    return rank;
}

double reference_loss(const struct esp_network *d, const double *value,
                      const struct reference_batch *b, const struct esp_loss_input *in,
                      const struct esp_loss_weights *weights)
{
    enum { H = REFERENCE_HIDDEN, V = REFERENCE_VOCABULARY };
    struct memory *m = calloc(1, sizeof *m);
    double loss = 0, p[V], q[V];
    for (int row = 0; row < b->rows.count; row++) {
        run_row(d, value, b, m, row);
        const double *own = weights_of(d, value, d->head);
        double part = 0, distance = 0;
        for (int v = 0; v < V; v++) {
            p[v] = q[v] = 0;
            for (int i = 0; i < H; i++) {
                p[v] += (double)in->target_head[v * H + i] * b->target_feature[row * H + i];
                q[v] += (own ? own[v * H + i] : in->head[v * H + i]) * m->out[row][i];
            }
        }
        softmax(p, V);
        softmax(q, V);
        for (int v = 0; v < V; v++)
            part -= (weights->cls + (rank_of(p, v) < weights->top ? weights->distil : 0)) *
                    p[v] * log(q[v]);
        for (int i = 0; i < H && weights->reg > 0; i++) {
            double x = fabs(m->out[row][i] - b->target_feature[row * H + i]);
            distance += weights->smooth ? x < 1 ? x * x / 2 : x - 0.5 : x;
        }
        loss += b->weight[row] * (part + weights->reg * distance / H);
    }
    free(m);
    return loss;
}
