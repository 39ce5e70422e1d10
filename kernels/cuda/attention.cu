/* attention.cu - tree attention for exact mode: queries of a batch attend to the prefix and to
 * their own ancestors. Sums always have the same order. Default mode uses attention_mma.cu.
 *
 * A query attends to the cache rows of the prefix, and then to the later rows in its list
 * (embed.cu). All sums follow this order, wherever the rows are in the cache. Keys are
 * processed in tiles of 32, one key per lane. Tiles form chunks of ESP_CUDA_CHUNK keys, and
 * chunks are joined one after the other. So the result for a token is bit-identical whether it
 * is a node of a tree, a row of a prompt or alone in a batch.
 *
 * A block computes one chunk for up to 16 queries of one key/value head. These are the queries
 * of several rows and of all heads of a group, so a tile of the cache is read once for all of
 * them. If a tile contains the same rows for all queries, it is staged in shared memory. For
 * the tiles of a tree, each query gathers the rows of its own list, from the cache or from
 * shared memory. attention.h joins the chunks.
 *
 * With a window of the text (struct esp_window), the sinks are a separate part after the
 * chunks, because the queries that read them are rotated to another position. The chunks are
 * shifted by the number of tokens dropped from the cache, modulo ESP_CUDA_CHUNK. So the chunk
 * and the lane of a key depend only on its position in the text.
 */
#include "kernels/cuda/attention.h"

enum {
    WARPS = 4,
    THREADS = WARPS * ESP_WARP,
    EACH = 4, /* queries per warp */
    QUERIES = WARPS * EACH,
    SPARE = 8, /* unused values after a row in shared memory, to avoid bank conflicts */
};

/* Holds the sums of one query over the keys that have been processed: the largest score, the
 * sum of the weights, and the weighted sum of the values. */
template <int DIMS> struct state {
    float top, weight, out[DIMS];
};

/* Returns the dot product of query and key, summed in the order of dimensions. It is not
 * inlined, because each of eight kernels would contain eight copies of it. */
template <typename T>
static __device__ __noinline__ float dot(const float *q, const T *key, int width)
{
    float sum = 0.0f;
    for (int i = 0; i < width; i += 8) {
        const esp_eight<T> eight = esp_load_eight(key + i);
#pragma unroll
        for (int j = 0; j < 8; j++)
            sum = fmaf(q[i + j], esp_to_float(eight.value[j]), sum);
    }
    return sum;
}

/* Adds the scores of a tile to the maximum and to the sum of weights in a query's state. Each
 * lane passes the score of one key, and gets the weight of this key as the result. */
template <int DIMS>
static __device__ __forceinline__ float weigh(struct state<DIMS> &s, float score, bool sees)
{
    const float top = fmaxf(s.top, esp_warp_max(sees ? score : -INFINITY));
    const float weight = sees ? expf(score - top) : 0.0f;
    const float shrink = expf(s.top - top);
    s.weight = fmaf(s.weight, shrink, esp_warp_sum(weight));
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        s.out[i] *= shrink;
    s.top = top;
    return weight;
}

template <typename T, int DIMS>
static __device__ __forceinline__ void add_value(struct state<DIMS> &s, float weight,
                                                 const T *value, int lane, int width)
{
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        if (lane + ESP_WARP * i < width)
            s.out[i] = fmaf(weight, esp_to_float(value[lane + ESP_WARP * i]), s.out[i]);
}

/* Copies rows start..start+31 of a key/value head to shared memory. Rows before row 0, and row
 * `end` and all later rows, become zeros. Row `fresh` and later rows are not written, because
 * they are not in the cache yet. */
template <typename T>
static __device__ void stage(T *to, const T *from, int start, int end, int fresh, int width)
{
    const int eights = width / 8;
    for (int i = threadIdx.x; i < ESP_WARP * eights; i += THREADS) {
        const int row = i / eights, at = i % eights * 8;
        if (start + row >= fresh && start + row < end)
            continue;
        esp_eight<T> eight;
        if (start + row >= 0 && start + row < end)
            eight = esp_load_eight(from + (size_t)(start + row) * width + at);
        *reinterpret_cast<uint4 *>(to + row * (width + SPARE) + at) = eight.words;
    }
}

