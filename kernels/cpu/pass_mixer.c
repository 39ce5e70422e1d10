/* pass_mixer.c - the convolution, the walk over the states, and the output's norm and gate;
 * see pass_mixer.h. isa/recurrent.c computes one step of a state. */
#include "kernels/cpu/pass_mixer.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/divided.h"
#include "kernels/model_desc.h"

/* Offsets of a head's query, key and value in the convolved values of a token. */
struct places {
    size_t query, key, value;
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
    return mixer == ESP_MIXER_DELTA ? (struct places){key, keys + key, 2 * keys + value}
                                    : (struct places){values + keys + key, values + key, value};
}

/* ------------------------------------------------------------------ 3: inputs of the states */

/* log(1 + e^x) */
static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

static void find_factors(const struct esp_cpu_pass *p, const float *input, float *factors)
{
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_model_desc *d = p->d;
    const struct esp_cpu_states *s = &p->c->states;
    const float *write = input + s->width, *decay = write + s->rates;
    const bool delta = mixer_of(p) == ESP_MIXER_DELTA;
    for (int h = 0; h < d->state_heads; h++) {
        double t = softplus((double)decay[h] + (double)layer->decay_bias[h]);
        if (!delta)
            t = fmin(fmax(t, (double)d->least_step), (double)d->most_step);
        factors[h] = delta ? (float)(1 / (1 + exp(-(double)write[h]))) : (float)t;
        factors[s->rates + (size_t)h] = (float)exp((double)layer->rate[h] * t);
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

static void prepare_entry(void *step, int entry)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_layer *layer = &p->w->layer[p->layer];
    const struct esp_cpu_states *s = &p->c->states;
    const enum esp_mixer mixer = mixer_of(p);
    const float *taps[ESP_MOST_TAPS];
    float *out = s->convolved + (size_t)entry * s->width;
    const int width = esp_conv_width(p->d, mixer);
    if (mixer == ESP_MIXER_CONV && s->plan.entry[entry].row < 0)
        return;
    esp_states_taps(s, place_of(p), p->d->conv_kernel, entry, taps);
    p->isa->convolve(out, taps, layer->conv, layer->conv_bias,
                     (int)esp_cpu_pad(width, ESP_LANES), p->d->conv_kernel,
                     esp_cpu_pad(width, ESP_PANEL), mixer != ESP_MIXER_CONV);
    if (mixer == ESP_MIXER_DELTA)
        scale_heads(p, out);
    if (mixer != ESP_MIXER_CONV)
        find_factors(p, taps[p->d->conv_kernel - 1], s->factors + (size_t)entry * 2 * s->rates);
}

/* LFM2 convolves the product of its input and a gate. */
static void gate_input(void *step, int row)
{
    const struct esp_cpu_pass *p = step;
    const struct esp_cpu_states *s = &p->c->states;
    float *input = esp_states_input(s, place_of(p), s->plan.batch_slot[row]);
    const float *gate = s->in_gate + (size_t)row * s->width;
    for (int i = 0; i < p->d->hidden; i++)
        input[i] *= gate[i];
}

/* ------------------------------------------------------------------ 4: the walk */

/* Applies all rows of the walk to one block of 16 columns of a head. */
static void walk(const struct esp_cpu_pass *p, int thread, int head, int column)
{
    const struct esp_cpu_states *s = &p->c->states;
    const struct esp_model_desc *d = p->d;
    const enum esp_mixer mixer = mixer_of(p);
    const struct places at = places_of(d, mixer, head);
    const size_t blocks = (size_t)(d->value_dim / ESP_LANES),
                 place = (size_t)column * ESP_LANES;
    float *state = esp_states_of(s, place_of(p)) + s->tail +
                   ((size_t)head * blocks + (size_t)column) * s->block;
    float *stack = s->stack + (size_t)thread * ESP_WALK_LEVELS * s->block;
    bool reads = false, writes = false;
    for (int i = 0; i < s->plan.walk.count; i++) {
        const struct esp_walk_step *step = &s->plan.walk.step[i];
        const struct esp_state_entry *entry = &s->plan.entry[step->entry];
        const float *values = s->convolved + (size_t)step->entry * s->width;
        const float *factors = s->factors + (size_t)step->entry * 2 * s->rates;
        const struct esp_state_step one = {
            .keys = d->key_dim,
            .delta = mixer == ESP_MIXER_DELTA,
            .from = step->from == 0 ? state : stack + (size_t)step->from * s->block,
            .to = step->to == 0 ? state : stack + (size_t)step->to * s->block,
            .query = values + at.query,
            .key = values + at.key,
            .value = values + at.value + place,
            .write = factors[head],
            .decay = factors[s->rates + (size_t)head],
            .skip = mixer == ESP_MIXER_SSM ? p->w->layer[p->layer].skip[head] : 0,
            .out = entry->row < 0 ? NULL
                                  : s->o + (size_t)entry->row * s->out +
                                        (size_t)(head * d->value_dim) + place,
        };
        p->isa->state_step(&one);
        reads |= step->from == 0;
        writes |= step->to == 0;
    }
    s->moved[thread].read += reads ? (int64_t)(s->block * sizeof *state) : 0;
    s->moved[thread].written += writes ? (int64_t)(s->block * sizeof *state) : 0;
}

static void walk_part(void *step, int part, int thread)
{
    const struct esp_cpu_pass *p = step;
    const int blocks = p->d->value_dim / ESP_LANES;
    int begin, end;
    esp_cpu_share(p->d->state_heads * blocks, part, p->parts, &begin, &end);
    for (int i = begin; i < end; i++)
        walk(p, thread, i / blocks, i % blocks);
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
    if (mixer == ESP_MIXER_CONV) {
        const int entry = s->plan.walk.count - p->batch->rows + row;
        for (int k = 0; k < width; k++)
            out[k] = gate[k] * s->convolved[(size_t)entry * s->width + (size_t)k];
    }
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
    esp_cpu_run_rows(p, s->plan.walk.count, s->width, prepare_entry, p);
    if (mixer != ESP_MIXER_CONV)
        esp_cpu_run_step(p, d->state_heads * (d->value_dim / ESP_LANES), walk_part, p);
    esp_cpu_run_rows(p, p->rows, s->out, put_out, p);
    esp_states_move_tail(s, place_of(p), d->conv_kernel, p->folded);
    s->moved[0].steps += s->plan.walk.count;
    s->moved[0].read += (int64_t)(s->tail * sizeof(float));
    s->moved[0].written += s->plan.folded > p->folded ? (int64_t)(s->tail * sizeof(float)) : 0;
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
    if (s->plan.begins) {
        memset(s->memory, 0, (size_t)s->layers * s->each * sizeof *s->memory);
        cache->folded = 0;
    }
    p->folded = cache->folded;
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

/* A pass without rows. */
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
    for (; c->states.plan.walk.count > 0 && p.layer < p.d->layers; p.layer++)
        if (esp_recurs(mixer_of(&p)) && esp_cpu_has_layer(&p))
            esp_cpu_mix(&p);
    esp_cpu_end_states(&p);
    return ESP_OK;
}
