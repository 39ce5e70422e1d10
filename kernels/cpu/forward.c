/* forward.c - computes one batch through the model.
 *
 * A pass is a sequence of steps. The caller runs one step after the other, and the threads of
 * the pool share the parts of each step: a matmul is divided by panels of outputs, attention by
 * key/value heads and queries. A small pass is divided among few threads or none, because
 * sharing a step takes half a microsecond.
 *
 * The steps of a layer are numbered below: 1 norm; 2 queries, keys and values; 3 rotation and
 * cache; 4 attention; 5 output, added to the residual stream; 6 norm; 7 gate and up; 8 down,
 * added to the residual stream. The values that steps 5 and 8 add may first be normalised or
 * multiplied by a factor. In a recurrent layer, steps 2 to 4 are instead: 2 inputs and gates; 3
 * convolution; 4 states. A layer may lack steps 2 to 5, or 6 to 8. In a mixture of experts,
 * steps 7 and 8 are a router, and then gate, up and down of each expert, for the rows that
 * chose it. In the last layer, step 4 and the steps after it compute only some rows: rows whose
 * logits are wanted, and rows whose hidden states after that layer are wanted.
 *
 * If the weights are divided among ranks (divided.h), every rank runs the same steps and
 * computes its own outputs of each step. After steps 4, 5, 7 and 8 the ranks gather the outputs
 * of all ranks. Rank 0 reads the embedding and gets the logits.
 *
 * Invariant: the division of rows and parts among threads decides which thread computes a
 * number, but it never changes the number.
 */
#include "kernels/batch.h"
#include "kernels/cpu/divided.h"
#include "kernels/cpu/pass.h"
#include "kernels/cpu/pass_attention.h"
#include "kernels/cpu/pass_mixer.h"
#include "kernels/cpu/ways.h"
#include "kernels/model_desc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Minimum number of panels in a part of a matmul. With one row, this many panels fill the
 * registers. */
enum { PANELS_TOGETHER = 4 };

/* ------------------------------------------------------------------ pieces */

/* Writes columns begin..end-1 of a row's joined vector. */
static void join(const struct esp_cpu_pass *p, int row, int begin, int end, const float *values)
{
    float *to = p->c->joined.x + (size_t)row * p->c->joined.stride + begin;
    memcpy(to, values, (size_t)(end - begin) * sizeof *to);
}

/* Writes `count` columns of a row's joined vector, beginning with column `begin`. Normalises
 * them if `weight` is not NULL. */
static void join_normed(const struct esp_cpu_pass *p, int row, int begin, int count,
                        const float *values, const float *weight)
{
    float *to = p->c->joined.x + (size_t)row * p->c->joined.stride + begin;
    join(p, row, begin, begin + count, values);
    if (weight)
        p->isa->rmsnorm_head(to, count, weight, p->d->norm_epsilon);
}

/* Writes the hidden states of a row to its joined vector, which is the input of fc. Normalises
 * them if the model has norms for that. */
static void join_input(const struct esp_cpu_pass *p, int row, int begin, const float *values)
{
    const struct esp_model_desc *d = p->d;
    const int parts = d->fc_norms > 0 ? d->fc_norms : 1, count = d->input / parts;
    for (int i = 0; i < parts; i++)
        join_normed(p, row, begin + i * count, count, values + i * count,
                    d->reads == ESP_READS_EAGLE ? p->w->norm_input : p->w->norm_fc[i]);
}

/* Pads a joined vector of `width` columns with zeros, because products read whole panels. */
static void join_end(const struct esp_cpu_pass *p, int row, int width)
{
    const int end = (int)esp_cpu_pad(width, ESP_PANEL);
    float *to = p->c->joined.x + (size_t)row * p->c->joined.stride;
    memset(to + width, 0, (size_t)(end - width) * sizeof *to);
    esp_cpu_prepare(p, &p->c->joined, row, 0, end);
}

static bool uses_fc(const struct esp_cpu_pass *p)
{
    return p->d->reads != ESP_READS_TOKENS &&
           (p->d->reads == ESP_READS_EAGLE || p->batch->input->vocabulary == p->d->input);
}

static void add_position(const struct esp_cpu_pass *p, int row, float *x)
{
    float *position = p->c->normed.x + (size_t)row * p->c->hidden;
    esp_tensor_read_row(&p->w->position_embedding, p->batch->positions[row], position);
    for (int i = 0; i < p->d->hidden; i++)
        x[i] += position[i];
}

/* Computes the cosines and sines of a row's position, with one of the two sets of
 * frequencies. A float product of position and frequency has an error of 1e-3 at position
 * 10,000, as in every RoPE with floats. In an endless text this error would grow, so positions
 * after a full window are multiplied as doubles (`far`). */
