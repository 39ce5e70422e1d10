/* embed.cu - the first kernel of a pass. It writes token embeddings to the residual stream,
 * joins the vectors that the matrix `fc` of a draft head reads, and turns masks into lists of
 * rows.
 *
 * A row of a tree sees the whole prefix and some later rows, which are selected by a bitmask.
 * Attention needs the i-th of these rows in every layer and head. So the mask is expanded once
 * per pass, to the ascending list seen[row][i]. Rows of a batch without masks see all rows
 * before them and need no list. The cosines and sines of a row's position are also computed
 * once, for all layers and heads. */
#include "kernels/cuda/norm.h"

enum { THREADS = 256 };
static const size_t ROOM = THREADS / ESP_WARP * sizeof(float);

template <typename T, typename A> struct embed_args {
    enum esp_reads reads;
    bool fc;                       /* this pass uses fc, which reads c->joined */
    /* `embedding` has rows of `stride` numbers; it is NULL if x already contains the
     * embeddings. `position` is NULL if the model has no position embedding. */
    const T *embedding, *position;
    size_t stride;
    float scale, *x, *embedded;
    int hidden;        /* numbers in a row of x and of `embedded`, padded */
    int values, input; /* the model's hidden and input widths, not padded */
    /* of_embedding: the norm of the embedding, before fc reads it. weight[i]: the weight of the
     * norm for part i of the input of fc, which has `parts` equal parts. If a weight is NULL,
     * the norm is the identity. */
    struct esp_cuda_norm_args of_embedding;
    const float *weight[ESP_FC_NORMS]; /* (parts) */
    int parts;
    bool input_first; /* fc reads [input, embedding], not [embedding, input] */
    A *joined;
    size_t joined_width;
    const float *frequency, *local_frequency; /* (half), or NULL */
    float2 *rotation, *local_rotation;        /* (max_batch + 1, half) */
    int half, sinks_row;
    float rotary_scale;
};

/* Writes the cosines and sines of a position. If the angle is a product of floats, its error is
 * 1e-3 radians at position 10,000, as in every RoPE that uses floats. In an endless text the
 * error would grow. So positions after a full window (`far`) use a product of doubles. */
static __device__ void rotate(const float *frequency, float2 *turns, int half, float scale,
                              int position, bool far)
{
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        float2 turn;
        if (far) {
            const double angle = (double)position * (double)frequency[i];
            turn.x = (float)cos(angle);
            turn.y = (float)sin(angle);
        } else {
            const float angle = (float)position * frequency[i];
            turn.x = cosf(angle);
            turn.y = sinf(angle);
        }
        turn.x *= scale;
        turn.y *= scale;
        turns[i] = turn;
    }
}

/* Writes row `row` of the cosines and sines, for both kinds of rotation. */
template <typename T, typename A>
static __device__ void rotate_both(const struct embed_args<T, A> &a, int row, int position,
                                   bool far)
{
    const size_t to = (size_t)row * a.half;
    if (a.frequency)
        rotate(a.frequency, a.rotation + to, a.half, a.rotary_scale, position, far);
    if (a.local_frequency)
        rotate(a.local_frequency, a.local_rotation + to, a.half, a.rotary_scale, position, far);
}

/* Writes a normalised vector. Every thread of the block calls this. */
template <typename A>
static __device__ void write_normed(const float *x, const struct esp_cuda_norm_args &norm,
                                    A *out, float *room)
{
    const auto normed = esp_cuda_normalise(x, norm, room);
    for (int i = threadIdx.x; i < norm.n; i += blockDim.x)
        out[i] = esp_from_float<A>(normed[i]);
}

/* Joins the vectors that are the input of fc, and writes the result to `joined`. */
template <typename T, typename A>
static __device__ void join(const struct embed_args<T, A> &a, const float *x,
                            const float *input, A *joined, float *room)
{
    const int values = a.reads == ESP_READS_EAGLE ? a.values : 0;
    const int begin = a.input_first ? 0 : values;
    struct esp_cuda_norm_args norm = a.of_embedding;
    norm.n = a.input / a.parts;
    if (values > 0)
        write_normed(x, a.of_embedding, joined + (a.input_first ? a.input : 0), room);
#pragma unroll
    for (int i = 0; i < ESP_FC_NORMS; i++)
        if (i < a.parts) {
            norm.weight = a.weight[i];
            write_normed(input + i * norm.n, norm, joined + begin + i * norm.n, room);
        }
    for (int i = values + a.input + threadIdx.x; i < (int)a.joined_width; i += blockDim.x)
        joined[i] = esp_from_float<A>(0.0f);
}

/* Prepares the input of layer 0 of a draft head. This layer reads hidden states, in addition to
 * the embedding in x or instead of it (enum esp_reads). Every thread of the block must call
 * this. */
