/* mixer.cu - the arithmetic of recurrent layers: convolves tokens, reads and updates states,
 * and applies the norm and the gates of the output. The comment at enum esp_mixer in kernels.h
 * gives the formulas that process one token at a time. cpu/pass_mixer.c gives the formulas that
 * process a chunk of tokens.
 *
 * As on the CPU, the value columns of a state do not depend on one another. So a block computes
 * 16 columns of a head, and holds this part of the state in registers. It processes the groups
 * of the plan (state_plan.h) one after the other. A row's numbers come from the same operations
 * in the same order, no matter which other rows are in its pass. So results are bit-identical
 * for trees, for chains, for any order of rows, and for any division of a prompt, with and
 * without exact mode.
 *
 * The kernels read the plan from at.visit, so a captured graph works for any tree.
 */
#include "kernels/cuda/state_layout.h"

enum { THREADS = 128, WARPS = THREADS / ESP_WARP };

/* Holds the arguments of the kernels of a recurrent layer. */
struct mixer_args {
    enum esp_mixer mixer;
    const float *projected; /* (rows, projected_stride) outputs of the matrix `inputs` */
    size_t projected_stride;
    int write_at, decay_at, in_gate_at, out_gate_at; /* first columns in `projected` */
    const float *conv, *conv_bias;                   /* (width, kernel); (width) or NULL */
    const float *decay_bias, *rate, *skip, *norm;
    int kernel, width, out_width;                         /* not padded */
    int key_heads, state_heads, key_dim, value_dim, keys; /* keys: number of keys per thread */
    bool tiled;
    float least_step, most_step, epsilon;
    float *inputs; /* (ring, stride) the inputs of this layer's states */
    int ring;
    size_t stride; /* number of floats from one input to the next input */
    size_t padded; /* number of floats in a row of `convolved` */
    /* The positions at which the parts of an input begin: the heads' factors `write` and
     * `decay`, the keys, and the updates. */
    size_t writes, decays, key_values, updates;
    float *convolved, *products, *state, *stack, *o;
    size_t each; /* number of floats in the states of a layer */
    size_t out;  /* number of floats in a row of `o` or of the output */
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

/* Returns the input of the convolution for channel i of batch row `row`. */
static __device__ __forceinline__ float fresh_input(const struct mixer_args &a, int row, int i)
{
    const float *from = a.projected + (size_t)row * a.projected_stride;
    return a.mixer == ESP_MIXER_CONV ? from[i] * from[a.in_gate_at + i] : from[i];
}

/* Returns the plan's entry for the first row of the batch. */
static __device__ __forceinline__ int first_entry(const struct esp_cuda_arrays &at)
{
    return at.pass->entries - at.pass->rows;
}

/* Returns the convolution of channel i at an entry of the plan. This is the sum over the entry
 * and the entries before it, the newest first. The inputs of tokens before this pass are in
 * slots of a.inputs. */
static __device__ float convolve(const struct esp_cuda_arrays &at, const struct mixer_args &a,
                                 int entry, int i)
{
    float sum = a.conv_bias ? a.conv_bias[i] : 0.0f;
    int token = at.pass->folded;
    for (int t = a.kernel - 1; t >= 0; t--) {
        float value = 0.0f;
        if (entry >= 0) {
            const struct esp_cuda_visit &visit = at.visit[entry];
            const int row = entry - first_entry(at);
            value = row >= 0 ? fresh_input(a, row, i) : a.inputs[visit.slot * a.stride + i];
            entry = visit.parent;
        } else if (--token >= 0) {
            value = a.inputs[token % a.ring * a.stride + i];
        }
        sum = fmaf(a.conv[(size_t)i * a.kernel + t], value, sum);
    }
    return sum;
}

/* Computes a whole convolution layer of LFM2, which has no states. Grid: (rows, channels). */
template <typename T>
static __global__ void conv_kernel(struct esp_cuda_arrays at, struct mixer_args a, T *out)
{
    esp_begin_early();
    const int row = blockIdx.x, i = blockIdx.y * THREADS + threadIdx.x;
    if (row >= at.pass->rows || i >= a.width)
        return;
    const int entry = first_entry(at) + row;
    const float gate = a.projected[(size_t)row * a.projected_stride + a.out_gate_at + i];
    out[row * a.out + i] = esp_from_float<T>(gate * convolve(at, a, entry, i));
    a.inputs[at.visit[entry].slot * a.stride + i] = fresh_input(a, row, i);
}

/* ------------------------------------------------------------------ inputs of the states */

/* The convolved values of a token have a part for each head of queries, of keys and of values.
 * Returns where part `part` begins. *head becomes the number of the value head, or -1 for a
 * head of queries or keys. *query becomes true for a head of queries, and false
 * otherwise. */
static __device__ int find_part(const struct mixer_args &a, int part, int *head, bool *query)
{
    const int keys = a.key_heads * a.key_dim, values = a.state_heads * a.value_dim;
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    const int key =
        delta ? part : part - a.state_heads; /* index among the heads of queries and keys */
    *head = -1;
    *query = false;
    if (key >= 0 && key < 2 * a.key_heads) {
        *query = (key < a.key_heads) == delta;
        return (delta ? 0 : values) + key * a.key_dim;
    }
    *head = delta ? part - 2 * a.key_heads : part;
    return (delta ? 2 * keys : 0) + *head * a.value_dim;
}

/* Computes the factors `write` and `decay` of a head for a token, from the outputs of the
 * matrix `inputs`. */
static __device__ void find_factors(const struct mixer_args &a, const float *projected,
                                    float *input, int head)
{
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    const float x = projected[a.decay_at + head] + a.decay_bias[head];
    float t = x > 20.0f ? x : log1pf(expf(x)); /* softplus */
    if (!delta)
        t = fminf(fmaxf(t, a.least_step), a.most_step);
    input[a.writes + head] = delta ? sigmoid(projected[a.write_at + head]) : t;
    input[a.decays + head] = expf(a.rate[head] * t);
}

/* Computes the convolved values and the factors of the batch's rows, and stores the inputs of
 * the states. A warp computes a head of queries, keys or values. Grid: (rows, all heads). */
static __global__ void prepare_kernel(struct esp_cuda_arrays at, struct mixer_args a)
{
    esp_begin_early();
    const int part = blockIdx.y * WARPS + threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int row = blockIdx.x;
    int head;
    bool query;
    if (row >= at.pass->rows || part >= 2 * a.key_heads + a.state_heads)
        return;
    const int begin = find_part(a, part, &head, &query);
    const int n = head < 0 ? a.key_dim : a.value_dim, entry = first_entry(at) + row;
    const int key_begin =
        a.mixer == ESP_MIXER_DELTA ? a.key_heads * a.key_dim : a.state_heads * a.value_dim;
    float *own = a.inputs + at.visit[entry].slot * a.stride;
    float *to = a.convolved + row * a.padded + begin, sum = 0.0f;
    for (int i = lane; i < n; i += ESP_WARP) {
        to[i] = silu(convolve(at, a, entry, begin + i));
        sum = fmaf(to[i], to[i], sum);
        own[begin + i] = fresh_input(a, row, begin + i);
    }
    if (a.mixer == ESP_MIXER_DELTA && head < 0) {
        const float length = sqrtf(esp_warp_sum(sum) + 1e-6f);
        const float scale = (query ? 1.0f / sqrtf((float)a.key_dim) : 1.0f) / length;
        for (int i = lane; i < n; i += ESP_WARP)
            to[i] *= scale;
    }
    for (int i = lane; i < n && head < 0 && !query; i += ESP_WARP)
        own[a.key_values + begin - key_begin + i] = to[i];
    if (head >= 0 && lane == 0)
        find_factors(a, a.projected + (size_t)row * a.projected_stride, own, head);
}

/* Says where the query, key and value of a head begin in the convolved values, and where its
 * key begins among the keys of an input (key_value). */
struct places {
    int query, key, value, key_value;
};

static __device__ __forceinline__ struct places places_of(const struct mixer_args &a, int head)
{
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    const int key_head = a.tiled ? head % a.key_heads : head / (a.state_heads / a.key_heads);
    const int keys = a.key_heads * a.key_dim, values = a.state_heads * a.value_dim;
    const int of_key = key_head * a.key_dim, of_value = head * a.value_dim;
    struct places at;
    at.query = delta ? of_key : values + keys + of_key;
    at.key = delta ? keys + of_key : values + of_key;
    at.value = delta ? 2 * keys + of_value : of_value;
    at.key_value = of_key;
    return at;
}

/* Computes the products of a row's key and of its query with the keys of its ancestors in its
 * chunk, the nearest ancestor first. Each product is multiplied by the decay since that
 * ancestor. Stores ESP_STATE_CHUNK numbers for the row's key, followed by ESP_STATE_CHUNK
 * numbers for its query. Of the key's numbers, the one at index `place` is the decay since the
 * chunk began. Of the query's numbers, the one at index `place` is the product of the row's
 * query and key. A warp computes a state head. Grid: (rows, heads). */
static __global__ void products_kernel(struct esp_cuda_arrays at, struct mixer_args a)
{
    esp_begin_early();
    const int head = blockIdx.y * WARPS + threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int row = blockIdx.x;
    if (row >= at.pass->rows || head >= a.state_heads)
        return;
    const struct places places = places_of(a, head);
    const float *token = a.convolved + row * a.padded;
    float *to = a.products + ((size_t)row * a.state_heads + head) * 2 * ESP_STATE_CHUNK;
    int entry = first_entry(at) + row;
    const int place = at.visit[entry].place;
    float left = 1.0f;
    for (int i = -1; i < place; i++, entry = at.visit[entry].parent) {
        const float *input = a.inputs + at.visit[entry].slot * a.stride;
        const float *key = input + a.key_values + places.key_value;
        float by_key = 0.0f, by_query = 0.0f;
        for (int k = lane; k < a.key_dim; k += ESP_WARP) {
            by_key = fmaf(token[places.key + k], key[k], by_key);
            by_query = fmaf(token[places.query + k], key[k], by_query);
        }
        by_key = esp_warp_sum(by_key);
        by_query = esp_warp_sum(by_query);
        if (lane == 0 && i >= 0)
            to[i] = left * by_key;
        if (lane == 0)
            to[ESP_STATE_CHUNK + (i < 0 ? place : i)] = left * by_query;
        left *= input[a.decays + head];
    }
    if (lane == 0)
        to[place] = left;
}

/* ------------------------------------------------------------------ the states */

/* Describes the part of a state that a thread computes: one value column, and every
 * ESP_STATE_SLICES-th key of this column. */
struct part {
    int head, slice, column; /* column: index of the column within the block */
    int value;               /* the column among all values of a token */
    size_t place;            /* index in the states of a layer */
    struct places places;
};

static __device__ __forceinline__ struct part part_of(const struct mixer_args &a)
{
    const int blocks = a.value_dim / ESP_STATE_COLUMNS;
    struct part b;
    b.head = blockIdx.x / blocks;
    b.slice = threadIdx.x % ESP_STATE_SLICES;
    b.column = threadIdx.x / ESP_STATE_SLICES;
    b.value = b.head * a.value_dim + blockIdx.x % blocks * ESP_STATE_COLUMNS + b.column;
    b.place = (size_t)blockIdx.x * a.keys * ESP_STATE_THREADS + threadIdx.x;
    b.places = places_of(a, b.head);
    return b;
}

/* Returns the sum of x over the slices of a column, to all threads of the column. */
static __device__ __forceinline__ float slice_sum(float x)
{
    for (int step = ESP_STATE_SLICES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ESP_ALL_LANES, x, step);
    return x;
}

static __device__ __forceinline__ float *level_of(const struct mixer_args &a,
                                                  const struct part &b, int level)
{
    return (level == 0 ? a.state : a.stack + (level - 1) * a.each) + b.place;
}

/* Adds the updates of the chunk that ends with entry `entry` to the state `s`, the oldest
 * update first. */
template <int KEYS>
static __device__ __forceinline__ void fold(const struct esp_cuda_arrays &at,
                                            const struct mixer_args &a, const struct part &b,
                                            int entry, float s[KEYS])
{
    float update[ESP_STATE_CHUNK], left = 1.0f;
    const float *key[ESP_STATE_CHUNK];
#pragma unroll
    for (int i = ESP_STATE_CHUNK - 1; i >= 0; i--) {
        const float *input = a.inputs + at.visit[entry].slot * a.stride;
        key[i] = input + a.key_values + b.places.key_value;
        update[i] = left * input[a.updates + b.value];
        left *= input[a.decays + b.head];
        entry = at.visit[entry].parent;
    }
#pragma unroll
    for (int j = 0; j < KEYS; j++) {
        const int k = ESP_STATE_SLICES * j + b.slice;
        s[j] *= left;
#pragma unroll
        for (int i = 0; i < ESP_STATE_CHUNK; i++)
            s[j] = fmaf(update[i], k < a.key_dim ? key[i][k] : 0.0f, s[j]);
    }
}

/* Multiplies the state by a row's query (*out) and, if the mixer needs this, by the row's key
 * (*recalled). */
template <int KEYS>
static __device__ __forceinline__ void
read_state(const struct mixer_args &a, const struct part &b, const float s[KEYS],
           const float *token, float *recalled, float *out)
{
    const bool delta = a.mixer == ESP_MIXER_DELTA;
    float by_key = 0.0f, by_query = 0.0f;
#pragma unroll
    for (int j = 0; j < KEYS; j++) {
        const int k = ESP_STATE_SLICES * j + b.slice;
        if (delta)
            by_key = fmaf(s[j], k < a.key_dim ? token[b.places.key + k] : 0.0f, by_key);
        by_query = fmaf(s[j], k < a.key_dim ? token[b.places.query + k] : 0.0f, by_query);
    }
    *recalled = delta ? slice_sum(by_key) : 0.0f;
    *out = slice_sum(by_query);
}

/* Computes the update and the output of a row from what the row has read from the state. Slice
 * i adds the update of the i-th ancestor in the chunk. The last slice never has an ancestor, so
 * it adds what the row has read. */
static __device__ __forceinline__ void update_row(const struct esp_cuda_arrays &at,
                                                  const struct mixer_args &a,
                                                  const struct part &b, int row, float recalled,
                                                  float out)
{
    int entry = first_entry(at) + row;
    const int place = at.visit[entry].place;
    const float *products =
        a.products + ((size_t)row * a.state_heads + b.head) * 2 * ESP_STATE_CHUNK;
    float *own = a.inputs + at.visit[entry].slot * a.stride, before = 0.0f;
    for (int i = 0; i < place && i <= b.slice; i++)
        entry = at.visit[entry].parent;
    const bool last = b.slice == ESP_STATE_SLICES - 1, adds = b.slice < place;
    if (adds)
        before = a.inputs[at.visit[entry].slot * a.stride + a.updates + b.value];
    const float by_key = adds ? products[b.slice] : last ? products[place] : 0.0f;
    const float by_query = adds   ? products[ESP_STATE_CHUNK + b.slice]
                           : last ? products[place]
                                  : 0.0f;
    const float value = a.convolved[row * a.padded + b.places.value + b.value % a.value_dim];
    recalled = slice_sum(by_key * (last ? recalled : before));
    out = slice_sum(by_query * (last ? out : before));
    const float u =
        own[a.writes + b.head] * (a.mixer == ESP_MIXER_DELTA ? value - recalled : value);
    out = fmaf(products[ESP_STATE_CHUNK + place], u, out);
    if (a.mixer == ESP_MIXER_SSM)
        out = fmaf(value, a.skip[b.head], out);
    if (b.slice == 0) {
        own[a.updates + b.value] = u;
        a.o[row * a.out + b.value] = out;
    }
}

/* TOGETHER: number of rows that read the state before the first of them computes its update.
 */
enum { TOGETHER = 32, ROOM_BYTES = TOGETHER * 2 * ESP_STATE_COLUMNS * sizeof(float) };

/* Returns the address in shared memory of the number that row `i` has read from the state, with
 * its key (which = 0) or with its query (which = 1). */
static __device__ __forceinline__ float *place_of(float *room, int i, int which,
                                                  const struct part &b)
{
    return room + (2 * i + which) * ESP_STATE_COLUMNS + b.column;
}

/* Adds complete chunks to the states, and computes the updates and outputs of the batch's rows.
 * Grid: (state heads * blocks of columns). KEYS: at least a.keys. */
template <int KEYS>
static __global__ void states_kernel(struct esp_cuda_arrays at, struct mixer_args a)
{
    ESP_SHARED(float, room); /* (TOGETHER, 2, ESP_STATE_COLUMNS), see place_of() */
    esp_begin_early();
    const struct part b = part_of(a);
    float s[KEYS] = {};
    for (int i = 0; i < at.pass->steps; i++) {
        const struct esp_cuda_visit &step = at.visit[i];
        if (step.load >= 0) {
            const float *from = level_of(a, b, step.load);
#pragma unroll
            for (int j = 0; j < KEYS; j++)
                s[j] = j < a.keys ? from[j * ESP_STATE_THREADS] : 0.0f;
        }
        if (step.last >= 0)
            fold<KEYS>(at, a, b, step.last, s);
        if (step.store >= 0) {
            float *to = level_of(a, b, step.store);
#pragma unroll
            for (int j = 0; j < KEYS; j++)
                if (j < a.keys)
                    to[j * ESP_STATE_THREADS] = s[j];
        }
        for (int first = step.first; first < step.first + step.count; first += TOGETHER) {
            const int end = min(step.first + step.count, first + TOGETHER);
            for (int m = first; m < end; m++) {
                const float *token = a.convolved + at.visit[m].member * a.padded;
                float recalled, out;
                read_state<KEYS>(a, b, s, token, &recalled, &out);
                if (b.slice == 0) {
                    *place_of(room, m - first, 0, b) = recalled;
                    *place_of(room, m - first, 1, b) = out;
                }
            }
            /* All slices of a column are in one warp, so no warp waits for another warp. */
            for (int m = first; m < end; m++) {
                __syncwarp();
                update_row(at, a, b, at.visit[m].member, *place_of(room, m - first, 0, b),
                           *place_of(room, m - first, 1, b));
            }
            __syncwarp();
        }
    }
}

/* ------------------------------------------------------------------ the output */

/* Applies the norm and the gate to what the rows have read from the states. A block computes
 * the columns that share a norm. Grid: (rows, groups). */
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
    a.padded = s->width;
    a.writes = s->width;
    a.decays = a.writes + s->rates;
    a.key_values = a.decays + s->rates;
    a.updates = a.key_values + s->key_values;
    a.convolved = s->convolved;
    a.products = s->products;
    a.state = s->memory + held->place * s->each;
    a.stack = s->stack;
    a.o = s->o;
    a.each = s->each;
    a.out = s->out;
    return a;
}