static void turn(const struct esp_cpu_pass *p, int row, int set, int position, bool far)
{
    const float *frequency = set ? p->d->local_inverse_frequency : p->d->inverse_frequency;
    const size_t half = (size_t)p->d->rotary / 2, at = esp_cpu_angles(p, row, set);
    const float scale = p->d->rotary_scale != 0 ? p->d->rotary_scale : 1.0f;
    for (size_t i = 0; i < half && frequency; i++) {
        const double angle = (double)position * (double)frequency[i];
        const float near = (float)position * frequency[i];
        p->c->cosine[at + i] = (far ? (float)cos(angle) : cosf(near)) * scale;
        p->c->sine[at + i] = (far ? (float)sin(angle) : sinf(near)) * scale;
    }
}

/* Computes row `row` of the residual stream. This is the token's embedding, or the batch's
 * input, or, for EAGLE, both combined by fc. */
static void read_row(const struct esp_cpu_pass *p, int row)
{
    const struct esp_cpu_rows *input = (const struct esp_cpu_rows *)p->batch->input;
    const int hidden = p->d->hidden, begin = p->d->reads == ESP_READS_EAGLE ? hidden : 0;
    float *x = p->c->x + (size_t)row * p->c->hidden;
    if (p->d->reads != ESP_READS_EAGLE3)
        esp_cpu_embedding(p->w, p->batch->tokens[row], x);
    if (p->d->embedding_scale != 0)
        p->isa->scale(x, hidden, p->d->embedding_scale);
    if (p->d->position_embedding.data)
        add_position(p, row, x);
    if (p->d->reads == ESP_READS_TOKENS)
        return;
    int at = p->batch->input_row ? p->batch->input_row[row] : row;
    const float *values = input->data + (size_t)at * input->stride;
    if (!uses_fc(p)) {
        memcpy(x, values, (size_t)hidden * sizeof *x);
        return;
    }
    const bool first = p->d->input_first;
    if (begin > 0)
        join_normed(p, row, first ? p->d->input : 0, hidden, x, p->w->norm_embedding);
    join_input(p, row, first ? 0 : begin, values);
    join_end(p, row, begin + p->d->input);
}

static void embed(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_window *w = p->batch->window;
    if (p->w->rank == 0)
        read_row(p, row);
    for (int set = 0; set < 2; set++) {
        turn(p, row, set, p->batch->positions[row], esp_cpu_has_gap(p, row));
        if (w && row == 0)
            turn(p, esp_cpu_row_for_sinks(p), set, w->sinks + w->recent - 1, false);
    }
}

struct norm_step {
    const struct esp_cpu_pass *p;
    const struct esp_vectors *out;
    const float *weight, *bias;
};

static void norm_row(void *arg, int row)
{
    const struct norm_step *step = arg;
    const struct esp_cpu_pass *p = step->p;
    const size_t width = p->c->hidden;
    float *out = step->out->x + (size_t)row * width;
    const float *x = p->c->x + (size_t)row * width;
    if (step->weight)
        p->isa->norm(out, x, p->d->hidden, step->weight, step->bias, p->d->norm,
                     p->d->norm_epsilon);
    else
        memcpy(out, x, width * sizeof *out);
    esp_cpu_prepare(p, step->out, row, 0, p->d->hidden);
}

/* Writes the rows of the residual stream to `out`, normalised if `weight` is not NULL. */
static void norm(struct esp_cpu_pass *p, const struct esp_vectors *out, const float *weight,
                 const float *bias)
{
    struct norm_step step = {p, out, weight, bias};
    esp_cpu_run_rows(p, p->rows, p->c->hidden, norm_row, &step);
}

/* Joins the input of EAGLE-3's attention: the embedding and the residual stream, both
 * normalised. */
static void join_row(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_model_desc *d = p->d;
    const int hidden = d->hidden;
    float *normed = p->c->normed.x + (size_t)row * p->c->hidden;
    esp_cpu_embedding(p->w, p->batch->tokens[row], normed);
    p->isa->norm(normed, normed, hidden, p->w->layer[0].norm1, NULL, d->norm, d->norm_epsilon);
    join(p, row, 0, hidden, normed);
    p->isa->norm(normed, p->c->x + (size_t)row * p->c->hidden, hidden, p->w->norm_input, NULL,
                 d->norm, d->norm_epsilon);
    if (d->residual_normed)
        memcpy(p->c->x + (size_t)row * p->c->hidden, normed, (size_t)hidden * sizeof *normed);
    join(p, row, hidden, 2 * hidden, normed);
    join_end(p, row, 2 * hidden);
}

/* Describes a step that multiplies the same rows by up to four matrices. The panels of all
 * matrices are numbered consecutively. */
struct matmul_step {
    struct esp_cpu_pass *p;
    int count, panels; /* number of products; number of panels of all products together */
    const struct esp_packed *w[4];
    struct esp_matmul of[4];
};

static void multiply_packed(const struct esp_cpu_pass *p, const struct esp_packed *w, int begin,
                            int end, const struct esp_matmul *product)
{
    const struct esp_cpu_backend *cpu = (const struct esp_cpu_backend *)p->w->base.backend;
    struct esp_matmul of = *product;
    if (!esp_dtype_quantised(w->dtype)) {
        p->isa->matmul(w, begin, end, product);
        return;
    }
    of.tiles = esp_cpu_takes_tiles(&cpu->way_times, w->dtype, of.in.bytes, of.rows);
    p->isa->matmul_blocks(w, begin, end, &of);
}

