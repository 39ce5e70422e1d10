/* mixer.cu - recurrent layers: the convolution, the walk over the states, and the output's norm
 * and gates (enum esp_mixer in kernels.h has the formulas).
 *
 * As on the CPU (cpu/pass_mixer.c), the value columns of a state never mix. So a block has 16
 * columns of a head, and walks the whole tree, depth first (kernels/walk.h), with its part of
 * the state in registers. It loads another state only where a path ends, and stores its own
 * only where a second path begins. A row's numbers come from the same operations in the same
 * order as in a chain of its ancestors: results are bit-identical for trees, chains, any order
 * of rows and any chunk of a prompt, in both modes.
 *
 * The kernels find the rows of the walk in at.visit, so a captured pass may have any walk.
 */
#include "kernels/cuda/state_layout.h"

enum { THREADS = 128, WARPS = THREADS / ESP_WARP };

/* What the kernels of a recurrent layer read and write. */
struct mixer_args {
    enum esp_mixer mixer;
    const float *projected; /* (rows, projected_stride) outputs of the matrix `inputs` */
    size_t projected_stride;
    int write_at, decay_at, in_gate_at, out_gate_at; /* columns of `projected` */
    const float *conv, *conv_bias;                   /* (width, kernel); (width) or NULL */
    const float *decay_bias, *rate, *skip, *norm;
    int kernel, width, out_width; /* not padded */
    int key_heads, state_heads, key_dim, value_dim, keys;
    bool tiled;
    float least_step, most_step, epsilon;
    float *inputs; /* (ring, stride) of this layer */
    int ring;
    size_t stride, rates, padded; /* between inputs; padded numbers of heads and of `width` */
    float *convolved, *factors, *state, *stack, *o;
    size_t each, out; /* numbers of a layer's states; between rows of `o` and of the output */
};

static __device__ __forceinline__ float silu(float x)
{
    return x / (1.0f + expf(-x));
}

static __device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* ------------------------------------------------------------------ the convolution */

/* Returns what is convolved of channel i of batch row `row`. */
static __device__ __forceinline__ float fresh_input(const struct mixer_args &a, int row, int i)
{
    const float *from = a.projected + (size_t)row * a.projected_stride;
    return a.mixer == ESP_MIXER_CONV ? from[i] * from[a.in_gate_at + i] : from[i];
}

/* Returns the convolution of channel i at an entry of the walk: the sum over the entry and those
 * before it, the newest first. Tokens before the walk have their inputs in their slots. */
static __device__ float convolve(const struct esp_cuda_arrays &at, const struct mixer_args &a,
                                 int entry, int i)
{
    float sum = a.conv_bias ? a.conv_bias[i] : 0.0f;
    int token = at.pass->folded;
    for (int t = a.kernel - 1; t >= 0; t--) {
        float value = 0.0f;
        if (entry >= 0) {
            const struct esp_cuda_visit &visit = at.visit[entry];
            value = visit.row >= 0 ? fresh_input(a, visit.row, i)
                                   : a.inputs[visit.slot * a.stride + i];
            entry = visit.parent;
        } else if (--token >= 0) {
            value = a.inputs[token % a.ring * a.stride + i];
        }
        sum = fmaf(a.conv[(size_t)i * a.kernel + t], value, sum);
    }
    return sum;
}

/* A whole layer of LFM2, which has no states. Grid: (rows, channels). */
template <typename T>
static __global__ void conv_kernel(struct esp_cuda_arrays at, struct mixer_args a, T *out)
{
    esp_begin_early();
    const int row = blockIdx.x, i = blockIdx.y * THREADS + threadIdx.x;
    if (row >= at.pass->rows || i >= a.width)
        return;
    const int entry = at.pass->visits - at.pass->rows + row;
    const float gate = a.projected[(size_t)row * a.projected_stride + a.out_gate_at + i];
    out[row * a.out + i] = esp_from_float<T>(gate * convolve(at, a, entry, i));
    a.inputs[at.visit[entry].slot * a.stride + i] = fresh_input(a, row, i);
}

/* ------------------------------------------------------------------ inputs of the states */

/* The convolved values of a token are those of the heads of queries, keys and values. Returns
 * where part `part` of them begins. *head: the value head, or -1. *query: whether these are
 * queries. */