/* Finds the keys, or the values, of a head. For rows of earlier passes they are in the cache,
 * and for rows of this pass they are in shared memory. */
template <typename T> struct source {
    const T *cached, *made;
    int width, fresh; /* fresh: the first row that is in `made` */

    __device__ __forceinline__ const T *operator[](int row) const
    {
        return row < fresh ? cached + (size_t)row * width
                           : made + (row - fresh) * (width + SPARE);
    }
};

/* Processes a tile for one query, because the queries attend to different rows of this tile. */
template <typename T, int DIMS>
static __device__ void
gather_tile(const struct esp_cuda_arrays &at, const struct esp_cuda_attend<T> &a,
            const struct esp_cuda_query &query, const float *q, const struct source<T> &k,
            const struct source<T> &v, int start, struct state<DIMS> &s)
{
    const int lane = threadIdx.x % ESP_WARP, rank = start + lane;
    if (start >= query.length || start + ESP_WARP <= query.from)
        return;
    int row = -1;
    if (rank < query.from)
        row = -1;
    else if (rank < query.contiguous)
        row = rank;
    else if (rank < query.length)
        row = at.seen[(size_t)query.row * at.seen_stride + rank - query.contiguous];
    const float score = row >= 0 ? esp_cuda_capped(a.cap, dot(q, k[row], a.width)) : 0.0f;
    const float weight = weigh(s, score, row >= 0);
#pragma unroll 1
    for (int i = 0; i < ESP_WARP; i++) {
        const int other = __shfl_sync(ESP_ALL_LANES, row, i);
        const float share = __shfl_sync(ESP_ALL_LANES, weight, i);
        if (other >= 0)
            add_value(s, share, v[other], lane, a.width);
    }
}