/* Multiplies the rows by panels begin..end-1 of w. Panels of a streamed layer are packed a few
 * at a time and multiplied while they are still in the processor's cache. */
static void multiply(const struct esp_cpu_pass *p, const struct esp_packed *w, int begin,
                     int end, const struct esp_matmul *product, int thread)
{
    char *room = p->w->packing + (size_t)thread * p->w->packing_bytes;
    if (!w->stored) {
        multiply_packed(p, w, begin, end, product);
        return;
    }
    for (int n; begin < end; begin += n) {
        struct esp_matmul some = *product;
        struct esp_packed part;
        n = end - begin < ESP_PACKED_TOGETHER ? end - begin : ESP_PACKED_TOGETHER;
        some.y += (size_t)begin * ESP_PANEL;
        esp_cpu_pack_stored(&part, w, begin, n, room);
        multiply_packed(p, &part, 0, n, &some);
    }
}

static void matmul_part(void *arg, int part, int thread)
{
    const struct matmul_step *step = arg;
    const int groups = (step->panels + PANELS_TOGETHER - 1) / PANELS_TOGETHER;
    int begin, end, first = 0;
    esp_cpu_share(groups, part, step->p->parts, &begin, &end);
    begin *= PANELS_TOGETHER;
    end = end < groups ? end * PANELS_TOGETHER : step->panels;
    for (int i = 0; i < step->count; first += step->w[i++]->panels) {
        int from = begin > first ? begin - first : 0;
        int to = end - first < step->w[i]->panels ? end - first : step->w[i]->panels;
        if (from < to)
            multiply(step->p, step->w[i], from, to, &step->of[i], thread);
    }
}

static void matmul(struct matmul_step *step)
{
    const int groups = (step->panels + PANELS_TOGETHER - 1) / PANELS_TOGETHER;
    esp_cpu_run_step(step->p, groups, matmul_part, step);
}

/* Runs a step that multiplies the rows by the first `panels` panels of w only. */
static void multiply_rows(struct esp_cpu_pass *p, const struct esp_packed *w, int panels,
                          struct esp_matmul of)
{
    struct matmul_step step = {.p = p, .count = 1, .panels = panels, .w = {w}, .of = {of}};
    matmul(&step);
}

/* Adds a product of all rows to the step. */
static void add_product(struct matmul_step *step, const struct esp_packed *w,
                        struct esp_vectors x, float *y, size_t y_stride, const int32_t *y_row)
{
    step->w[step->count] = w;
    step->of[step->count++] = (struct esp_matmul){.in = x,
                                                  .y = y + w->first,
                                                  .y_stride = y_stride,
                                                  .y_row = y_row,
                                                  .rows = step->p->rows};
    step->panels += w->panels;
}

static void project(struct esp_cpu_pass *p, const struct esp_cpu_layer *layer,
                    struct esp_vectors x)
{
    const struct esp_cpu_cache *c = p->c;
    struct matmul_step step = {.p = p};
    add_product(&step, &layer->query, x, c->q, c->q_width, NULL);
    add_product(&step, &layer->key, x, c->key, c->kv_width, NULL);
    add_product(&step, &layer->value, x, c->value, c->kv_width, NULL);
    if (p->d->layer[p->layer].attention_gate.data)
        add_product(&step, &layer->attention_gate, x, c->attention_gate, c->q_width, NULL);
    matmul(&step);
}

/* Computes the inputs of a recurrent layer and writes them to the slots of their rows. */
static void project_inputs(struct esp_cpu_pass *p, const struct esp_cpu_layer *layer,
                           struct esp_vectors x)
{
    const struct esp_cpu_states *s = &p->c->states;
    const enum esp_mixer mixer = p->d->layer[p->layer].mixer;
    const size_t stride = esp_states_stride(s);
    float *inputs = esp_states_input(s, layer->place, 0), *factors = inputs + s->width;
    struct matmul_step step = {.p = p};
    add_product(&step, &layer->conv_in, x, inputs, stride, s->plan.batch_slot);
    add_product(&step, &layer->out_gate, x, s->out_gate, s->out, NULL);
    if (mixer == ESP_MIXER_CONV)
        add_product(&step, &layer->in_gate, x, s->in_gate, s->width, NULL);
    if (mixer == ESP_MIXER_DELTA)
        add_product(&step, &layer->write, x, factors, stride, s->plan.batch_slot);
    if (mixer != ESP_MIXER_CONV)
        add_product(&step, &layer->decay, x, factors + s->rates, stride, s->plan.batch_slot);
    matmul(&step);
    esp_cpu_gather_columns(p, ESP_RANK_STATES, inputs, stride, s->plan.batch_slot);
    esp_cpu_gather_columns(p, ESP_RANK_GATES, s->out_gate, s->out, NULL);
    if (mixer == ESP_MIXER_CONV)
        esp_cpu_gather_columns(p, ESP_RANK_STATES, s->in_gate, s->width, NULL);
}

