/* experts.cu - the router of a mixture of experts: chooses the experts of a row and their
 * weights, and sorts the rows for the products.
 *
 * A row uses the experts with the highest logits in this row. If logits are equal, the expert
 * with the lower number comes first. Softmax or sigmoids turn the logits into the experts'
 * weights, as on the CPU (cpu/forward.c). The choice and the weights depend on the row alone. A
 * row and one of its experts are a pair. Pairs are sorted by expert, so one launch multiplies
 * all rows by all used experts and reads the weights of each expert once (see experts.h).
 * add.cu adds the outputs of a row's experts in the order of their numbers. This order does not
 * depend on the batch.
 *
 * The router, its input and the experts' weights are float32, because the last bit can decide
 * which expert is chosen.
 */
#include "kernels/cuda/experts.h"
#include "kernels/cuda/norm.h"

enum { ROUTE_WARPS = 8, SORT_WARPS = 32, EACH = 4 };

/* ------------------------------------------------------------------ logits */

struct route_args {
    const float *router, *bias; /* (count, stride); (experts), or NULL */
    size_t stride;
    int experts, count; /* count: experts, plus 1 if the shared expert has a gate */
    float *logits;      /* (rows, count) */
    /* `residual` (rows, stride) and `norm` (stride) are not NULL if x is the first half of a
     * norm, which is rounded. In this case the router reads the residual stream and the norm's
     * weight instead of x, so that rounding does not affect a choice. */
    const float *residual, *norm;
    struct esp_cuda_squares squares;
};

/* Returns columns i to i + 3 of the router's input for a row. */
template <typename A>
static __device__ __forceinline__ float4 routed(const struct route_args &a, const A *x, int row,
                                                int i)
{
    const size_t at = (size_t)row * a.stride + i;
    if (!a.norm)
        return make_float4(esp_to_float(x[at]), esp_to_float(x[at + 1]),
                           esp_to_float(x[at + 2]), esp_to_float(x[at + 3]));
    const float4 r = *reinterpret_cast<const float4 *>(a.residual + at);
    const float4 w = *reinterpret_cast<const float4 *>(a.norm + i);
    const int left = a.squares.n - i; /* columns from i to the padding */
    return make_float4(left > 0 ? r.x * w.x : 0.0f, left > 1 ? r.y * w.y : 0.0f,
                       left > 2 ? r.z * w.z : 0.0f, left > 3 ? r.w * w.w : 0.0f);
}

/* Computes the router's logits. One warp computes one expert's logit for one row. */
template <typename A>
static __global__ void route_kernel(struct esp_cuda_arrays at, struct route_args a, const A *x)
{
    const int row = blockIdx.y, lane = threadIdx.x % ESP_WARP;
    const int expert = blockIdx.x * ROUTE_WARPS + threadIdx.x / ESP_WARP;
    if (row >= at.pass->rows || expert >= a.count)
        return;
    const float *w = a.router + (size_t)expert * a.stride;
    float sum[EACH] = {};
    for (int i = EACH * lane; i < (int)a.stride; i += EACH * ESP_WARP) {
        const float4 weights = *reinterpret_cast<const float4 *>(w + i);
        const float4 value = routed(a, x, row, i);
        sum[0] = fmaf(weights.x, value.x, sum[0]);
        sum[1] = fmaf(weights.y, value.y, sum[1]);
        sum[2] = fmaf(weights.z, value.z, sum[2]);
        sum[3] = fmaf(weights.w, value.w, sum[3]);
    }
    const float logit = esp_warp_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    const float factor = a.norm ? esp_cuda_norm_factor(a.squares, row) : 1.0f;
    if (lane == 0)
        a.logits[(size_t)row * a.count + expert] =
            fmaf(logit, factor, a.bias && expert < a.experts ? a.bias[expert] : 0.0f);
}

/* ------------------------------------------------------------------ choice and order */