/* Processes a tile that is staged in shared memory, for all queries of the warp. */
template <typename T, int DIMS>
static __device__ void shared_tile(const struct esp_cuda_attend<T> &a,
                                   const struct esp_cuda_query *query, const float *const *q,
                                   const T *k, const T *v, int start, struct state<DIMS> *s)
{
    const int lane = threadIdx.x % ESP_WARP, stride = a.width + SPARE;
    float weight[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        weight[j] = 0.0f;
        if (start < query[j].length && start + ESP_WARP > query[j].from) {
            const float score = esp_cuda_capped(a.cap, dot(q[j], k + lane * stride, a.width));
            const bool sees = start + lane < query[j].length && start + lane >= query[j].from;
            weight[j] = weigh(s[j], score, sees);
        }
    }
#pragma unroll 4
    for (int i = 0; i < ESP_WARP; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (start < query[j].length && start + ESP_WARP > query[j].from)
                add_value(s[j], __shfl_sync(ESP_ALL_LANES, weight[j], i), v + i * stride, lane,
                          a.width);
}

/* Limits a query to the keys of the sinks, which are rows 0, 1, ... of the cache, or to the
 * keys of the chunks. */
static __device__ __forceinline__ struct esp_cuda_query part_of(struct esp_cuda_query q,
                                                                bool sinks)
{
    if (sinks) {
        q.length = q.contiguous = q.sinks;
        q.from = 0;
    }
    return q;
}

/* Computes the tiles of a chunk, or of the sinks, for the queries of a block. Returns the
 * largest number of keys to which one of the queries attends. */
template <typename T, int DIMS>
static __device__ __forceinline__ int attend(const struct esp_cuda_arrays &at,
                                             const struct esp_cuda_attend<T> &a,
                                             float *q_shared, bool sinks)
{
    T *k_shared = reinterpret_cast<T *>(q_shared + QUERIES * a.width);
    T *v_shared = k_shared + ESP_WARP * (a.width + SPARE);
    T *k_made = v_shared + ESP_WARP * (a.width + SPARE);
    T *v_made = k_made + ESP_CUDA_FRESH * (a.width + SPARE);
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int kv_head = blockIdx.x, base = blockIdx.y * QUERIES;
    const int begin = sinks ? 0 : (int)blockIdx.z * ESP_CUDA_CHUNK - at.pass->shift;
    const int part = sinks ? a.parts : (int)blockIdx.z;
    const int fresh = esp_cuda_fresh_from(at, a), words = sinks ? 0 : at.pass->words;
    const T *k = a.k + (size_t)kv_head * a.cache_rows * a.width;
    const T *v = a.v + (size_t)kv_head * a.cache_rows * a.width;
    const struct source<T> keys = {
        k, k_made, a.width, fresh
    };
    const struct source<T> values = {
        v, v_made, a.width, fresh
    };

    int longest = 0, earliest = INT_MAX, most = 0;
    for (int i = 0; i < QUERIES; i++) {
        const struct esp_cuda_query whole = esp_cuda_find_query(at, a, kv_head, base + i);
        const struct esp_cuda_query q = part_of(whole, sinks);
        most = whole.length > most ? whole.length : most;
        longest = q.length > longest ? q.length : longest;
        earliest = q.length > 0 && q.from < earliest ? q.from : earliest;
        if (q.length > 0 && q.length > begin && i % WARPS == warp)
            esp_cuda_write_query(a.heads, q.row, q.head, sinks, q_shared + i * a.width,
                                 a.width);
    }
    if (begin >= longest)
        return most;
    if (words > 0 && begin + ESP_CUDA_CHUNK > at.pass->prefix)
        esp_cuda_make_keys(at, a, kv_head, at.pass->first, at.pass->first + at.pass->rows,
                           k_made, v_made, a.width + SPARE, a.width);
    __syncthreads();

    struct esp_cuda_query query[EACH];
    struct state<DIMS> s[EACH];
    const float *q[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int index = warp + WARPS * j; /* distributes even few queries over all warps */
        query[j] = part_of(esp_cuda_find_query(at, a, kv_head, base + index), sinks);
        q[j] = q_shared + index * a.width;
        s[j].top = -INFINITY;
        s[j].weight = 0.0f;
        for (int i = 0; i < DIMS; i++)
            s[j].out[i] = 0.0f;
    }
    const int end = sinks ? longest : begin + ESP_CUDA_CHUNK;
    for (int start = begin; start < end && start < longest; start += ESP_WARP) {
        if (start + ESP_WARP <= earliest)
            continue;
        if (words > 0 && start + ESP_WARP > at.pass->prefix) {
#pragma unroll
            for (int j = 0; j < EACH; j++)
                gather_tile(at, a, query[j], q[j], keys, values, start, s[j]);
            continue;
        }
        __syncthreads();
        stage(k_shared, k, start, longest, fresh, a.width);
        stage(v_shared, v, start, longest, fresh, a.width);
        esp_cuda_make_keys(at, a, kv_head, start,
                           longest < start + ESP_WARP ? longest : start + ESP_WARP, k_shared,
                           v_shared, a.width + SPARE, a.width);
        __syncthreads();
        shared_tile(a, query, q, k_shared, v_shared, start, s);
    }
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        if (begin >= query[j].length)
            continue;
        float *to = esp_cuda_place(a, query[j], part);
        for (int i = 0; i < DIMS; i++)
            if (lane + ESP_WARP * i < a.width)
                to[lane + ESP_WARP * i] = s[j].out[i];
        if (lane == 0) {
            to[a.width] = s[j].top;
            to[a.width + 1] = s[j].weight;
        }
    }
    return most;
}

/* Tells esp_cuda_join_queries() how many parts a query has. */
struct chunks {
    static const bool EXP2 = false;
    int shift;

    __device__ __forceinline__ int of(int keys) const
    {
        return (keys + shift + ESP_CUDA_CHUNK - 1) / ESP_CUDA_CHUNK;
    }
    __device__ __forceinline__ int operator()(const struct esp_cuda_query &q) const
    {
        return of(q.length);
    }
};

/* Computes attention to a chunk of keys, or to the sinks. Grid: (kv_head, tile of queries,
 * chunk or the sinks). With the widest heads, the shared memory of a multiprocessor has room
 * for two blocks. */