/* Computes x = W y or, if `add`, x += W y. */
static void matmul_to_x(struct esp_cpu_pass *p, const struct esp_packed *w,
                        struct esp_vectors y, bool add)
{
    multiply_rows(p, w, w->panels,
                  (struct esp_matmul){.in = y,
                                      .y = p->c->x + w->first,
                                      .y_stride = p->c->hidden,
                                      .rows = p->rows,
                                      .add = add});
}

struct add_step {
    const struct esp_cpu_pass *p;
    const float *norm;
};

static void add_row(void *arg, int row)
{
    const struct add_step *step = arg;
    const struct esp_cpu_pass *p = step->p;
    const struct esp_model_desc *d = p->d;
    float *branch = p->c->branch + (size_t)row * p->c->hidden;
    float *x = p->c->x + (size_t)row * p->c->hidden;
    if (step->norm)
        p->isa->norm(branch, branch, d->hidden, step->norm, NULL, ESP_NORM_RMS,
                     d->norm_epsilon);
    if (d->residual_scale != 0)
        p->isa->scale(branch, d->hidden, d->residual_scale);
    for (int i = 0; i < d->hidden; i++)
        x[i] += branch[i];
}

/* Computes x += W y, or x += factor * norm(W y). */
static void add(struct esp_cpu_pass *p, const struct esp_packed *w, struct esp_vectors y,
                const float *norm, enum esp_rank_kind kind)
{
    struct add_step step = {p, norm};
    if (!norm && p->d->residual_scale == 0) {
        matmul_to_x(p, w, y, true);
        esp_cpu_gather_columns(p, kind, p->c->x, p->c->hidden, NULL);
        return;
    }
    multiply_rows(
        p, w, w->panels,
        (struct esp_matmul){
            .in = y, .y = p->c->branch + w->first, .y_stride = p->c->hidden, .rows = p->rows});
    esp_cpu_gather_columns(p, kind, p->c->branch, p->c->hidden, NULL);
    esp_cpu_run_rows(p, p->rows, p->c->hidden, add_row, &step);
}

/* ------------------------------------------------------------------ the pass */

/* Moves row `from` of the residual stream to the lower row `to`. */
static void move_row(const struct esp_cpu_pass *p, int from, int to)
{
    const size_t width = p->c->hidden;
    if (from != to)
        memcpy(p->c->x + (size_t)to * width, p->c->x + (size_t)from * width,
               width * sizeof *p->c->x);
}

/* ------------------------------------------------------------------ hidden states */

/* Returns the row of esp_states.to for the hidden states of batch row `row`. Returns -1 if they
 * are not requested. */
static int states_row(const struct esp_cpu_pass *p, int row)
{
    const struct esp_states *s = p->batch->states;
    return !s ? -1 : s->row ? s->row[row] : row;
}

/* Copies the rows `from` (p->rows, hidden) to esp_states.to, if hidden state `state` was
 * requested. */
static void hand_out(const struct esp_cpu_pass *p, int state, const float *from)
{
    const struct esp_states *s = p->w->rank == 0 ? p->batch->states : NULL;
    const size_t width = (size_t)p->d->hidden;
    for (int slot = 0; s && slot < s->count; slot++)
        for (int i = 0; s->state[slot] == state && i < p->rows; i++) {
            const struct esp_cpu_rows *to = (const struct esp_cpu_rows *)s->to;
            int at = states_row(p, p->going ? p->going[i] : i);
            if (at >= 0)
                memcpy(to->data + (size_t)at * to->stride + (size_t)slot * width,
                       from + (size_t)i * p->c->hidden, width * sizeof *from);
        }
}

static bool asks_for(const struct esp_cpu_pass *p, int state)
{
    const struct esp_states *s = p->batch->states;
    for (int i = 0; s && i < s->count; i++)
        if (s->state[i] == state)
            return true;
    return false;
}

/* Lists the rows that need the whole last layer. Returns their number. */
static int list_going(const struct esp_cpu_pass *p)
{
    bool states = asks_for(p, p->d->layers) || asks_for(p, ESP_STATE_NORMED);
    int count = 0, wanted = 0;
    for (int row = 0; row < p->batch->rows; row++) {
        bool logits = wanted < p->wanted && p->c->wanted[wanted] == row;
        if (logits)
            wanted++;
        if (logits || (states && states_row(p, row) >= 0))
            p->c->going[count++] = row;
    }
    return count;
}

/* ------------------------------------------------------------------ layers and logits */

struct mlp_step {
    struct esp_cpu_pass *p;
    const struct esp_packed *gate, *up;
    const struct esp_vectors *in;
    enum esp_rank_kind kind;
};

