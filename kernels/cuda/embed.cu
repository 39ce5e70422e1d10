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

template <typename T>
static __global__ void embed_kernel(struct esp_cuda_arrays at, const T *embedding,
                                    size_t embedding_stride, float scale, const T *position,
                                    float *x, int hidden)
{
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    const T *from = embedding + (size_t)at.tokens[row] * embedding_stride;
    const T *place = position ? position + (size_t)at.positions[row] * embedding_stride : NULL;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x)
        x[(size_t)row * hidden + i] =
            esp_to_float(from[i]) * scale + (place ? esp_to_float(place[i]) : 0.0f);

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

template <typename T> void esp_cuda_embed(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    ESP_LAUNCH((embed_kernel<T>), dim3(rows), dim3(THREADS), 0, stream, c->at,
               (const T *)w->embedding.data, w->embedding.stride,
               w->desc->embedding_scale != 0 ? w->desc->embedding_scale : 1.0f,
               (const T *)w->position_embedding.data, c->x, (int)c->hidden);
}

template void esp_cuda_embed<esp_bf16>(struct esp_cuda_cache *, int);
template void esp_cuda_embed<esp_f16>(struct esp_cuda_cache *, int);
