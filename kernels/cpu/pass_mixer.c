/* pass_mixer.c - computes recurrent layers: the convolution, the products of rows and states,
 * and the norm and the gate of the output; see pass_mixer.h. The arithmetic on 16 columns of a
 * state is in isa/recurrent.c.
 *
 * The formulas at enum esp_mixer compute one token after the other. Here, a row is computed
 * from S, the state before its chunk, and from its ancestors j in the chunk. d(j) is the
 * product of all decays after j, up to and including the row's decay. d is the product of all
 * decays in the chunk, up to and including the row's decay. The update u and the output o are
 *   DELTA:  u = write (v - d k^T S - sum of d(j) (k . k_j) u_j)
 *   SSM:    u = write v
 *   both:   o = d q^T S + sum of d(j) (q . k_j) u_j + (q . k) u + skip v
 * The state after a chunk is d S + sum of d(j) k_j u_j^T. */
#include "kernels/cpu/pass_mixer.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/divided.h"
#include "kernels/model_desc.h"

/* Says where a head's query, key and value begin in the convolved values of a token, and where
 * its key begins in the keys of an input. */
struct places {
    size_t query, key, value, kept;
};

static enum esp_mixer mixer_of(const struct esp_cpu_pass *p)
{
    return p->d->layer[p->layer].mixer;
}

static int place_of(const struct esp_cpu_pass *p)
{
    return p->w->layer[p->layer].place;
}

static struct places places_of(const struct esp_model_desc *d, enum esp_mixer mixer, int head)
{
    const int each = d->state_heads / d->key_heads;
    const size_t keys = (size_t)d->key_heads * (size_t)d->key_dim;
    const size_t values = (size_t)d->state_heads * (size_t)d->value_dim;
    const size_t key =
        (size_t)(d->heads_tiled ? head % d->key_heads : head / each) * (size_t)d->key_dim;
    const size_t value = (size_t)head * (size_t)d->value_dim;
    return mixer == ESP_MIXER_DELTA
               ? (struct places){key, keys + key, 2 * keys + value, key}
               : (struct places){values + keys + key, values + key, value, key};
}

/* These functions return parts of the input in a slot; see struct esp_cpu_states. */
static float *writes_of(const struct esp_cpu_states *s, float *input)
{
    return input + s->width;
}

static float *decays_of(const struct esp_cpu_states *s, float *input)
{
    return input + s->width + s->rates;
}

static float *keys_of(const struct esp_cpu_states *s, float *input)
{
    return input + s->width + 2 * s->rates;
}

static float *updates_of(const struct esp_cpu_states *s, float *input)
{
    return keys_of(s, input) + s->keys;
}

static float *input_of(const struct esp_cpu_pass *p, int entry)
{
    const struct esp_cpu_states *s = &p->c->states;
    return esp_states_input(s, place_of(p), s->plan.entry[entry].slot);
}

/* Sets input[i] to the input of the entry's i-th ancestor in its chunk, the nearest first.
 * Returns the number of ancestors. */
static int find_ancestors(const struct esp_cpu_pass *p, int entry,
                          float *input[ESP_STATE_CHUNK - 1])
{
    const struct esp_state_entry *at = &p->c->states.plan.entry[entry];
    const int count = at->place;
    for (int i = 0; i < count; i++) {
        input[i] = input_of(p, at->parent);
        at = &p->c->states.plan.entry[at->parent];
    }
    return count;
}

/* ------------------------------------------------------------------ 3: inputs of the states */

/* log(1 + e^x) */
static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

/* Turns the outputs of the matrices `write` and `decay` into the factors of the same names. */
static void find_factors(const struct esp_cpu_pass *p, float *write, float *decay)
{
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_model_desc *d = p->d;
    const bool delta = mixer_of(p) == ESP_MIXER_DELTA;
    for (int h = 0; h < d->state_heads; h++) {
        double t = softplus((double)decay[h] + (double)layer->decay_bias[h]);
        if (!delta)
            t = fmin(fmax(t, (double)d->least_step), (double)d->most_step);
        write[h] = delta ? (float)(1 / (1 + exp(-(double)write[h]))) : (float)t;
        decay[h] = (float)exp((double)layer->rate[h] * t);
    }
}