struct sort_args {
    const float *logits; /* (rows, stride) */
    int stride, experts, used, width;
    bool normed;              /* the weights of a row's experts add up to 1 */
    bool sigmoid;             /* weights are sigmoids of the logits, not their softmax */
    const float *choice_bias; /* (experts) added only for the choice; or NULL */
    float epsilon, scale;
    struct esp_cuda_routing to;
};

static __device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Returns the value that decides whether expert `e` is chosen. */
static __device__ __forceinline__ float rating(const struct sort_args &a, const float *logit,
                                               int e)
{
    const float v =
        (a.sigmoid ? sigmoid(logit[e]) : logit[e]) + (a.choice_bias ? a.choice_bias[e] : 0.0f);
    return v == v ? v : -INFINITY;
}

/* Returns whether logit `v` of expert `i` comes before logit `w` of expert `j`. Logits that
 * are not numbers come last. */
static __device__ __forceinline__ bool before(float v, int i, float w, int j)
{
    return v > w || (v == w && i < j);
}

/* Chooses the experts of a row, and writes their numbers and weights. All lanes of a warp call
 * this; lane i finds the i-th best expert. */
static __device__ void choose(const struct sort_args &a, int row)
{
    const int lane = threadIdx.x % ESP_WARP;
    const float *logit = a.logits + (size_t)row * a.stride;
    float last = INFINITY, sum = 0.0f;
    int last_at = -1, mine = 0, top = 0;
    for (int k = 0; k < a.used; k++) {
        float best = -INFINITY;
        int best_at = a.experts;
        for (int e = lane; e < a.experts; e += ESP_WARP) {
            const float v = rating(a, logit, e);
            if (before(last, last_at, v, e) && before(v, e, best, best_at)) {
                best = v;
                best_at = e;
            }
        }
        for (int step = ESP_WARP / 2; step > 0; step /= 2) {
            const float v = __shfl_xor_sync(ESP_ALL_LANES, best, step);
            const int e = __shfl_xor_sync(ESP_ALL_LANES, best_at, step);
            if (before(v, e, best, best_at)) {
                best = v;
                best_at = e;
            }
        }
        last = best;
        last_at = best_at;
        mine = lane == k ? best_at : mine;
        top = k == 0 ? best_at : top;
    }
    const float weight = lane >= a.used ? 0.0f
                         : a.sigmoid    ? sigmoid(logit[mine])
                                        : expf(logit[mine] - logit[top]);
    for (int e = lane; !a.normed && e < a.experts; e += ESP_WARP)
        sum += expf(logit[e] - logit[top]);
    sum = esp_warp_sum(a.normed ? weight : sum) + a.epsilon;
    if (a.sigmoid && !a.normed)
        sum = 1.0f;
    int rank = 0; /* how many of the row's experts have a lower number than expert `mine` */
    for (int k = 0; k < a.used; k++)
        rank += __shfl_sync(ESP_ALL_LANES, mine, k) < mine;
    if (lane < a.used) {
        a.to.chosen[(size_t)row * a.used + rank] = mine;
        a.to.share[(size_t)row * a.used + rank] = weight / sum * a.scale;
    }
}

/* Determines the first pair and the first tile of every expert; called by one warp. On entry,
 * `count` says how many pairs each expert has. On return, it contains the index of each expert's
 * first pair, and `tile` contains the index of each expert's first tile. */
static __device__ void number_tiles(const struct sort_args &a, int32_t *count, int32_t *tile)
{
    const int lane = threadIdx.x;
    int pairs = 0, tiles = 0;
    for (int base = 0; base < a.experts; base += ESP_WARP) {
        const int e = base + lane, own = e < a.experts ? count[e] : 0;
        const int own_tiles = (own + a.width - 1) / a.width;
        int sum = own, tile_sum = own_tiles;
        for (int step = 1; step < ESP_WARP; step *= 2) {
            const int below = __shfl_up_sync(ESP_ALL_LANES, sum, step);
            const int tiles_below = __shfl_up_sync(ESP_ALL_LANES, tile_sum, step);
            sum += lane >= step ? below : 0;
            tile_sum += lane >= step ? tiles_below : 0;
        }
        if (e < a.experts) {
            count[e] = pairs + sum - own;
            tile[e] = tiles + tile_sum - own_tiles;
        }
        pairs += __shfl_sync(ESP_ALL_LANES, sum, ESP_WARP - 1);
        tiles += __shfl_sync(ESP_ALL_LANES, tile_sum, ESP_WARP - 1);
    }
    if (lane == 0)
        *a.to.tile_count = tiles;
}

