/* add.cu - what attention or the MLP adds to the residual stream, where it is changed first: by
 * an RMSNorm of its own (Gemma 2 and 3, OLMo 2), by a factor (Granite), or both; and what the
 * experts of a row add.
 *
 * There is one block per row, always of the same size, so that the order of a row's sums does
 * not depend on the batch.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

struct add_args {
    const float *branch, *norm; /* norm: (hidden) or NULL */
    int used;                   /* experts of a row; 0: branch has rows of the pass */
    struct esp_cuda_routing routing;
    float *x;
    size_t stride;
    int n;
    float epsilon, factor;
};

/* Column i of what is added to a row: of experts a sum in the order of their numbers. */
static __device__ __forceinline__ float branch_of(const struct add_args &a, int row, int i)
{
    if (a.used == 0)
        return a.branch[(size_t)row * a.stride + i];
    float sum = 0.0f;
    for (int k = row * a.used; k < (row + 1) * a.used; k++)
        sum = fmaf(a.routing.share[k], a.branch[(size_t)a.routing.place[k] * a.stride + i], sum);
    return sum;
}

static __global__ void add_kernel(struct esp_cuda_arrays at, struct add_args a)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x;
    if (row >= at.pass->rows)
        return;
    float sum = 0.0f, scale = 1.0f;
    for (int i = threadIdx.x; a.norm && i < a.n; i += blockDim.x) {
        const float value = branch_of(a, row, i);
        sum = fmaf(value, value, sum);
    }
    if (a.norm)
        scale = 1.0f / sqrtf(esp_block_sum(sum, room) / (float)a.n + a.epsilon);
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
        const float branch = branch_of(a, row, i);
        const float value = a.norm ? branch * scale * a.norm[i] : branch;
        a.x[(size_t)row * a.stride + i] += value * a.factor;
    }
}

static void launch(struct esp_cuda_cache *c, const float *branch, const float *norm, int used,
                   int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    const struct add_args a = {branch,
                               norm,
                               used,
                               c->routing,
                               c->x,
                               c->hidden,
                               w->desc->hidden,
                               w->desc->norm_epsilon,
                               w->desc->residual_scale != 0 ? w->desc->residual_scale : 1.0f};
    ESP_LAUNCH(add_kernel, dim3(rows), dim3(THREADS), THREADS / ESP_WARP * sizeof(float),
               stream, c->at, a);
}

void esp_cuda_add(struct esp_cuda_cache *c, const float *norm, int rows)
{
    launch(c, c->branch, norm, 0, rows);
}

void esp_cuda_add_experts(struct esp_cuda_cache *c, const float *norm, int rows)
{
    launch(c, c->pair_out, norm, esp_cuda_weights_of(&c->base)->desc->experts_used, rows);
}