/* Scales keys to length 1 and queries to length 1 / sqrt(key_dim). */
static void scale_heads(const struct esp_cpu_pass *p, float *convolved)
{
    static const float EPSILON = 1e-6f;
    const struct esp_model_desc *d = p->d;
    const int keys = d->key_heads * d->key_dim;
    for (int at = 0; at < keys; at += d->key_dim) {
        p->isa->unit(convolved + at, d->key_dim, EPSILON, 1.0f / sqrtf((float)d->key_dim));
        p->isa->unit(convolved + keys + at, d->key_dim, EPSILON, 1.0f);
    }
}

/* Convolves a row, and stores what later rows need. */
static void prepare_row(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_cpu_states *s = &p->c->states;
    const struct esp_model_desc *d = p->d;
    const enum esp_mixer mixer = mixer_of(p);
    const int entry = esp_state_plan_entry(&s->plan, row), width = esp_conv_width(d, mixer);
    const float *taps[ESP_MOST_TAPS];
    float *out = s->convolved + (size_t)row * s->width, *input = input_of(p, entry);
    esp_states_taps(s, place_of(p), d->conv_kernel, entry, taps);
    p->isa->convolve(out, taps, layer->conv, layer->conv_bias,
                     (int)esp_cpu_pad(width, ESP_LANES), d->conv_kernel,
                     esp_cpu_pad(width, ESP_PANEL), mixer != ESP_MIXER_CONV);
    if (mixer == ESP_MIXER_CONV)
        return;
    if (mixer == ESP_MIXER_DELTA)
        scale_heads(p, out);
    memcpy(keys_of(s, input), out + places_of(d, mixer, 0).key,
           (size_t)(d->key_heads * d->key_dim) * sizeof *out);
    find_factors(p, writes_of(s, input), decays_of(s, input));
}

/* Multiplies a row's input by a gate; LFM2 convolves this product. */
static void gate_input(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_states *s = &p->c->states;
    float *input = esp_states_input(s, place_of(p), s->plan.batch_slot[row]);
    const float *gate = s->in_gate + (size_t)row * s->width;
    for (int i = 0; i < p->d->hidden; i++)
        input[i] *= gate[i];
}

/* ------------------------------------------------------------------ 4: the states */

static struct esp_state_products *products_of(const struct esp_cpu_pass *p, int row, int head)
{
    return p->c->states.products + (size_t)row * (size_t)p->d->state_heads + (size_t)head;
}

/* Writes the decayed products of a head. `plain` are the products before any decay. `input` are
 * the inputs of `count` ancestors and then of the row itself. */
static void decay_products(const struct esp_cpu_pass *p, int row, int head,
                           const struct esp_state_products *plain, float *const *input,
                           int count)
{
    const struct esp_cpu_states *s = &p->c->states;
    struct esp_state_products *to = products_of(p, row, head);
    float left = decays_of(s, input[count])[head];
    for (int i = 0; i < count; i++) {
        to->by_key[i] = left * plain->by_key[i];
        to->by_query[i] = left * plain->by_query[i];
        left *= decays_of(s, input[i])[head];
    }
    to->by_key[count] = left;
    to->by_query[count] = plain->by_query[count];
}

