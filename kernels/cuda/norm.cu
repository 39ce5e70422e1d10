/* norm.cu - RMSNorm and LayerNorm of rows of the residual stream, rounded to 16 bits.
 *
 * There is one block per row, always of the same size, so that the order of a row's sums does
 * not depend on the batch. The variance is computed from the differences to the mean, in a
 * second pass over the row, which is still in the first-level cache.
 */
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

struct norm_args {
    const float *x, *weight, *bias; /* weight = NULL: only rounded */
    size_t stride;
    int n;
    float epsilon;
    bool centre; /* LayerNorm */
    bool chosen;
};

template <typename T>
static __global__ void norm_kernel(struct esp_cuda_arrays at, struct norm_args a, T *out)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x;
    if (row >= (a.chosen ? at.pass->wanted : at.pass->rows))
        return;
    const float *x = a.x + (size_t)(a.chosen ? at.wanted[row] : row) * a.stride;
    float mean = 0.0f, sum = 0.0f;
    if (a.centre) {
        for (int i = threadIdx.x; i < a.n; i += blockDim.x)
            mean += x[i];
        mean = esp_block_sum(mean, room) / (float)a.n;
    }
    for (int i = threadIdx.x; a.weight && i < a.n; i += blockDim.x)
        sum = fmaf(x[i] - mean, x[i] - mean, sum);
    const float scale =
        a.weight ? 1.0f / sqrtf(esp_block_sum(sum, room) / (float)a.n + a.epsilon) : 1.0f;
    for (int i = threadIdx.x; i < (int)a.stride; i += blockDim.x) {
        float value = 0.0f;
        if (i < a.n && a.weight)
            value = fmaf((x[i] - mean) * scale, a.weight[i], a.bias ? a.bias[i] : 0.0f);
        else if (i < a.n)
            value = x[i];
        out[(size_t)row * a.stride + i] = esp_from_float<T>(value);
    }
}

template <typename T>
void esp_cuda_norm(struct esp_cuda_cache *c, void *out, const float *weight, const float *bias,
                   bool chosen, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(&c->base);
    cudaStream_t stream = ((struct esp_cuda_backend *)w->base.backend)->stream;
    struct norm_args a = {c->x,
                          weight,
                          bias,
                          c->hidden,
                          w->desc->hidden,
                          w->desc->norm_epsilon,
                          weight && w->desc->norm == ESP_NORM_LAYER,
                          chosen};
    ESP_LAUNCH((norm_kernel<T>), dim3(rows), dim3(THREADS), THREADS / ESP_WARP * sizeof(float),
               stream, c->at, a, (T *)out);
}

template void esp_cuda_norm<esp_bf16>(struct esp_cuda_cache *, void *, const float *,
                                      const float *, bool, int);
template void esp_cuda_norm<esp_f16>(struct esp_cuda_cache *, void *, const float *,
                                     const float *, bool, int);