static void mlp_part(void *arg, int part, int thread)
{
    const struct mlp_step *step = arg;
    const struct esp_cpu_pass *p = step->p;
    const struct esp_cpu_cache *c = p->c;
    const bool gated = esp_gated(p->d->activation);
    const size_t first = (size_t)step->up->first;
    struct esp_matmul product = {
        .in = *step->in, .y = c->up.x + first, .y_stride = c->ffn, .rows = p->rows};
    int begin, end;
    esp_cpu_share(step->up->panels, part, p->parts, &begin, &end);
    multiply(p, step->up, begin, end, &product, thread);
    product.y = c->gate + first;
    if (gated)
        multiply(p, step->gate, begin, end, &product, thread);
    for (int i = 0; i < p->rows; i++) {
        size_t at = (size_t)i * c->ffn + first + (size_t)begin * ESP_PANEL;
        p->isa->activation(c->up.x + at, gated ? c->gate + at : NULL, c->up.x + at,
                           (end - begin) * ESP_PANEL, p->d->activation, &p->d->clamp);
        if (!esp_cpu_divides(p, step->kind))
            esp_cpu_prepare(p, &c->up, i, begin * ESP_PANEL, end * ESP_PANEL);
    }
}

static void mlp(struct esp_cpu_pass *p, const struct esp_packed *gate,
                const struct esp_packed *up, const struct esp_vectors *in,
                enum esp_rank_kind kind)
{
    struct mlp_step step = {p, gate, up, in, kind};
    esp_cpu_run_step(p, (up->panels + PANELS_TOGETHER - 1) / PANELS_TOGETHER, mlp_part, &step);
    if (!esp_cpu_divides(p, kind))
        return;
    esp_cpu_gather_columns(p, kind, p->c->up.x, p->c->ffn, NULL);
    esp_cpu_prepare_all(p, &p->c->up);
}

/* ------------------------------------------------------------------ experts */

/* Lists the experts with the highest values, best first. If values are equal, the expert with
 * the lower index comes first. bias: (experts) added to the values, or NULL. */
static void list_best(const struct esp_model_desc *d, const float *value, const float *bias,
                      int32_t *chosen)
{
    int count = 0;
    for (int e = 0; e < d->experts; e++) {
        const float own = value[e] + (bias ? bias[e] : 0.0f);
        int at = count;
        for (; at > 0 && own > value[chosen[at - 1]] + (bias ? bias[chosen[at - 1]] : 0.0f);
             at--)
            if (at < d->experts_used)
                chosen[at] = chosen[at - 1];
        if (at < d->experts_used)
            chosen[at] = e;
        count += count < d->experts_used;
    }
}

/* Computes the weights of the chosen experts: the softmax of their logits. */
static void weigh_by_softmax(const struct esp_model_desc *d, const int32_t *chosen,
                             float *logit)
{
    const float top = logit[chosen[0]];
    double sum = 0;
    for (int i = 0; i < (d->experts_normed ? d->experts_used : d->experts); i++)
        sum += exp((double)(logit[d->experts_normed ? chosen[i] : i] - top));
    for (int i = 0; i < d->experts_used; i++)
        logit[chosen[i]] = (float)(exp((double)(logit[chosen[i]] - top)) / sum);
}

/* Computes the weights of the chosen experts: the sigmoids of their logits. */
static void weigh_sigmoids(const struct esp_model_desc *d, const int32_t *chosen, float *value)
{
    double sum = (double)d->expert_epsilon;
    for (int i = 0; i < d->experts_used; i++)
        sum += (double)value[chosen[i]];
    for (int i = 0; d->experts_normed && i < d->experts_used; i++)
        value[chosen[i]] = (float)((double)value[chosen[i]] / sum);
}

/* Chooses the experts of a row, and turns their logits into weights. Clears the row's branch,
 * to which the experts' outputs will be added. */
static void choose(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_model_desc *d = p->d;
    float *value = p->c->routed + (size_t)row * esp_cpu_pad(d->experts, ESP_PANEL);
    int32_t *chosen = p->c->chosen + (size_t)row * (size_t)d->experts_used;
    for (int e = 0; d->sigmoid_router && e < d->experts; e++)
        value[e] = (float)(1 / (1 + exp(-(double)value[e])));
    list_best(d, value, p->w->layer[p->layer].choice_bias, chosen);
    if (d->sigmoid_router)
        weigh_sigmoids(d, chosen, value);
    else
        weigh_by_softmax(d, chosen, value);
    for (int i = 0; d->expert_scale != 0 && i < d->experts_used; i++)
        value[chosen[i]] *= d->expert_scale;
    memset(p->c->branch + (size_t)row * p->c->hidden, 0, p->c->hidden * sizeof(float));
}

struct expert_step {
    struct esp_cpu_pass *p;
    int expert, rows;
};

static void gather(void *arg, int i)
{
    const struct expert_step *step = arg;
    const struct esp_cpu_pass *p = step->p;
    const struct esp_vectors *to = &p->c->expert_in;
    memcpy(to->x + (size_t)i * to->stride,
           p->c->normed.x + (size_t)p->c->choosers[i] * to->stride, to->stride * sizeof(float));
    esp_cpu_prepare(p, to, i, 0, p->d->hidden);
}