template <typename T, int DIMS>
static __global__ void __launch_bounds__(THREADS, DIMS > 4 ? 2 : 4)
    attend_kernel(struct esp_cuda_arrays at, struct esp_cuda_attend<T> a)
{
    /* Contains the queries (QUERIES, width), then the keys and values of a tile, and then the
     * keys and values of the rows of the pass. */
    ESP_SHARED(float, shared);
    const bool sinks = blockIdx.z == gridDim.z - 1, of_sinks = esp_cuda_of_sinks(at.pass);
    const struct chunks used = {at.pass->shift};
    if (sinks)
        esp_cuda_append(at, a, blockIdx.x);
    if (sinks && !of_sinks)
        return;
    const int most = attend<T, DIMS>(at, a, shared, sinks), parts = used.of(most);
    if (most > 0 && (sinks || (int)blockIdx.z < parts))
        esp_cuda_join_tile(at, a, QUERIES, used, parts + of_sinks,
                           reinterpret_cast<int *>(shared));
}

template <typename T>
static __global__ void join_kernel(struct esp_cuda_arrays at, struct esp_cuda_attend<T> a)
{
    const struct chunks used = {at.pass->shift};
    esp_cuda_join_queries(at, a, blockIdx.y, blockIdx.x * ESP_CUDA_JOINED, ESP_CUDA_JOINED,
                          used);
}

static size_t shared_bytes(int width, bool fresh, size_t value)
{
    const int rows = 2 * ESP_WARP + (fresh ? 2 * ESP_CUDA_FRESH : 0);
    return QUERIES * (size_t)width * sizeof(float) + (size_t)rows * (width + SPARE) * value;
}

template <typename T>
void esp_cuda_attention(struct esp_cuda_cache *c, const struct esp_cuda_layer *held, int layer,
                        int rows, int chunks)
{
    const struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    if (!backend->exact) {
        esp_cuda_attention_mma<T>(c, held, layer, rows, chunks);
        return;
    }
    struct esp_cuda_attend<T> a = esp_cuda_attend_of<T>(c, held, layer, rows);
    void (*const kernel)(struct esp_cuda_arrays, struct esp_cuda_attend<T>) =
        a.width <= ESP_WARP       ? attend_kernel<T, 1>
        : a.width <= 2 * ESP_WARP ? attend_kernel<T, 2>
        : a.width <= 4 * ESP_WARP ? attend_kernel<T, 4>
                                  : attend_kernel<T, 8>;
    a.parts = c->chunks;
    const int together = (int)(c->parts / ((size_t)a.heads.heads * (a.parts + 1)));
    for (; a.first_row < rows; a.first_row = a.end_row) {
        a.end_row = rows - a.first_row < together ? rows : a.first_row + together;
        const int queries = (a.end_row - a.first_row) * a.group;
        const dim3 grid(a.heads.kv_heads, (queries + QUERIES - 1) / QUERIES, chunks + 1);
        a.done = esp_cuda_done(c, queries < QUERIES ? queries : QUERIES, chunks);
        ESP_LAUNCH(kernel, grid, dim3(THREADS), shared_bytes(a.width, a.fresh, sizeof(T)),
                   backend->stream, c->at, a);
        if (!a.done)
            ESP_LAUNCH((join_kernel<T>), esp_cuda_join_grid(a.heads, queries),
                       dim3(ESP_CUDA_JOINED * ESP_WARP), 0, backend->stream, c->at, a);
    }
}

/* Raises the kernels' shared-memory limit, because the widest heads need more than the
 * default. The limit belongs to the kernel, not to a cache, so it is set for the widest heads:
 * caches with other widths may be open at the same time. */
template <typename T> static int prepare(struct esp_cuda_backend *backend)
{
    enum { WIDEST = 8 };
    return esp_cuda_allow_shared(backend, (const void *)attend_kernel<T, WIDEST>,
                                 shared_bytes(WIDEST * ESP_WARP, true, sizeof(T)));
}

int esp_cuda_attention_prepare(struct esp_cuda_backend *backend)
{
    int status = prepare<esp_bf16>(backend);
    if (status == ESP_OK)
        status = prepare<esp_f16>(backend);
    return status < 0 ? status : esp_cuda_attention_mma_prepare(backend);
}

template void esp_cuda_attention<esp_bf16>(struct esp_cuda_cache *,
                                           const struct esp_cuda_layer *, int, int, int);
template void esp_cuda_attention<esp_f16>(struct esp_cuda_cache *,
                                          const struct esp_cuda_layer *, int, int, int);