/* Finds the pairs of an expert, and returns how many there are; called by a warp. If `write` is
 * true, also numbers the pairs, beginning with `first`. */
static __device__ int find_pairs(const struct sort_args &a, int expert, int pairs, int first,
                                 bool write)
{
    const int lane = threadIdx.x % ESP_WARP;
    int count = 0;
    for (int base = 0; base < pairs; base += ESP_WARP) {
        const int pair = base + lane;
        const bool is = pair < pairs && a.to.chosen[pair] == expert;
        const unsigned all = __ballot_sync(ESP_ALL_LANES, is);
        const int place = first + count + __popc(all & ((1u << lane) - 1));
        if (is && write) {
            a.to.place[pair] = place;
            a.to.row_of[place] = pair / a.used;
        }
        count += __popc(all);
    }
    return count;
}

/* Chooses the experts of all rows, and sorts the pairs by expert. The launch has only one
 * block. */
static __global__ void sort_kernel(struct esp_cuda_arrays at, struct sort_args a)
{
    ESP_SHARED(int32_t, first); /* (experts) */
    int32_t *tile = first + a.experts;
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int pairs = at.pass->rows * a.used;
    for (int row = warp; row < at.pass->rows; row += SORT_WARPS)
        choose(a, row);
    __syncthreads();
    for (int e = warp; e < a.experts; e += SORT_WARPS) {
        const int count = find_pairs(a, e, pairs, 0, false);
        if (lane == 0)
            first[e] = count;
    }
    __syncthreads();
    if (warp == 0)
        number_tiles(a, first, tile);
    __syncthreads();
    for (int e = warp; e < a.experts; e += SORT_WARPS) {
        const int count = find_pairs(a, e, pairs, first[e], true);
        for (int i = lane; i * a.width < count; i += ESP_WARP) {
            const int begin = first[e] + i * a.width, end = first[e] + count;
            a.to.tiles[tile[e] + i] = {e, begin, begin + a.width < end ? begin + a.width : end};
        }
    }
}

template <typename A>
void esp_cuda_route(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, const void *x,
                    const float *norm, int rows, int width)
{
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    cudaStream_t stream = esp_cuda_backend_of(c)->stream;
    const struct route_args route = {
        held->router,          held->router_bias, c->hidden,          d->experts,
        held->logits,          c->routed,         norm ? c->x : NULL, norm,
        esp_cuda_squares_of(c)};
    const struct sort_args sort = {c->routed,
                                   held->logits,
                                   d->experts,
                                   d->experts_used,
                                   width,
                                   d->experts_normed,
                                   d->sigmoid_router,
                                   held->choice_bias,
                                   d->sigmoid_router ? d->expert_epsilon : 0.0f,
                                   d->expert_scale != 0 ? d->expert_scale : 1.0f,
                                   c->routing};
    ESP_LAUNCH((route_kernel<A>), dim3((held->logits + ROUTE_WARPS - 1) / ROUTE_WARPS, rows),
               dim3(ROUTE_WARPS * ESP_WARP), 0, stream, c->at, route, (const A *)x);
    ESP_LAUNCH(sort_kernel, dim3(1), dim3(SORT_WARPS * ESP_WARP),
               2 * (size_t)d->experts * sizeof(int32_t), stream, c->at, sort);
}

template void esp_cuda_route<float>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                    const void *, const float *, int, int);
template void esp_cuda_route<esp_bf16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                       const void *, const float *, int, int);
template void esp_cuda_route<esp_f16>(struct esp_cuda_cache *, const struct esp_cuda_layer *,
                                      const void *, const float *, int, int);
