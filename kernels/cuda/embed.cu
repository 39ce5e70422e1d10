/* embed.cu - the first kernel of a pass: it writes the embeddings of tokens (and of positions,
 * where these are learned) to the residual stream and turns masks into lists.
 *
 * A row of a tree sees the whole prefix and some rows behind it, given as a bitmask. Attention
 * needs the i-th of them, for every layer and head, so the mask is expanded once per pass:
 * seen[row][i], ascending. Rows of a batch without masks see everything before them and need no
 * list.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

template <typename T> struct embed_args {
    enum esp_reads reads;
    bool fc;                       /* c->joined is what fc reads */
    const T *embedding, *position; /* rows of `stride`; position may be NULL */
    size_t stride;
    float scale, *x;
    int hidden;        /* padded in x */
    int values, input; /* hidden and input, not padded */
    T *joined;
    size_t joined_width;
};

/* What layer 0 of a draft head reads of another model, see enum esp_reads: behind the
 * embedding, which is in x, or in place of it. */
template <typename T>
static __device__ void read_input(const struct esp_cuda_arrays &at,
                                  const struct embed_args<T> &a, int row)
{
    const float *input = at.pass->input + (size_t)at.input_row[row] * at.pass->input_stride;
    float *x = a.x + (size_t)row * a.hidden;
    T *joined = a.joined + (size_t)row * a.joined_width;
    const int begin = a.reads == ESP_READS_EAGLE ? a.values : 0;
    if (!a.fc) {
        for (int i = threadIdx.x; i < a.hidden; i += blockDim.x)
            x[i] = i < a.values ? input[i] : 0.0f;
        return;
    }
    for (int i = threadIdx.x; i < (int)a.joined_width; i += blockDim.x)
        joined[i] = esp_from_float<T>(i < begin             ? x[i]
                                      : i < begin + a.input ? input[i - begin]
                                                            : 0.0f);
}

template <typename T>
static __global__ void embed_kernel(struct esp_cuda_arrays at, struct embed_args<T> a)
{
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    const T *from = a.embedding + (size_t)at.tokens[row] * a.stride;
    const T *place = a.position ? a.position + (size_t)at.positions[row] * a.stride : NULL;
    for (int i = threadIdx.x; i < a.hidden; i += blockDim.x)
        a.x[(size_t)row * a.hidden + i] =
            esp_to_float(from[i]) * a.scale + (place ? esp_to_float(place[i]) : 0.0f);
    __syncthreads();
    if (a.reads != ESP_READS_TOKENS)
        read_input(at, a, row);

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

template <typename T> void esp_cuda_embed(struct esp_cuda_cache *c, bool fc, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    const struct esp_model_desc *d = w->desc;
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const struct embed_args<T> a = {
        d->reads, fc, (const T *)w->embedding.data, (const T *)w->position_embedding.data,
            w->embedding.stride, d->embedding_scale != 0 ? d->embedding_scale : 1.0f, c->x,
            (int)c->hidden, d->hidden, d->input, (T *)c->joined, c->joined_width
    };
    ESP_LAUNCH((embed_kernel<T>), dim3(rows), dim3(THREADS), 0, stream, c->at, a);
}

template void esp_cuda_embed<esp_bf16>(struct esp_cuda_cache *, bool, int);
template void esp_cuda_embed<esp_f16>(struct esp_cuda_cache *, bool, int);
