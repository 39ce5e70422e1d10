/* attention.h - the code that attention.cu and attention_mma.cu share. It finds the keys to
 * which a query attends, computes the keys of the pass itself, and joins the results for parts
 * of the keys.
 *
 * The keys of a query are divided among thread blocks ("split-KV"). Each block computes a part
 * of the result. The last block to finish a tile of queries joins the parts. If there are many
 * parts, a separate kernel joins them, because it can use all multiprocessors.
 *
 * In a pass of few rows (esp_cuda_fresh), the keys of the pass are not in the cache yet. Each
 * block computes the keys that it needs from the output of the matrix product (rope.h). The
 * blocks for the sinks also write the keys to the cache, for later passes. In a larger pass,
 * rope.cu has already written the keys.
 */
#ifndef ESP_CUDA_ATTENTION_H
#define ESP_CUDA_ATTENTION_H

#include "kernels/cuda/blocks.h"
#include "kernels/cuda/rope.h"

#include <limits.h>

static const float ESP_LOG2_E = 1.44269504f;

template <typename T> struct esp_cuda_attend {
    struct esp_cuda_heads heads;
    T *k, *v;       /* (kv_head, cache_rows, width) the layer's keys and values */
    float *partial; /* (rows, heads, parts + 1, esp_cuda_part(width)); last part: sinks */
    /* (kv_head, tiles of queries) the number of finished blocks. It is 0 between launches. NULL
     * means that a separate kernel joins the parts. */
    unsigned *done;
    T *out; /* (rows, out_stride) */
    size_t out_stride;
    struct esp_cuda_cuts cuts; /* receives `out` in quantised form, unless cuts.blocks is 0 */
    int group, width, cache_rows, parts, first_row, end_row;
    int window;              /* window of the layer; 0 means none */
    bool fresh;              /* the keys and values of the pass are not in the cache yet */
    float cap;               /* scores become cap * tanh(score / cap); 0 means no cap */
    const float *sink_logit; /* (heads) or NULL */
};

/* ------------------------------------------------------------------ queries */

/* Describes a query: one head of one row of a pass. */
struct esp_cuda_query {
    int row, head, length; /* length: number of keys up to the query's own; 0: no query */
    int from;              /* the index of the first key that is inside the windows */
    int sinks;             /* number of keys before the gap of the window; 0 without a gap */
    int contiguous;        /* the first `contiguous` keys are cache rows 0, 1, ... */
};

/* Limits a query to the window of the text (struct esp_window). If the layer's own window is
 * smaller than that window, the query does not attend to the sinks. */
static __device__ __forceinline__ void esp_cuda_see_window(const struct esp_cuda_arrays &at,
                                                           int window, struct esp_cuda_query &q)
{
    const struct esp_cuda_pass *pass = at.pass;
    const bool sinks = window == 0 || window >= pass->sinks + pass->recent;
    const bool gap = esp_cuda_has_gap(at, q.row);
    int from = at.positions[q.row] - pass->dropped - pass->recent + 1;
    if (sinks && !gap)
        return;
    q.sinks = sinks ? pass->sinks : 0;
    from = from > q.sinks ? from : q.sinks;
    from = from > q.from ? from : q.from;
    q.from = from < q.length ? from : q.length - 1;
}

/* Returns query number `index` of key/value head `kv_head`. Query 0 is in row a.first_row. */
template <typename T>
static __device__ __forceinline__ struct esp_cuda_query
esp_cuda_find_query(const struct esp_cuda_arrays &at, const struct esp_cuda_attend<T> &a,
                    int kv_head, int index)
{
    struct esp_cuda_query q;
    const int last = a.end_row < at.pass->rows ? a.end_row : at.pass->rows;
    q.row = a.first_row + index / a.group;
    q.head = kv_head * a.group + index % a.group;
    q.length = q.contiguous = q.from = q.sinks = 0;
    if (q.row < last) {
        const bool masked = at.pass->words > 0;
        q.contiguous = masked ? at.pass->prefix : at.pass->first + q.row + 1;
        q.length = q.contiguous + (masked ? at.seen_count[q.row] : 0);
        q.from = a.window > 0 && q.length > a.window ? q.length - a.window : 0;
        if (at.pass->recent > 0)
            esp_cuda_see_window(at, a.window, q);
    }
    return q;
}

static __device__ __forceinline__ float esp_cuda_capped(float cap, float score)
{
    return cap > 0.0f ? cap * tanhf(score / cap) : score;
}

/* ------------------------------------------------------------------ keys of the pass */

/* Returns the first cache row with a fresh key and value. The blocks compute fresh keys and
 * values themselves, because the cache does not have them yet. */
template <typename T>
static __device__ __forceinline__ int esp_cuda_fresh_from(const struct esp_cuda_arrays &at,
                                                          const struct esp_cuda_attend<T> &a)
{
    return a.fresh ? at.pass->first : INT_MAX;
}

/* Computes the fresh keys and values among cache rows start..stop-1, and writes them to shared
 * memory. `keys` and `values` begin with row `start`; their rows have `width` numbers and are
 * `stride` numbers apart. The block's warps share the work. */