static void scatter(void *arg, int i)
{
    const struct expert_step *step = arg;
    const struct esp_cpu_pass *p = step->p;
    const size_t width = p->c->hidden, experts = esp_cpu_pad(p->d->experts, ESP_PANEL);
    const struct esp_packed *down = &p->w->layer[p->layer].expert[step->expert].down;
    const size_t begin = (size_t)down->first, end = begin + (size_t)down->panels * ESP_PANEL;
    const size_t row = (size_t)p->c->choosers[i];
    const float weight = p->c->routed[row * experts + (size_t)step->expert];
    const float *from = p->c->expert_out + (size_t)i * width;
    for (size_t k = begin; k < end; k++)
        p->c->branch[row * width + k] += weight * from[k];
}

/* Lists the rows that chose the expert. Returns their number. */
static int list_choosers(const struct esp_cpu_pass *p, int expert)
{
    int count = 0;
    for (int row = 0; row < p->rows; row++)
        for (int i = 0; i < p->d->experts_used; i++)
            if (p->c->chosen[(size_t)row * (size_t)p->d->experts_used + (size_t)i] == expert)
                p->c->choosers[count++] = row;
    return count;
}

/* Runs one expert and adds its output to the branches of the rows that chose it. */
static void run_expert(struct esp_cpu_pass *p, const struct esp_cpu_expert *expert, int number)
{
    struct esp_cpu_cache *c = p->c;
    struct expert_step step = {p, number, list_choosers(p, number)};
    const int rows = p->rows;
    if (step.rows == 0)
        return;
    p->rows = step.rows;
    c->expert_in.together = c->up.together = esp_cut_together(step.rows);
    esp_cpu_run_rows(p, step.rows, c->hidden, gather, &step);
    mlp(p, &expert->gate, &expert->up, &c->expert_in, ESP_RANK_EXPERTS);
    multiply_rows(p, &expert->down, expert->down.panels,
                  (struct esp_matmul){.in = c->up,
                                      .y = c->expert_out + expert->down.first,
                                      .y_stride = c->hidden,
                                      .rows = step.rows});
    esp_cpu_run_rows(p, step.rows, c->hidden, scatter, &step);
    p->rows = rows;
}

/* Adds the output of the shared expert, which all rows use, times the sigmoid of its gate. */
static void add_shared_row(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_cache *c = p->c;
    const struct esp_packed *down = &p->w->layer[p->layer].down;
    const size_t begin = (size_t)down->first, end = begin + (size_t)down->panels * ESP_PANEL;
    const size_t at = (size_t)row * c->hidden;
    const float gate = c->routed[(size_t)row * esp_cpu_pad(p->d->experts, ESP_PANEL)];
    const bool gated = p->d->layer[p->layer].shared_gate.data != NULL;
    const float weight = gated ? (float)(1 / (1 + exp(-(double)gate))) : 1.0f;
    for (size_t k = begin; k < end; k++)
        c->branch[at + k] += weight * c->expert_out[at + k];
}

static void run_shared(struct esp_cpu_pass *p, const struct esp_cpu_layer *layer)
{
    struct esp_cpu_cache *c = p->c;
    mlp(p, &layer->gate, &layer->up, &c->normed, ESP_RANK_MLP);
    multiply_rows(p, &layer->down, layer->down.panels,
                  (struct esp_matmul){.in = c->up,
                                      .y = c->expert_out + layer->down.first,
                                      .y_stride = c->hidden,
                                      .rows = p->rows});
    if (p->d->layer[p->layer].shared_gate.data)
        multiply_rows(p, &layer->shared_gate, 1,
                      (struct esp_matmul){.in = c->normed,
                                          .y = c->routed,
                                          .y_stride = esp_cpu_pad(p->d->experts, ESP_PANEL),
                                          .rows = p->rows});
    esp_cpu_run_rows(p, p->rows, c->hidden, add_shared_row, p);
}

static void add_experts(struct esp_cpu_pass *p, const struct esp_cpu_layer *layer)
{
    struct esp_cpu_cache *c = p->c;
    struct add_step step = {p, layer->norm_mlp};
    multiply_rows(p, &layer->router, layer->router.panels,
                  (struct esp_matmul){.in = c->normed,
                                      .y = c->routed,
                                      .y_stride = esp_cpu_pad(p->d->experts, ESP_PANEL),
                                      .rows = p->rows});
    esp_cpu_run_rows(p, p->rows, (size_t)p->d->experts * (size_t)p->d->experts_used, choose, p);
    for (int i = 0; i < p->d->experts; i++)
        run_expert(p, &layer->expert[i], i);
    c->up.together = esp_cut_together(p->rows);
    if (p->d->layer[p->layer].up.data)
        run_shared(p, layer);
    esp_cpu_gather_columns(p, ESP_RANK_DOWN, c->branch, c->hidden, NULL);
    esp_cpu_run_rows(p, p->rows, c->hidden, add_row, &step);
}

/* Sets the number of rows with which the pass continues. */
static void set_rows(struct esp_cpu_pass *p, int rows)
{
    p->rows = rows;
    p->c->normed.together = p->c->attended.together = p->c->mixed.together = p->c->up.together =
        p->c->joined.together = esp_cut_together(rows);
}