template <typename T, typename A>
static __device__ void read_input(const struct esp_cuda_arrays &at,
                                  const struct embed_args<T, A> &a, int row, float *room)
{
    const float *input = at.pass->input + (size_t)at.input_row[row] * at.pass->input_stride;
    float *x = a.x + (size_t)row * a.hidden;
    for (int i = threadIdx.x; a.reads == ESP_READS_EAGLE3 && i < a.hidden; i += blockDim.x) {
        a.embedded[(size_t)row * a.hidden + i] = x[i];
        if (!a.fc)
            x[i] = i < a.values ? input[i] : 0.0f;
    }
    if (a.fc)
        join(a, x, input, a.joined + (size_t)row * a.joined_width, room);
}

template <typename T, typename A>
static __global__ void embed_kernel(struct esp_cuda_arrays at, struct embed_args<T, A> a)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    const T *from = a.embedding + (size_t)at.tokens[row] * a.stride;
    const T *place = a.position ? a.position + (size_t)at.positions[row] * a.hidden : NULL;
    for (int i = threadIdx.x; i < a.hidden; i += blockDim.x) {
        float *x = a.x + (size_t)row * a.hidden + i;
        *x = (a.embedding ? esp_to_float(from[i]) : *x) * a.scale +
             (place ? esp_to_float(place[i]) : 0.0f);
    }
    rotate_both(a, row, at.positions[row], esp_cuda_has_gap(at, row));
    if (row == 0 && at.pass->recent > 0)
        rotate_both(a, a.sinks_row, at.pass->sinks + at.pass->recent - 1, false);
    __syncthreads();
    if (a.reads != ESP_READS_TOKENS)
        read_input(at, a, row, room);

    if (at.pass->words == 0 || threadIdx.x >= ESP_WARP)
        return;
    const uint64_t *mask = at.mask + (size_t)row * at.pass->words;
    int32_t *seen = at.seen + (size_t)row * at.seen_stride;
    int count = 0;
    for (int word = 0; word < at.pass->words; word++) {
        const uint64_t bits = mask[word];
        for (int half = 0; half < 2; half++) {
            const uint32_t part = (uint32_t)(bits >> 32 * half);
            const uint32_t below = part & ((1u << threadIdx.x) - 1);
            if (part >> threadIdx.x & 1)
                seen[count + __popc(below)] =
                    at.pass->prefix + 64 * word + 32 * half + (int)threadIdx.x;
            count += __popc(part);
        }
    }
    if (threadIdx.x == 0)
        at.seen_count[row] = count;
}

template <typename T, typename A>
void esp_cuda_embed(struct esp_cuda_cache *c, bool fc, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const bool quantised = esp_dtype_quantised(w->embedding.dtype);
    if (quantised) /* another kernel writes the embedding to x */
        esp_cuda_blocks_embed(c, rows);
    const struct esp_model_desc *d = w->base.desc;
    const bool eagle3 = d->reads == ESP_READS_EAGLE3; /* EAGLE-3's norm comes after fc */
    const struct esp_cuda_norm of_embedding = {w->norm_embedding, NULL, ESP_CUDA_NO_STATE,
                                               false};
    const struct embed_args<T, A> a = {
        d->reads, fc, quantised ? NULL : (const T *)w->embedding.data,
            (const T *)w->position_embedding.data, w->embedding.stride,
            d->embedding_scale != 0 ? d->embedding_scale : 1.0f, c->x, c->embedded,
            (int)c->hidden, d->hidden, d->input, esp_cuda_norm_args_of(c, &of_embedding),
            {eagle3 ? w->norm_fc[0] : w->norm_input, w->norm_fc[1], w->norm_fc[2]},
            d->fc_norms > 0 ? d->fc_norms : 1, d->input_first, (A *)c->joined, c->joined_width,
            w->inverse_frequency, w->local_inverse_frequency, c->rotation, c->local_rotation,
            d->rotary / 2, c->max_batch, d->rotary_scale != 0 ? d->rotary_scale : 1.0f
    };
    ESP_LAUNCH((embed_kernel<T, A>), dim3(rows), dim3(THREADS), ROOM,
               esp_cuda_backend_of(c)->stream, c->at, a);
}

template void esp_cuda_embed<esp_bf16, esp_bf16>(struct esp_cuda_cache *, bool, int);
template void esp_cuda_embed<esp_bf16, float>(struct esp_cuda_cache *, bool, int);
template void esp_cuda_embed<esp_f16, esp_f16>(struct esp_cuda_cache *, bool, int);
template void esp_cuda_embed<esp_f16, float>(struct esp_cuda_cache *, bool, int);