static void find_products(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_states *s = &p->c->states;
    const struct esp_model_desc *d = p->d;
    const enum esp_mixer mixer = mixer_of(p);
    const int entry = esp_state_plan_entry(&s->plan, row), each = d->state_heads / d->key_heads;
    const float *values = s->convolved + (size_t)row * s->width;
    float *input[ESP_STATE_CHUNK];
    const int count = find_ancestors(p, entry, input);
    input[count] = input_of(p, entry);
    for (int k = 0; k < d->key_heads; k++) {
        const struct places at = places_of(d, mixer, d->heads_tiled ? k : k * each);
        const float *key[ESP_STATE_CHUNK];
        struct esp_state_products plain = {{0}, {0}};
        for (int i = 0; i <= count; i++)
            key[i] = keys_of(s, input[i]) + at.kept;
        if (mixer == ESP_MIXER_DELTA)
            p->isa->products(plain.by_key, values + at.key, key, count, d->key_dim);
        p->isa->products(plain.by_query, values + at.query, key, count + 1, d->key_dim);
        for (int i = 0; i < each; i++)
            decay_products(p, row, d->heads_tiled ? k + i * d->key_heads : k * each + i, &plain,
                           input, count);
    }
}

/* Describes the work of a pass on 16 columns of a head. */
struct part {
    const struct esp_cpu_pass *p;
    int head;
    size_t column; /* where the columns begin in an update */
    struct places places;
    float *state, *stack;
};

static float *level_of(const struct part *b, int level)
{
    return level == 0 ? b->state : b->stack + (size_t)level * b->p->c->states.block;
}

/* Adds the updates of the chunk that ends with entry `last` to the state at level `from` of the
 * stack, and writes the new state to level `to`. */
static void fold(const struct part *b, int last, int from, int to)
{
    const struct esp_cpu_states *s = &b->p->c->states;
    struct esp_state_fold f = {
        .keys = b->p->d->key_dim, .from = level_of(b, from), .to = level_of(b, to), .left = 1};
    for (int i = ESP_STATE_CHUNK - 1; i >= 0; i--, last = s->plan.entry[last].parent) {
        float *input = input_of(b->p, last);
        f.key[i] = keys_of(s, input) + b->places.kept;
        f.update[i] = updates_of(s, input) + b->column;
        f.weight[i] = f.left;
        f.left *= decays_of(s, input)[b->head];
    }
    b->p->isa->state_fold(&f);
}

static float *out_of(const struct part *b, int row)
{
    const struct esp_cpu_states *s = &b->p->c->states;
    return s->o + (size_t)row * s->out + b->column;
}

/* Computes the update and the output of a row from its products with the state. */
static void update_row(const struct part *b, int row)
{
    const struct esp_cpu_pass *p = b->p;
    const struct esp_cpu_states *s = &p->c->states;
    const int entry = esp_state_plan_entry(&s->plan, row);
    const struct esp_state_products *products = products_of(p, row, b->head);
    float *ancestor[ESP_STATE_CHUNK - 1], *own = input_of(p, entry);
    const float *before[ESP_STATE_CHUNK - 1];
    const int count = find_ancestors(p, entry, ancestor);
    for (int i = 0; i < count; i++)
        before[i] = updates_of(s, ancestor[i]) + b->column;
    const bool delta = mixer_of(p) == ESP_MIXER_DELTA;
    const struct esp_state_update update = {
        .ancestors = count,
        .before = before,
        .by_key = delta ? products->by_key : NULL,
        .by_query = products->by_query,
        .left = products->by_key[count],
        .own = products->by_query[count],
        .write = writes_of(s, own)[b->head],
        .skip = delta ? 0 : p->w->layer[p->layer].skip[b->head],
        .value = s->convolved + (size_t)row * s->width + b->places.value,
        .update = updates_of(s, own) + b->column,
        .out = out_of(b, row)};
    p->isa->state_update(&update);
}