/* Computes steps 2 to 4 of a layer from its normalised input. */
static void mix(struct esp_cpu_pass *p, const struct esp_cpu_layer *layer)
{
    struct esp_cpu_cache *c = p->c;
    const enum esp_mixer mixer = p->d->layer[p->layer].mixer;
    if (esp_recurs(mixer))
        project_inputs(p, layer, c->normed);
    else if (mixer == ESP_MIXER_ATTENTION)
        project(p, layer, esp_layer_reads_both(p->d, p->layer) ? c->joined : c->normed);
    if (p->layer == p->d->layers - 1 && p->last < p->rows) {
        p->going = c->going;
        set_rows(p, p->last);
    }
    if (esp_recurs(mixer))
        esp_cpu_mix(p);
    else if (mixer == ESP_MIXER_ATTENTION)
        esp_cpu_attention(p);
    for (int i = 0; p->going && i < p->rows; i++)
        move_row(p, p->going[i], i);
}

static void run_mlp(struct esp_cpu_pass *p, const struct esp_cpu_layer *layer)
{
    if (layer->expert) {
        add_experts(p, layer); /* steps 7 and 8 */
        return;
    }
    mlp(p, &layer->gate, &layer->up, &p->c->normed, ESP_RANK_MLP);  /* step 7 */
    add(p, &layer->down, p->c->up, layer->norm_mlp, ESP_RANK_DOWN); /* step 8 */
}

/* Runs a layer. In a layer without a mixer, the first norm is the norm before the MLP. It is
 * computed only for the rows with which the pass continues. */
static void run_layer(struct esp_cpu_pass *p)
{
    struct esp_cpu_cache *c = p->c;
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_layer *of = &p->d->layer[p->layer];
    const bool parallel = p->d->parallel_residual, mixes = of->mixer != ESP_MIXER_NONE;
    if (esp_layer_reads_both(p->d, p->layer))
        esp_cpu_run_rows(p, p->rows, c->joined.stride, join_row, p); /* step 1 */
    else if (mixes)
        norm(p, &c->normed, layer->norm1, layer->norm1_bias);
    mix(p, layer); /* steps 2 to 4 */
    if (p->rows == 0)
        return;
    if (!mixes)
        norm(p, &c->normed, layer->norm1, layer->norm1_bias);
    if (parallel) /* step 6 before step 5: the MLP reads the layer's input x */
        norm(p, &c->normed, layer->norm2, layer->norm2_bias);
    if (mixes)
        add(p, esp_recurs(of->mixer) ? &layer->mixed : &layer->output,
            esp_recurs(of->mixer) ? c->mixed : c->attended, layer->norm_attended,
            ESP_RANK_OUTPUT); /* step 5 */
    if (!esp_layer_has_mlp(of))
        return;
    if (mixes && !parallel)
        norm(p, &c->normed, layer->norm2, layer->norm2_bias); /* step 6 */
    run_mlp(p, layer);
}

/* Must be called after the last layer. Makes the pass continue with only the rows whose logits
 * are wanted. */
static void keep_wanted(struct esp_cpu_pass *p)
{
    for (int i = 0, from = 0; i < p->wanted; i++, from++) {
        while ((p->going ? p->going[from] : from) != p->c->wanted[i])
            from++;
        move_row(p, from, i);
    }
    p->rows = p->wanted;
}

/* Returns the row of the logits matrix for the i-th computed row. */
static float *logits_row(const struct esp_cpu_pass *p, int i)
{
    const struct esp_cpu_rows *logits = (const struct esp_cpu_rows *)p->batch->logits;
    return logits->data + (size_t)p->c->wanted_at[i] * logits->stride;
}

/* Moves logits of selected tokens, which are stored consecutively, to the columns of the
 * tokens. The last logit is moved first, so that no logit is overwritten. */
static void spread(void *step, int i)
{
    const struct esp_cpu_pass *p = step;
    float *row = logits_row(p, i);
    int output = p->d->outputs - 1;
    for (int token = esp_model_desc_tokens(p->d) - 1; token >= 0; token--)
        row[token] =
            output >= 0 && p->d->output_token[output] == token ? row[output--] : -1e30f;
}

static void scale_and_cap(void *step, int i)
{
    const struct esp_cpu_pass *p = step;
    const size_t own = esp_cpu_pad(p->d->outputs, ESP_PANEL);
    const size_t room = ((const struct esp_cpu_rows *)p->batch->logits)->stride;
    const int n = (int)(own < room ? own : room);
    if (p->d->logit_scale != 0)
        p->isa->scale(logits_row(p, i), n, p->d->logit_scale);
    if (p->d->logit_cap != 0)
        p->isa->cap(logits_row(p, i), n, p->d->logit_cap);
}