template <typename T>
static __device__ void
esp_cuda_make_keys(const struct esp_cuda_arrays &at, const struct esp_cuda_attend<T> &a,
                   int kv_head, int start, int stop, T *keys, T *values, int stride, int width)
{
    const int first = at.pass->first, begin = start > first ? start : first;
    const int warp = threadIdx.x / ESP_WARP, warps = blockDim.x / ESP_WARP;
    for (int row = begin + warp; a.fresh && row < stop; row += warps) {
        const int to = (row - start) * stride;
        esp_cuda_write_key(a.heads, row - first, kv_head, keys + to, values + to, width);
    }
}

/* Writes the fresh keys and values of the launch's rows to the cache. Only the blocks for the
 * sinks call this. blockIdx.y numbers the blocks of a key/value head. */
template <typename T>
static __device__ void esp_cuda_append(const struct esp_cuda_arrays &at,
                                       const struct esp_cuda_attend<T> &a, int kv_head)
{
    const int warps = blockDim.x / ESP_WARP;
    const int last = a.end_row < at.pass->rows ? a.end_row : at.pass->rows;
    const int begin = a.first_row + blockIdx.y * warps + threadIdx.x / ESP_WARP;
    for (int row = begin; a.fresh && row < last; row += gridDim.y * warps) {
        const size_t to = ((size_t)kv_head * a.cache_rows + at.pass->first + row) * a.width;
        esp_cuda_write_key(a.heads, row, kv_head, a.k + to, a.v + to, a.width);
    }
}

/* ------------------------------------------------------------------ joining parts */

/* Returns the address of part `part` of a query's result. A part has its sums first, then its
 * maximum, then its weight. */
template <typename T>
static __device__ __forceinline__ float *
esp_cuda_place(const struct esp_cuda_attend<T> &a, const struct esp_cuda_query &q, int part)
{
    const size_t head = (size_t)(q.row - a.first_row) * a.heads.heads + q.head;
    return a.partial + (head * (a.parts + 1) + part) * esp_cuda_part(a.width);
}

/* Joins the first `used` parts of a query and, if the query attends to sinks, the part for
 * them. A warp calls this. If the layer has a sink logit, the logit is included in the softmax
 * but adds no value (struct esp_layer). EXP2: the maxima are base-2 logarithms. */
template <bool EXP2, typename T>
static __device__ void esp_cuda_join_query(const struct esp_cuda_attend<T> &a,
                                           const struct esp_cuda_query &q, int used)
{
    enum { EACH = 4, PIECE = EACH * ESP_WARP, PIECES = 2 }; /* for heads of up to 256 numbers */
    const int lane = threadIdx.x % ESP_WARP, count = q.sinks > 0 ? used + 1 : used;
    const float *sink = a.sink_logit ? a.sink_logit + q.head : NULL;
    const float score = !sink ? -INFINITY : EXP2 ? *sink * ESP_LOG2_E : *sink;
    float *const parts = esp_cuda_place(a, q, 0);
    const size_t step = esp_cuda_part(a.width), of_sinks = a.parts * step;
    float top = score, weight = 0.0f, sum[PIECES][EACH] = {};
    for (int i = lane; i < count; i += ESP_WARP)
        top = fmaxf(top, __ldcg(parts + (i < used ? i * step : of_sinks) + a.width));
    top = esp_warp_max(top);
    for (int i = lane; i < count; i += ESP_WARP) {
        float *of = parts + (i < used ? i * step : of_sinks) + a.width;
        const float below = __ldcg(of) - top;
        *of = EXP2 ? exp2f(below) : expf(below); /* replaces the maximum; all lanes read it */
    }
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        const float *part = parts + (i < used ? i * step : of_sinks);
        const float2 end = __ldcg(reinterpret_cast<const float2 *>(part + a.width));
        const float factor = end.x;
        weight = fmaf(end.y, factor, weight);
#pragma unroll
        for (int j = 0; j < PIECES; j++) {
            const int d = j * PIECE + EACH * lane;
            if (d >= a.width)
                continue;
            const float4 x = __ldcg(reinterpret_cast<const float4 *>(part + d));
            sum[j][0] = fmaf(x.x, factor, sum[j][0]);
            sum[j][1] = fmaf(x.y, factor, sum[j][1]);
            sum[j][2] = fmaf(x.z, factor, sum[j][2]);
            sum[j][3] = fmaf(x.w, factor, sum[j][3]);
        }
    }
    if (sink)
        weight += EXP2 ? exp2f(score - top) : expf(score - top);
    const int from = q.head * a.heads.head_dim; /* first column of the head */
    T *out = a.out + (size_t)q.row * a.out_stride + from;