static __device__ int find_part(const struct mixer_args &a, int part, int *head, bool *query)
{
    const int keys = a.key_heads * a.key_dim, values = a.state_heads * a.value_dim;
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    const int key =
        delta ? part : part - a.state_heads; /* queries and keys, or keys and queries */
    *head = -1;
    *query = false;
    if (key >= 0 && key < 2 * a.key_heads) {
        *query = (key < a.key_heads) == delta;
        return (delta ? 0 : values) + key * a.key_dim;
    }
    *head = delta ? part - 2 * a.key_heads : part;
    return (delta ? 2 * keys : 0) + *head * a.value_dim;
}

/* Computes the two factors of a head for a token, see struct esp_cuda_states. */
static __device__ void find_factors(const struct mixer_args &a, const float *write,
                                    const float *decay, int head, float *to)
{
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    const float x = decay[head] + a.decay_bias[head];
    float t = x > 20.0f ? x : log1pf(expf(x)); /* softplus */
    if (!delta)
        t = fminf(fmaxf(t, a.least_step), a.most_step);
    to[head] = delta ? sigmoid(write[head]) : t;
    to[a.rates + head] = expf(a.rate[head] * t);
}

/* Computes the convolved values and the factors of all entries of the walk, and stores the
 * inputs of the batch's rows. A warp does a head of queries, keys or values. Grid: (any number,
 * heads of all three). */
static __global__ void prepare_kernel(struct esp_cuda_arrays at, struct mixer_args a)
{
    esp_begin_early();
    const int part = blockIdx.y * WARPS + threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    int head;
    bool query;
    if (part >= 2 * a.key_heads + a.state_heads)
        return;
    const int begin = find_part(a, part, &head, &query);
    const int n = head < 0 ? a.key_dim : a.value_dim;
    for (int entry = blockIdx.x; entry < at.pass->visits; entry += gridDim.x) {
        const struct esp_cuda_visit &visit = at.visit[entry];
        float *own = a.inputs + visit.slot * a.stride;
        float *to = a.convolved + entry * a.padded + begin, sum = 0.0f;
        for (int i = lane; i < n; i += ESP_WARP) {
            to[i] = silu(convolve(at, a, entry, begin + i));
            sum = fmaf(to[i], to[i], sum);
            if (visit.row >= 0)
                own[begin + i] = fresh_input(a, visit.row, begin + i);
        }
        if (a.mixer == ESP_MIXER_DELTA && head < 0) {
            const float length = sqrtf(esp_warp_sum(sum) + 1e-6f);
            const float scale = (query ? 1.0f / sqrtf((float)a.key_dim) : 1.0f) / length;
            for (int i = lane; i < n; i += ESP_WARP)
                to[i] *= scale;
        }
        if (head < 0 || lane > 0)
            continue;
        float *write = own + a.padded, *decay = write + a.rates;
        const float *from = a.projected + (size_t)visit.row * a.projected_stride;
        if (visit.row >= 0 && a.mixer == ESP_MIXER_DELTA)
            write[head] = from[a.write_at + head];
        if (visit.row >= 0)
            decay[head] = from[a.decay_at + head];
        find_factors(a, write, decay, head, a.factors + entry * 2 * a.rates);
    }
}

/* ------------------------------------------------------------------ the walk */

/* Returns the sum over the slices of a column to all its threads. */
static __device__ __forceinline__ float slice_sum(float x)
{
    for (int step = ESP_STATE_SLICES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ESP_ALL_LANES, x, step);
    return x;
}