/* Computes the rows of a group. They read the state at level `level` of the stack. */
static void do_rows(const struct part *b, const struct esp_state_group *group, int level)
{
    enum { MOST = 16 };
    const struct esp_cpu_pass *p = b->p;
    const struct esp_cpu_states *s = &p->c->states;
    const int32_t *row = s->plan.member + group->first;
    const float *with[MOST];
    float *out[MOST];
    struct esp_state_read read = {
        .keys = p->d->key_dim, .state = level_of(b, level), .with = with, .out = out};
    for (int i = 0; i < group->count; i++) {
        const float *values = s->convolved + (size_t)row[i] * s->width;
        with[read.count] = values + b->places.query;
        out[read.count++] = out_of(b, row[i]);
        if (mixer_of(p) == ESP_MIXER_DELTA) {
            const int entry = esp_state_plan_entry(&s->plan, row[i]);
            with[read.count] = values + b->places.key;
            out[read.count++] = updates_of(s, input_of(p, entry)) + b->column;
        }
        if (read.count + 2 > MOST || i == group->count - 1) {
            p->isa->state_read(&read);
            read.count = 0;
        }
    }
    for (int i = 0; i < group->count; i++)
        update_row(b, row[i]);
}

/* Runs all groups of the plan for 16 columns of a head. */
static void do_part(const struct esp_cpu_pass *p, int thread, int head, int column)
{
    const struct esp_cpu_states *s = &p->c->states;
    const struct esp_model_desc *d = p->d;
    const enum esp_mixer mixer = mixer_of(p);
    const size_t blocks = (size_t)(d->value_dim / ESP_LANES),
                 place = (size_t)column * ESP_LANES;
    struct part b = {.p = p,
                     .head = head,
                     .column = (size_t)(head * d->value_dim) + place,
                     .places = places_of(d, mixer, head),
                     .state = esp_states_of(s, place_of(p)) + s->tail +
                              ((size_t)head * blocks + (size_t)column) * s->block,
                     .stack = s->stack + (size_t)thread * ESP_WALK_LEVELS * s->block};
    b.places.value += place;
    do_rows(&b, &s->plan.group[0], 0);
    for (int i = 0; i < s->plan.walk.count; i++) {
        const struct esp_walk_step *step = &s->plan.walk.step[i];
        const struct esp_state_group *group = &s->plan.group[step->entry + 1];
        fold(&b, group->last, step->from, step->to);
        do_rows(&b, group, step->to);
    }
    const int64_t bytes = (int64_t)(s->block * sizeof *b.state);
    s->moved[thread].read += bytes;
    s->moved[thread].written += s->plan.walk.texts > 0 ? bytes : 0;
}

static void do_parts(void *step, int part, int thread)
{
    const struct esp_cpu_pass *p = step;
    const int blocks = p->d->value_dim / ESP_LANES;
    int begin, end;
    esp_cpu_share(p->d->state_heads * blocks, part, p->parts, &begin, &end);
    for (int i = begin; i < end; i++)
        do_part(p, thread, i / blocks, i % blocks);
}

/* Writes the mixer's output for the i-th row that later layers need. */
static void put_out(void *step, int i)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_cpu_states *s = &p->c->states;
    const struct esp_model_desc *d = p->d;
    const enum esp_mixer mixer = mixer_of(p);
    const int width = esp_mixed_width(d, mixer), row = p->going ? p->going[i] : i;
    const int groups = mixer == ESP_MIXER_SSM ? d->key_heads : d->state_heads;
    const size_t offset = (size_t)row * s->out;
    float *out = p->c->mixed.x + (size_t)i * p->c->mixed.stride, *o = s->o + offset;
    const float *gate = s->out_gate + offset;
    for (int k = 0; mixer == ESP_MIXER_CONV && k < width; k++)
        out[k] = gate[k] * s->convolved[(size_t)row * s->width + (size_t)k];
    if (mixer == ESP_MIXER_SSM)
        p->isa->activation(o, gate, o, width, ESP_SWIGLU, NULL);
    for (int g = 0; mixer != ESP_MIXER_CONV && g < groups; g++) {
        const int each = width / groups;
        const float *weight = layer->mixed_norm + (mixer == ESP_MIXER_SSM ? g * each : 0);
        p->isa->rmsnorm_head(o + g * each, each, weight, d->norm_epsilon);
    }
    if (mixer == ESP_MIXER_SSM)
        memcpy(out, o, (size_t)width * sizeof *out);
    if (mixer == ESP_MIXER_DELTA)
        p->isa->activation(out, gate, o, width, ESP_SWIGLU, NULL);
    esp_cpu_prepare(p, &p->c->mixed, i, 0, (int)p->c->mixed.stride);
}

