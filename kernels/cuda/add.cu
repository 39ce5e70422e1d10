/* add.cu - what attention or the MLP adds to the residual stream, where it is changed first: by
 * an RMSNorm of its own (Gemma 2 and 3, OLMo 2), by a factor (Granite), or both.
 *
 * There is one block per row, always of the same size, so that the order of a row's sums does
 * not depend on the batch.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

struct add_args {
    const float *branch, *norm; /* norm: (hidden) or NULL */
    float *x;
    size_t stride;
    int n;
    float epsilon, factor;
};

static __global__ void add_kernel(struct esp_cuda_arrays at, struct add_args a)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    const float *branch = a.branch + (size_t)row * a.stride;
    float sum = 0.0f, scale = 1.0f;
    for (int i = threadIdx.x; a.norm && i < a.n; i += blockDim.x)
        sum = fmaf(branch[i], branch[i], sum);
    if (a.norm)
        scale = 1.0f / sqrtf(esp_block_sum(sum, room) / (float)a.n + a.epsilon);
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
        const float value = a.norm ? branch[i] * scale * a.norm[i] : branch[i];
        a.x[(size_t)row * a.stride + i] += value * a.factor;
    }
}

void esp_cuda_add(struct esp_cuda_cache *c, const float *norm, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const struct add_args a = {c->branch,
                               norm,
                               c->x,
                               c->hidden,
                               w->desc->hidden,
                               w->desc->norm_epsilon,
                               w->desc->residual_scale != 0 ? w->desc->residual_scale : 1.0f};
    ESP_LAUNCH(add_kernel, dim3(rows), dim3(THREADS), THREADS / ESP_WARP * sizeof(float),
               stream, c->at, a);
}