template <typename T>
void esp_cuda_mix(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                  int rows)
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
    const dim3 blocks(a.state_heads * (a.value_dim / ESP_STATE_COLUMNS));
    if (rows > 0) {
        ESP_LAUNCH_EARLY(early, prepare_kernel, dim3(rows, (parts + WARPS - 1) / WARPS),
                         dim3(THREADS), 0, stream, c->at, a);
        ESP_LAUNCH_EARLY(early, products_kernel,
                         dim3(rows, (a.state_heads + WARPS - 1) / WARPS), dim3(THREADS), 0,
                         stream, c->at, a);
    }
    if (a.keys <= 16)
        ESP_LAUNCH_EARLY(early, (states_kernel<16>), blocks, dim3(ESP_STATE_THREADS),
                         ROOM_BYTES, stream, c->at, a);
    else
        ESP_LAUNCH_EARLY(early, (states_kernel<ESP_CUDA_STATE_KEYS / ESP_STATE_SLICES>), blocks,
                         dim3(ESP_STATE_THREADS), ROOM_BYTES, stream, c->at, a);
    if (rows > 0)
        ESP_LAUNCH_EARLY(early, (out_kernel<T>), dim3(rows, groups), dim3(THREADS),
                         WARPS * sizeof(float), stream, c->at, a, out);
}

template void esp_cuda_mix<esp_bf16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                     int, int);
template void esp_cuda_mix<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_layer *, int,
                                    int);

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