void esp_cpu_mix(struct esp_cpu_pass *p)
{
    struct esp_cpu_states *s = &p->c->states;
    const struct esp_model_desc *d = p->d;
    const enum esp_mixer mixer = mixer_of(p);
    if (mixer == ESP_MIXER_CONV)
        esp_cpu_run_rows(p, p->batch->rows, s->width, gate_input, p);
    esp_cpu_run_rows(p, p->batch->rows, s->width, prepare_row, p);
    if (mixer != ESP_MIXER_CONV) {
        esp_cpu_run_rows(p, p->batch->rows, s->width, find_products, p);
        esp_cpu_run_step(p, d->state_heads * (d->value_dim / ESP_LANES), do_parts, p);
    }
    esp_cpu_run_rows(p, p->rows, s->out, put_out, p);
    esp_states_move_tail(s, place_of(p), d->conv_kernel);
    s->moved[0].steps += p->batch->rows;
    s->moved[0].read += (int64_t)(s->tail * sizeof(float));
    s->moved[0].written += s->plan.walk.texts > 0 ? (int64_t)(s->tail * sizeof(float)) : 0;
}

/* ------------------------------------------------------------------ passes */

bool esp_cpu_begin_states(struct esp_cpu_pass *p)
{
    struct esp_cache *cache = &p->c->base;
    struct esp_cpu_states *s = &p->c->states;
    if (s->layers == 0)
        return true;
    if (!esp_state_plan_make(&s->plan, cache, p->batch))
        return false;
    if (s->plan.begins)
        memset(s->memory, 0, (size_t)s->layers * s->each * sizeof *s->memory);
    cache->folded = -1; /* unknown until the pass has succeeded */
    const struct esp_cpu_backend *cpu = (const struct esp_cpu_backend *)cache->weights->backend;
    memset(s->moved, 0, (size_t)cpu->threads * sizeof *s->moved);
    return true;
}

static void count_traffic(struct esp_cpu_pass *p)
{
    struct esp_state_traffic *all = &p->c->base.traffic;
    const struct esp_cpu_backend *cpu =
        (const struct esp_cpu_backend *)p->c->base.weights->backend;
    for (int i = 0; i < cpu->threads; i++) {
        all->steps += p->c->states.moved[i].steps;
        all->read += p->c->states.moved[i].read;
        all->written += p->c->states.moved[i].written;
    }
}

void esp_cpu_end_states(struct esp_cpu_pass *p)
{
    if (p->c->states.layers == 0)
        return;
    p->c->base.folded = p->c->states.plan.folded;
    count_traffic(p);
}

/* Runs a pass without rows, which only adds complete chunks to the states. */
int esp_cpu_states_fold(struct esp_cache *cache, int prefix, int dropped)
{
    struct esp_cpu_cache *c = (struct esp_cpu_cache *)cache;
    const struct esp_cpu_weights *w = (const struct esp_cpu_weights *)c->base.weights;
    struct esp_cpu_backend *cpu = (struct esp_cpu_backend *)w->base.backend;
    const struct esp_window window = {.recent = 1, .dropped = dropped};
    const struct esp_batch none = {.first = prefix, .prefix = prefix, .window = &window};
    struct esp_cpu_pass p = {
        .w = w, .d = w->base.desc, .c = c, .isa = cpu->isa, .batch = &none};
    if (prefix < 0 || prefix > c->rows || dropped < 0 || !esp_cpu_begin_states(&p))
        return ESP_E_ARGUMENT;
    p.threads = cpu->threads;
    for (; c->states.plan.walk.texts > 0 && p.layer < p.d->layers; p.layer++)
        if (esp_recurs(mixer_of(&p)) && esp_cpu_has_layer(&p))
            esp_cpu_mix(&p);
    esp_cpu_end_states(&p);
    return ESP_OK;
}