/* Grid: (state heads * blocks of columns). KEYS: at least a.keys. */
template <int KEYS>
static __global__ void walk_kernel(struct esp_cuda_arrays at, struct mixer_args a)
{
    esp_begin_early();
    const int blocks = a.value_dim / ESP_STATE_COLUMNS;
    const int head = blockIdx.x / blocks, slice = threadIdx.x % ESP_STATE_SLICES;
    const int column = blockIdx.x % blocks * ESP_STATE_COLUMNS + threadIdx.x / ESP_STATE_SLICES;
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    const int key_head = a.tiled ? head % a.key_heads : head / (a.state_heads / a.key_heads);
    const int keys = a.key_heads * a.key_dim, values = a.state_heads * a.value_dim;
    const int of_key = key_head * a.key_dim, of_value = head * a.value_dim + column;
    const int query_at = delta ? of_key : values + keys + of_key;
    const int key_at = delta ? keys + of_key : values + of_key;
    const int value_at = delta ? 2 * keys + of_value : of_value;
    const size_t place = (size_t)blockIdx.x * a.keys * ESP_STATE_THREADS + threadIdx.x;
    const float skip = delta ? 0.0f : a.skip[head];
    float s[KEYS] = {};
    for (int i = 0; i < at.pass->visits; i++) {
        const int entry = at.visit[i].entry, load = at.visit[i].load, store = at.visit[i].store;
        const int row = at.visit[entry].row;
        const float *token = a.convolved + entry * a.padded;
        const float *factors = a.factors + entry * 2 * a.rates;
        const float write = factors[head], decay = factors[a.rates + head];
        const float value = token[value_at];
        float key[KEYS], sum = 0.0f;
        if (load >= 0) {
            const float *from = (load == 0 ? a.state : a.stack + (load - 1) * a.each) + place;
#pragma unroll
            for (int j = 0; j < KEYS; j++)
                s[j] = j < a.keys ? from[j * ESP_STATE_THREADS] : 0.0f;
        }
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            const int k = ESP_STATE_SLICES * j + slice;
            key[j] = k < a.key_dim ? token[key_at + k] : 0.0f;
            s[j] *= decay;
            sum = fmaf(s[j], key[j], sum);
        }
        const float change = delta ? value - slice_sum(sum) : value, u = write * change;
        sum = 0.0f;
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            const int k = ESP_STATE_SLICES * j + slice;
            s[j] = fmaf(u, key[j], s[j]);
            sum = fmaf(s[j], k < a.key_dim ? token[query_at + k] : 0.0f, sum);
        }
        sum = fmaf(value, skip, slice_sum(sum));
        if (row >= 0 && slice == 0)
            a.o[row * a.out + of_value] = sum;
        if (store >= 0) {
            float *to = (store == 0 ? a.state : a.stack + (store - 1) * a.each) + place;
#pragma unroll
            for (int j = 0; j < KEYS; j++)
                if (j < a.keys)
                    to[j * ESP_STATE_THREADS] = s[j];
        }
    }
}

/* ------------------------------------------------------------------ the output */

/* Norm and gate of what was read from the states. A block does the columns that share a norm.
 * Grid: (rows, groups). */
template <typename T>
static __global__ void out_kernel(struct esp_cuda_arrays at, struct mixer_args a, T *out)
{
    ESP_SHARED(float, room);
    esp_begin_early();
    const int row = blockIdx.x, each = a.out_width / gridDim.y, begin = blockIdx.y * each;
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    if (row >= at.pass->rows)
        return;
    float *o = a.o + row * a.out + begin;
    const float *gate = a.projected + (size_t)row * a.projected_stride + a.out_gate_at + begin;
    const float *norm = a.norm + (delta ? 0 : begin);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < each; i += THREADS) {
        if (!delta)
            o[i] *= silu(gate[i]);
        sum = fmaf(o[i], o[i], sum);
    }
    const float scale = 1.0f / sqrtf(esp_block_sum(sum, room) / (float)each + a.epsilon);
    for (int i = threadIdx.x; i < each; i += THREADS) {
        const float value = o[i] * scale * norm[i];
        out[row * a.out + begin + i] = esp_from_float<T>(delta ? value * silu(gate[i]) : value);
    }
}

/* ------------------------------------------------------------------ launching */

