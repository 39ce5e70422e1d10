/* add.cu - adds an output to the residual stream if the matrix product cannot do this itself.
 * The output of attention or of an MLP may first pass through an RMSNorm (Gemma 2 and 3,
 * OLMo 2), or be multiplied by a factor (Granite), or both. The outputs of a row's experts are
 * first added together. The same block then computes the row's next norm.
 *
 * One block computes a row. All blocks have the same number of threads, so the order of a row's
 * sums does not depend on the batch.
 */
#include "kernels/cuda/norm.h"

enum { THREADS = 256 };

struct add_args {
    const float *branch, *norm; /* norm: (hidden) weights, or NULL */
    int used;                   /* number of experts of a row; 0: read `branch` instead */
    struct esp_cuda_routing routing;
    const float *shared, *gate; /* output and gate of the shared expert, or NULL */
    int gate_stride;
    float *x;
    size_t stride;
    int n;
    float epsilon, factor;
    struct esp_cuda_norm_args next; /* the next norm; stride = 0 means none */
};

/* Returns column i of the output that is added to a row of x. In a mixture of experts, this is
 * a weighted sum: first over the row's experts, in ascending order of their numbers, and then
 * the output of the shared expert. */
static __device__ __forceinline__ float branch_of(const struct add_args &a, int row, int i)
{
    if (a.used == 0)
        return a.branch[(size_t)row * a.stride + i];
    float sum = 0.0f;
    for (int k = row * a.used; k < (row + 1) * a.used; k++)
        sum =
            fmaf(a.routing.share[k], a.branch[(size_t)a.routing.place[k] * a.stride + i], sum);
    if (!a.shared)
        return sum;
    const float gate = a.gate ? 1.0f / (1.0f + expf(-a.gate[row * a.gate_stride])) : 1.0f;
    return fmaf(gate, a.shared[(size_t)row * a.stride + i], sum);
}

/* Adds the output to each row of x, and then computes the norm `next` of the row. normed:
 * (rows, stride), where the result of this norm is written. */
template <typename T>
static __global__ void add_kernel(struct esp_cuda_arrays at, struct add_args a, T *normed)
{
    ESP_SHARED(float, room);
    esp_begin_early();
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
    float *x = a.x + row * a.stride;
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
        const float branch = branch_of(a, row, i);
        const float value = a.norm ? branch * scale * a.norm[i] : branch;
        x[i] += value * a.factor;
    }
    if (a.next.stride > 0)
        esp_cuda_write_norm(at, a.next, row, x, normed + row * a.stride, room);
}

template <typename T>
void esp_cuda_add(struct esp_cuda_cache *c, const struct esp_cuda_layer *experts,
                  const float *norm, const struct esp_cuda_norm *next, int rows)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const bool shared = experts && experts->shared.up.data;
    const bool gated = shared && experts->logits > d->experts;
    const struct esp_cuda_norm_args none = {};
    const struct add_args a = {experts ? c->pair_out : c->branch,
                               norm,
                               experts ? d->experts_used : 0,
                               c->routing,
                               shared ? c->branch : NULL,
                               gated ? c->routed + d->experts : NULL,
                               experts ? experts->logits : 0,
                               c->x,
                               c->hidden,
                               d->hidden,
                               d->norm_epsilon,
                               d->residual_scale != 0 ? d->residual_scale : 1.0f,
                               next ? esp_cuda_norm_args_of(c, next) : none};
    ESP_LAUNCH_EARLY(esp_cuda_early(c), (add_kernel<T>), dim3(rows), dim3(THREADS),
                     THREADS / ESP_WARP * sizeof(float), esp_cuda_backend_of(c)->stream, c->at,
                     a, (T *)c->normed);
}

template void esp_cuda_add<float>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                  const float *, const struct esp_cuda_norm *, int);
template void esp_cuda_add<esp_bf16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                     const float *, const struct esp_cuda_norm *, int);
template void esp_cuda_add<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                    const float *, const struct esp_cuda_norm *, int);