/* Multiplies by this rank's part of the head, and sends the logits to rank 0. */
static void multiply_head(struct esp_cpu_pass *p)
{
    const struct esp_packed *w = &p->w->head;
    struct esp_cpu_rows *logits = (struct esp_cpu_rows *)p->batch->logits;
    const int room = (int)(logits->stride / ESP_PANEL) - w->first / ESP_PANEL;
    const int panels = w->panels < room ? w->panels : room > 0 ? room : 0;
    struct esp_matmul of = {.in = p->c->normed,
                            .y = logits->data,
                            .y_stride = logits->stride,
                            .y_row = p->c->wanted_at,
                            .rows = p->wanted};
    if (p->w->rank > 0) {
        of.y = p->c->part_logits;
        of.y_stride = (size_t)w->panels * ESP_PANEL;
        of.y_row = NULL;
    }
    multiply_rows(p, w, panels, of);
    esp_cpu_gather_logits(p, of.y, of.y_stride);
}

/* Computes the logits. Their rows may be wider or narrower than the model's vocabulary; see
 * struct esp_batch. */
static void run_head(struct esp_cpu_pass *p)
{
    struct esp_cpu_rows *logits = (struct esp_cpu_rows *)p->batch->logits;
    if (p->w->rank > 0 && !esp_cpu_divides(p, ESP_RANK_HEAD))
        return;
    norm(p, &p->c->normed, p->w->norm_final, p->w->norm_final_bias);
    multiply_head(p);
    if (p->w->rank > 0)
        return;
    if (p->d->logit_scale != 0 || p->d->logit_cap != 0)
        esp_cpu_run_rows(p, p->wanted, logits->stride, scale_and_cap, p);
    if (p->d->output_token)
        esp_cpu_run_rows(p, p->wanted, logits->stride, spread, p);
    for (int i = 0; i < p->wanted; i++)
        for (int j = esp_model_desc_tokens(p->d); j < logits->base.vocabulary; j++)
            logits_row(p, i)[j] = -1e30f;
}

static int threads_for(const struct esp_cpu_backend *cpu, double work)
{
    if (work >= cpu->worth_a_thread * cpu->threads)
        return cpu->threads;
    return work < 2 * cpu->worth_a_thread ? 1 : (int)(work / cpu->worth_a_thread);
}

/* Runs all layers, or the layers of this rank. Streamed layers are held in memory while they
 * are computed. */
static int run_layers(struct esp_cpu_pass *p)
{
    struct esp_cpu_stream *stream = p->w->stream;
    int status = ESP_OK, holder = 0;
    esp_cpu_stream_begin(stream);
    for (; p->layer < p->d->layers && !esp_cpu_ranks_failed(p); p->layer++) {
        if (asks_for(p, p->layer))
            esp_cpu_show_rows(p, holder);
        hand_out(p, p->layer, p->c->x);
        if ((status = esp_cpu_stream_hold(stream, p->layer)) < 0)
            break;
        if (esp_cpu_takes_layer(p, &holder))
            run_layer(p);
        esp_cpu_stream_release(stream, p->layer);
    }
    esp_cpu_stream_end(stream);
    return status;
}

/* Computes the embedding and all layers. Returns ESP_E_FILE if a streamed layer could not be
 * read. */
static int run_model(struct esp_cpu_pass *p)
{
    esp_cpu_run_rows(p, p->rows, p->c->hidden, embed, p);
    esp_cpu_share_embedding(p);
    if (uses_fc(p))
        matmul_to_x(p, &p->w->fc, p->c->joined, false);
    return run_layers(p);
}

int esp_cpu_pass(struct esp_cache *cache, const struct esp_batch *batch)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)c->base.weights;
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)w->base.backend;
    struct esp_cpu_pass p = {
        .w = w, .d = w->base.desc, .c = c, .isa = cpu->isa, .batch = batch};
    if (!esp_batch_fits(batch, cache, c->rows, c->max_batch) || !esp_cpu_begin_states(&p))
        return ESP_E_ARGUMENT;
    p.wanted = esp_batch_wanted(batch, c->wanted, c->wanted_at);
    double work = batch->rows * w->work_layers + p.wanted * w->work_head;
    p.threads = threads_for(cpu, w->plan && !w->plan->by_layers ? work / w->plan->ranks : work);
    set_rows(&p, batch->rows);
    p.last = list_going(&p);
    if (run_model(&p) < 0) {
        snprintf(cpu->failure, sizeof cpu->failure, "%s", esp_cpu_stream_failure(w->stream));
        return ESP_E_FILE;
    }
    esp_cpu_end_states(&p);
    hand_out(&p, p.d->layers, c->x);
    if (asks_for(&p, ESP_STATE_NORMED) && w->rank == 0) {
        norm(&p, &c->normed, w->norm_final, w->norm_final_bias);
        hand_out(&p, ESP_STATE_NORMED, c->normed.x);
    }
    keep_wanted(&p);
    if (p.wanted > 0)
        run_head(&p);
    if (esp_cpu_ranks_failed(&p))
        return ESP_E_DEVICE;
    return batch->step ? esp_batch_step(batch, c->wanted_at, p.wanted) : ESP_OK;
}