static struct mixer_args args_of(const struct esp_cuda_cache *c,
                                 const struct esp_cuda_layer *held, enum esp_mixer mixer)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const struct esp_cuda_states *s = &c->states;
    struct mixer_args a = {};
    a.mixer = mixer;
    a.projected = c->inputs;
    a.projected_stride = c->inputs_width;
    a.width = esp_conv_width(d, mixer);
    a.out_width = esp_mixed_width(d, mixer);
    a.write_at = a.in_gate_at = a.width;
    a.decay_at = a.width + (mixer == ESP_MIXER_DELTA ? d->state_heads : 0);
    a.out_gate_at = mixer == ESP_MIXER_CONV ? 2 * a.width : a.decay_at + d->state_heads;
    a.conv = held->conv;
    a.conv_bias = held->conv_bias;
    a.decay_bias = held->decay_bias;
    a.rate = held->rate;
    a.skip = held->skip;
    a.norm = held->mixed_norm;
    a.kernel = d->conv_kernel;
    a.key_heads = d->key_heads;
    a.state_heads = d->state_heads;
    a.key_dim = d->key_dim;
    a.value_dim = d->value_dim;
    a.keys = s->keys;
    a.tiled = d->heads_tiled;
    a.least_step = d->least_step;
    a.most_step = d->most_step;
    a.epsilon = d->norm_epsilon;
    a.stride = esp_cuda_input_stride(s);
    a.inputs = s->inputs + held->place * s->plan.ring * a.stride;
    a.ring = s->plan.ring;
    a.rates = s->rates;
    a.padded = s->width;
    a.convolved = s->convolved;
    a.factors = s->factors;
    a.state = s->memory + held->place * s->each;
    a.stack = s->stack;
    a.o = s->o;
    a.each = s->each;
    a.out = s->out;
    return a;
}

template <typename T>
void esp_cuda_mix(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                  int rows, int visits)
{
    const struct mixer_args a = args_of(c, held, esp_cuda_desc_of(c)->layer[layer].mixer);
    cudaStream_t stream = esp_cuda_backend_of(c)->stream;
    const bool early = esp_cuda_early(c);
    T *out = (T *)c->states.mixed;
    if (a.mixer == ESP_MIXER_CONV) {
        if (rows > 0)
            ESP_LAUNCH_EARLY(early, (conv_kernel<T>),
                             dim3(rows, (a.width + THREADS - 1) / THREADS), dim3(THREADS), 0,
                             stream, c->at, a, out);
        return;
    }
    const int parts = 2 * a.key_heads + a.state_heads;
    const int groups = a.mixer == ESP_MIXER_SSM ? a.key_heads : a.state_heads;
    const dim3 walkers(a.state_heads * (a.value_dim / ESP_STATE_COLUMNS));
    ESP_LAUNCH_EARLY(early, prepare_kernel, dim3(visits, (parts + WARPS - 1) / WARPS),
                     dim3(THREADS), 0, stream, c->at, a);
    if (a.keys <= 16)
        ESP_LAUNCH_EARLY(early, (walk_kernel<16>), walkers, dim3(ESP_STATE_THREADS), 0, stream,
                         c->at, a);
    else
        ESP_LAUNCH_EARLY(early, (walk_kernel<ESP_CUDA_STATE_KEYS / ESP_STATE_SLICES>), walkers,
                         dim3(ESP_STATE_THREADS), 0, stream, c->at, a);
    if (rows > 0)
        ESP_LAUNCH_EARLY(early, (out_kernel<T>), dim3(rows, groups), dim3(THREADS),
                         WARPS * sizeof(float), stream, c->at, a, out);
}

template void esp_cuda_mix<esp_bf16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                     int, int, int);
template void esp_cuda_mix<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_layer *, int,
                                    int, int);

/* ------------------------------------------------------------------ the gate of attention */

template <typename T>
static __global__ void gate_kernel(struct esp_cuda_arrays at, const float *gate,
                                   size_t gate_stride, T *x, size_t stride, int n)
{
    esp_begin_early();
    const int row = blockIdx.x, i = blockIdx.y * THREADS + threadIdx.x;
    if (row >= at.pass->rows || i >= n)
        return;
    T *to = x + row * stride + i;
    *to = esp_from_float<T>(esp_to_float(*to) * sigmoid(gate[row * gate_stride + i]));
}

template <typename T> void esp_cuda_gate(struct esp_cuda_cache *c, int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const int n = d->heads * d->head_dim;
    ESP_LAUNCH_EARLY(esp_cuda_early(c), (gate_kernel<T>),
                     dim3(rows, (n + THREADS - 1) / THREADS), dim3(THREADS), 0,
                     esp_cuda_backend_of(c)->stream, c->at,
                     c->inputs + n + 2 * (size_t)d->kv_heads * d->head_dim, c->inputs_width,
                     (T *)c->attended, c->q_width, n);
}

template void esp_cuda_gate<esp_bf16>(struct esp_cuda_cache *, int);
template void esp_cuda_gate<esp_f16>(struct esp_cuda_cache *, int);