#pragma unroll
    for (int j = 0; j < PIECES && j * PIECE < a.heads.head_dim; j++) {
        const int d = j * PIECE + EACH * lane;
        float rounded[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const T value = esp_from_float<T>(sum[j][k] / weight);
            rounded[k] = esp_to_float(value);
            if (d + k < a.heads.head_dim)
                out[d + k] = value;
        }
        if (a.cuts.blocks > 0)
            esp_cuda_cut_blocks(a.cuts, q.row, (from + j * PIECE) / ESP_BLOCK_COLUMNS, rounded,
                                d < a.heads.head_dim);
    }
}

/* Joins the parts of queries base..base+count-1 of a key/value head. The block's warps share
 * the queries. used(q) returns how many parts query q has. For Used::EXP2, see
 * esp_cuda_join_query(). */
template <typename T, typename Used>
static __device__ void esp_cuda_join_queries(const struct esp_cuda_arrays &at,
                                             const struct esp_cuda_attend<T> &a, int kv_head,
                                             int base, int count, const Used &used)
{
    const int warps = blockDim.x / ESP_WARP;
    for (int i = threadIdx.x / ESP_WARP; i < count; i += warps) {
        const struct esp_cuda_query q = esp_cuda_find_query(at, a, kv_head, base + i);
        if (q.length > 0)
            esp_cuda_join_query<Used::EXP2>(a, q, used(q));
    }
}

/* A block of attention (kv_head, tile of `rows` queries, part) calls this at its end. `blocks`
 * is the number of the tile's blocks that had work. The last of them to finish joins the parts.
 * `room`: shared memory for one number. */
template <typename T, typename Used>
static __device__ void esp_cuda_join_tile(const struct esp_cuda_arrays &at,
                                          const struct esp_cuda_attend<T> &a, int rows,
                                          const Used &used, int blocks, int *room)
{
    if (a.done && esp_last_block(a.done + blockIdx.x * gridDim.y + blockIdx.y, blocks, room))
        esp_cuda_join_queries(at, a, blockIdx.x, blockIdx.y * rows, rows, used);
}

/* Returns whether there are blocks that compute attention to the sinks. */
static __device__ __forceinline__ bool esp_cuda_of_sinks(const struct esp_cuda_pass *pass)
{
    return pass->recent > 0 && pass->sinks > 0;
}

/* ------------------------------------------------------------------ launching */

/* The grid of the kernel that joins parts is (blocks, kv_heads). Each of its blocks joins the
 * parts of ESP_CUDA_JOINED queries. */
enum { ESP_CUDA_JOINED = 4 };

static inline dim3 esp_cuda_join_grid(const struct esp_cuda_heads &heads, int queries)
{
    return dim3((queries + ESP_CUDA_JOINED - 1) / ESP_CUDA_JOINED, heads.kv_heads);
}

/* Returns the counters of finished blocks if the attention kernel joins the parts of a tile of
 * `queries` queries itself, or NULL if a separate kernel joins them. To join, a warp waits for
 * memory about twice per query and once more for every four parts. A separate kernel takes
 * about as long as twelve such waits. */
static inline unsigned *esp_cuda_done(const struct esp_cuda_cache *c, int queries, int parts)
{
    enum { WARPS = 4, TOGETHER = 4, MOST_WAITS = 12 };
    const int waits = (queries + WARPS - 1) / WARPS * (2 + (parts + TOGETHER - 1) / TOGETHER);
    return waits <= MOST_WAITS ? c->done : NULL;
}

/* Returns the arguments of a launch, except `parts`, `done`, and the first and the last row. */
template <typename T>
static struct esp_cuda_attend<T> esp_cuda_attend_of(const struct esp_cuda_cache *c,
                                                    const struct esp_cuda_layer *held,
                                                    int layer, int rows) {
    const struct esp_model_desc *d = esp_cuda_desc_of(c);
    const size_t at_layer = (size_t)held->place * d->kv_heads * c->rows * c->head_width;
    struct esp_cuda_attend<T> a = {
    };
    a.heads = esp_cuda_heads_of(c, held, layer);
    a.k = (T *)c->k + at_layer;
    a.v = (T *)c->v + at_layer;
    a.partial = c->partial;
    a.out = (T *)c->attended + esp_cuda_first(c, ESP_RANK_ATTENTION);
    a.out_stride = c->q_width;
    if (esp_cuda_attention_cuts(c, layer))
        a.cuts = esp_cuda_cuts_of(c, c->q_width);
    a.group = d->heads / d->kv_heads;
    a.width = (int)c->head_width;
    a.cache_rows = c->rows;
    a.window = d->layer[layer].window;
    a.fresh = esp_cuda_fresh(rows);
    a.cap = d->attention_cap;
    a.sink_logit = held->sink_logit;
    return a;
}

/* Computes attention to the keys in the cache, and writes it to c->attended. Uses tensor cores.
 * The order of the sums depends on the number of rows, and on where the keys are in the cache.
 */
template <typename T>
void esp_cuda_attention_mma(struct esp_cuda_cache *c, const struct esp_cuda_layer *held,
                            int layer, int rows, int chunks);
/* Must be called once per backend. Allows the kernels to use as much shared memory as they
 * need.
 */
int esp_cuda_attention_mma_prepare(struct esp_cuda_backend *backend);

#endif
