/* norm.cu - separate kernels for those norms of the residual stream that no other kernel
 * computes (norm.h). These are the norms before the first layer and before the head. If the
 * kernels for matrix products compute no norms, these kernels also compute the other norms.
 *
 * One block computes a row. All blocks have the same number of threads, so the order of a row's
 * sums does not depend on the batch.
 */
#include "kernels/cuda/norm.h"

enum { THREADS = 256, MOST = 2 };

/* Writes a normalised row to `out`, with zeros in the columns n..width-1. */
template <typename T>
static __device__ void write(const struct esp_cuda_normed &row, int n, int width, T *out)
{
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[i] = esp_from_float<T>(i < n ? row[i] : 0.0f);
}

/* If the caller wants hidden state `state` of batch row `row`, writes it to the caller's
 * matrix. */
template <typename V>
static __device__ void hand_out(const struct esp_cuda_arrays &at, int state, int row,
                                const V &values, int n)
{
    for (int i = threadIdx.x; at.pass->states > 0 && i < n; i += blockDim.x)
        esp_cuda_hand_out(at, state, row, i, n, values[i]);
}

template <typename T> struct norms {
    struct esp_cuda_norm_args norm[MOST];
    T *out[MOST];
};

/* Computes one or two norms of each row. Grid: (rows, norms). */
template <typename T>
static __global__ void norm_kernel(struct esp_cuda_arrays at, struct norms<T> norms,
                                   const float *x)
{
    ESP_SHARED(float, room);
    esp_begin_early();
    const int row = blockIdx.x;
    const bool second = blockIdx.y > 0; /* norms.norm[blockIdx.y] would need local memory */
    const struct esp_cuda_norm_args a = second ? norms.norm[1] : norms.norm[0];
    T *out = second ? norms.out[1] : norms.out[0];
    if (row < at.pass->rows)
        esp_cuda_write_norm(at, a, row, x + row * a.stride, out + row * a.stride, room);
}

template <typename T>
static __global__ void norm_final_kernel(struct esp_cuda_arrays at, struct esp_cuda_norm_args a,
                                         const float *x, T *out)
{
    ESP_SHARED(float, room);
    esp_begin_early();
    const int row = blockIdx.x;
    if (row < at.pass->wanted)
        write(esp_cuda_normalise(x + at.wanted[row] * a.stride, a, room), a.n, (int)a.stride,
              out + row * a.stride);
    if (at.pass->states == 0 || row >= at.pass->rows)
        return;
    const float *of_row = x + row * a.stride;
    hand_out(at, a.state, row, of_row, a.n);
    hand_out(at, ESP_STATE_NORMED, row, esp_cuda_normalise(of_row, a, room), a.n);
}

/* Computes the input of EAGLE-3's attention, which joins two normalised vectors (Li et al.
 * 2025, section 3.1). */
template <typename T>
static __global__ void join_kernel(struct esp_cuda_arrays at,
                                   struct esp_cuda_norm_args of_embedding,
                                   const float *embedded, struct esp_cuda_norm_args of_input,
                                   float *input, bool replaced, T *joined, size_t width)
{
    ESP_SHARED(float, room);
    const int row = blockIdx.x, n = of_input.n;
    if (row >= at.pass->rows)
        return;
    float *x = input + row * of_input.stride;
    T *out = joined + row * width;
    write(esp_cuda_normalise(embedded + row * of_embedding.stride, of_embedding, room), n, n,
          out);
    const auto normed = esp_cuda_normalise(x, of_input, room);
    write(normed, n, (int)width - n, out + n);
    hand_out(at, of_input.state, row, x, n);
    for (int i = threadIdx.x; replaced && i < n; i += blockDim.x)
        x[i] = normed[i];
}

struct esp_cuda_norm_args esp_cuda_norm_args_of(const struct esp_cuda_cache *c,
                                                const struct esp_cuda_norm *norm)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    struct esp_cuda_norm_args a = {norm->weight,    norm->bias,
                                   c->hidden,       d->hidden,
                                   d->norm_epsilon, d->norm == ESP_NORM_LAYER,
                                   norm->state,     {}};
    if (norm->cut)
        a.cuts = esp_cuda_cuts_of(c, c->hidden);
    return a;
}

struct esp_cuda_squares esp_cuda_squares_of(const struct esp_cuda_cache *c)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    return {c->squares, (int)(c->hidden / ESP_CUDA_TILE), d->hidden, d->norm_epsilon};
}

static const size_t ROOM = THREADS / ESP_WARP * sizeof(float);

template <typename T>
void esp_cuda_norms(struct esp_cuda_cache *c, const struct esp_cuda_norm *norm, int count,
                    int rows)
{
    struct norms<T> norms = {
    };
    void *const out[MOST] = {c->normed, c->normed2};
    for (int i = 0; i < count; i++) {
        norms.norm[i] = esp_cuda_norm_args_of(c, &norm[i]);
        norms.out[i] = (T *)out[i];
    }
    ESP_LAUNCH_EARLY(esp_cuda_early(c), (norm_kernel<T>), dim3(rows, count), dim3(THREADS),
                     ROOM, esp_cuda_backend_of(c)->stream, c->at, norms, c->x);
}

template <typename T> void esp_cuda_norm_final(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const struct esp_cuda_norm norm = {w->norm_final, w->norm_final_bias, w->base.desc->layers,
                                       false};
    ESP_LAUNCH_EARLY(esp_cuda_early(c), (norm_final_kernel<T>), dim3(rows), dim3(THREADS), ROOM,
                     esp_cuda_backend_of(c)->stream, c->at, esp_cuda_norm_args_of(c, &norm),
                     c->x, (T *)c->normed);
}

template <typename T> void esp_cuda_join(struct esp_cuda_cache *c, int rows)
{
    const struct esp_cuda_weights *w = esp_cuda_weights_of(c);
    const struct esp_cuda_norm of_embedding = {w->layer[0].norm1, NULL, ESP_CUDA_NO_STATE,
                                               false};
    const struct esp_cuda_norm of_input = {w->norm_input, NULL, 0, false};
    ESP_LAUNCH((join_kernel<T>), dim3(rows), dim3(THREADS), ROOM,
               esp_cuda_backend_of(c)->stream, c->at, esp_cuda_norm_args_of(c, &of_embedding),
               c->embedded, esp_cuda_norm_args_of(c, &of_input), c->x,
               esp_cuda_desc_of(c)->residual_normed, (T *)c->joined,
               c->joined_width);
}

#define X(A)                                                                                   \
    template void esp_cuda_norms<A>(struct esp_cuda_cache *, const struct esp_cuda_norm *,     \
                                    int, int);                                                 \
    template void esp_cuda_norm_final<A>(struct esp_cuda_cache *, int);                        \
    template void esp_cuda_join<A>(struct esp_cuda_cache *, int);
X(float)
X(esp_bf16)
X(esp_f16)
#undef X
