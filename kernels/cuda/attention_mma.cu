/* attention_mma.cu - computes tree attention on tensor cores, in the default mode (without
 * --exact).
 *
 * A block processes 16, 64 or 128 queries of one key/value head, and a share of the keys
 * ("split-KV"). A query is one head of one row of the batch. A tile is a group of neighbouring
 * rows of the cache. The tiles of the prefix come first, then the tiles of the rows after the
 * prefix. A query attends to a row after the prefix only if that row is in its mask. One word
 * of the mask covers a whole tile. While a tile is computed, the next one is copied to shared
 * memory. Scores and sums are float32. Queries and weights are rounded to the type of the
 * cache, because tensor cores need this type. The algorithm is "FlashAttention-2" (Dao 2023).
 * The tree mask is from "SpecInfer" (Miao et al. 2024, section 4.2), and is stored as bits.
 *
 * With 64 or 128 queries, each warp processes 16 of them and all keys of a tile. A
 * multiprocessor has registers for two blocks of 64 queries or for one of 128. The block of 128
 * reads keys and values half as often, but needs more shared memory. With 16 queries, the warps
 * divide the keys of a tile among them, and the block joins the warps' sums at its end.
 * attention.h joins the shares. The sinks of a window are a separate share, as in attention.cu.
 *
 * The number of shares depends on the device and on the number of queries, so that small
 * passes over long texts occupy all multiprocessors.
 */
#include "kernels/cuda/attention.h"

enum { FEW_QUERIES = 32, HIGH = 4, HIGHEST = 8, STAGES = 2, QUERIES_TOGETHER = 4 };
/* The number of instructions that a warp executes for each tile of keys, with few and with many
 * queries. The numbers are from RESOURCES.md, for sm_90. Only predictions use them. */
enum { INSTRUCTIONS_FEW = 350, INSTRUCTIONS_MANY = 560 };

/* The sizes of a block. DIM is the width of a head, padded. WARPS_HIGH is the number of warps
 * that divide the queries among them. */
template <typename T, int DIM, int WARPS_HIGH> struct tiling {
    static const int KEYS = DIM <= 128 ? 64 : 32;             /* keys in a tile */
    static const int ACROSS = WARPS_HIGH > 1 ? 1 : KEYS / 16; /* warps that share the keys */
    static const int EACH = KEYS / ACROSS;                    /* keys of a tile per warp */
    static const int ROWS = 16 * WARPS_HIGH;                  /* queries in a block */
    static const int THREADS = ESP_WARP * WARPS_HIGH * ACROSS;
    static const int BLOCKS = WARPS_HIGH > HIGH ? 1 : 2; /* blocks per multiprocessor */
    /* Elements per row in shared memory. The 8 extra elements avoid bank conflicts. */
    static const int STRIDE = DIM + 8;
    static const int TILE = KEYS * STRIDE;
    static const size_t BYTES = (ROWS * STRIDE + STAGES * 2 * TILE) * sizeof(T);
};

/* Divides the cache rows to which a pass attends into tiles: first the rows of the prefix, and
 * then the rows after the prefix. */
struct tiles {
    /* keys: number of keys in a tile. prefix: number of cache rows of the prefix. end: number
     * of all cache rows. */
    int keys, prefix, end;
    int of_prefix, all;

    __device__ __forceinline__ int start(int tile) const
    {
        return tile < of_prefix ? tile * keys : prefix + (tile - of_prefix) * keys;
    }
    __device__ __forceinline__ int stop(int tile) const
    {
        const int limit = tile < of_prefix ? prefix : end, last = start(tile) + keys;
        return last < limit ? last : limit;
    }
};

static __device__ __forceinline__ struct tiles tiles_of(const struct esp_cuda_pass *pass,
                                                        bool sinks, int keys)
{
    struct tiles t;
    t.keys = keys;
    t.end = sinks ? pass->sinks : pass->first + pass->rows;
    t.prefix = !sinks && pass->words > 0 ? pass->prefix : t.end;
    t.of_prefix = (t.prefix + keys - 1) / keys;
    t.all = t.of_prefix + (t.end - t.prefix + keys - 1) / keys;
    return t;
}

static __device__ __forceinline__ int tiles_each(const struct tiles &t, int shares)
{
    return (t.all + shares - 1) / shares;
}

/* The cache rows to which a query attends: rows from..end-1. It attends to rows after the
 * prefix only if they are in its mask. */
struct sight {
    int from, end;
    const uint64_t *mask; /* NULL: the query attends to all rows from..end-1 */
};

static __device__ struct sight sight_of(const struct esp_cuda_arrays &at,
                                        const struct esp_cuda_query &q, bool sinks)
{
    struct sight s = {0, 0, NULL};
    if (q.length == 0 || (sinks && q.sinks == 0))
        return s;
    if (sinks) {
        s.end = q.sinks;
        return s;
    }
    s.from = q.from < q.contiguous
                 ? q.from
                 : at.seen[(size_t)q.row * at.seen_stride + q.from - q.contiguous];
    s.end = at.pass->first + q.row + 1;
    if (at.pass->words > 0)
        s.mask = at.mask + (size_t)q.row * at.pass->words;
    return s;
}

/* Returns to which keys of a tile a query attends, as one bit per key. */
static __device__ __forceinline__ uint64_t seen_of(const struct sight &s, const struct tiles &t,
                                                   int tile)
{
    const int start = t.start(tile), stop = s.end < t.stop(tile) ? s.end : t.stop(tile);
    uint64_t bits = ~(uint64_t)0;
    if (stop <= start || stop <= s.from)
        return 0;
    if (tile >= t.of_prefix && s.mask) {
        const int first = start - t.prefix; /* index of the tile's first bit in the mask */
        bits = s.mask[first / 64] >> first % 64;
    }
    if (stop - start < 64)
        bits &= ((uint64_t)1 << (stop - start)) - 1;
    return s.from > start ? bits >> (s.from - start) << (s.from - start) : bits;
}

/* Begins to copy a tile of keys or values, except row `fresh` and all later rows. */
template <typename T, int DIM, int WARPS_HIGH>
static __device__ __forceinline__ void load(T *to, const T *from, int start, int stop,
                                            int fresh, int width)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    /* A thread copies 8 columns of every `apart`-th row. */
    const int eights = DIM / 8, apart = Z::THREADS / eights;
    const int mine = threadIdx.x / eights, column = threadIdx.x % eights * 8;
    if (Z::THREADS % eights == 0 && width == DIM && start + Z::KEYS <= stop &&
        start + Z::KEYS <= fresh) { /* true for most tiles */
        from += (size_t)(start + mine) * DIM + column;
        to += mine * Z::STRIDE + column;
#pragma unroll
        for (int row = 0; row < Z::KEYS; row += apart)
            esp_copy_begin(to + row * Z::STRIDE, from + row * DIM, true);
        return;
    }
    for (int i = threadIdx.x; i < Z::KEYS * eights; i += Z::THREADS) {
        const int row = i / eights, k = i % eights * 8;
        const bool there = start + row < stop && k < width;
        if (start + row >= fresh && start + row < stop)
            continue;
        esp_copy_begin(to + row * Z::STRIDE + k,
                       there ? from + (size_t)(start + row) * width + k : from, there);
    }
}

/* The keys and values of a head in the cache. Row `fresh` and later rows are not in the cache
 * yet. */
template <typename T> struct cached {
    const T *k, *v;
    int fresh;
};

/* Begins to copy a tile to `to` (keys, then values). Rows that are not in the cache yet are
 * computed instead of copied. */
template <typename T, int DIM, int WARPS_HIGH>
static __device__ __forceinline__ void
begin_tile(const struct esp_cuda_arrays &at, const struct esp_cuda_attend<T> &a,
           const struct cached<T> &cached, const struct tiles &t, int tile, T *to)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    const int start = t.start(tile), stop = t.stop(tile);
    load<T, DIM, WARPS_HIGH>(to, cached.k, start, stop, cached.fresh, a.width);
    load<T, DIM, WARPS_HIGH>(to + Z::TILE, cached.v, start, stop, cached.fresh, a.width);
    esp_cuda_make_keys(at, a, blockIdx.x, start, stop, to, to + Z::TILE, Z::STRIDE, DIM);
}

/* The sums of a lane for its two queries, which have the indices lane / 4 and lane / 4 + 8
 * among the warp's 16 queries. */
template <int DIM> struct sums {
    float out[DIM / 8][4], top[2], weight[2];
};

/* Computes the scores of the warp's keys. They have the layout of matrix D in esp_mma(). */
template <typename T, int DIM, int WARPS_HIGH>
static __device__ __forceinline__ void score(float s[][4], const T *q, const T *k)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    const int lane = threadIdx.x % ESP_WARP, row = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int n = 0; n < Z::EACH / 8; n++)
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
    for (int d = 0; d < DIM; d += 16) {
        uint32_t a[4];
        esp_load_matrices(a, q + (row + matrix % 2 * 8) * Z::STRIDE + d + matrix / 2 * 8,
                          false);
#pragma unroll
        for (int n = 0; n < Z::EACH / 8; n += 2) {
            uint32_t b[4];
            esp_load_matrices(
                b, k + (8 * n + row + matrix / 2 * 8) * Z::STRIDE + d + matrix % 2 * 8, false);
            esp_mma(s[n], a[0], a[1], a[2], a[3], b[0], b[1], T());
            esp_mma(s[n + 1], a[0], a[1], a[2], a[3], b[2], b[3], T());
        }
    }
}

/* Turns scores into weights. If there is a new maximum, the sums so far are scaled down. CAPPED
 * means that scores have a cap. This is a template parameter, because the code for a cap is
 * long and most models have no cap. */
template <typename T, int DIM, int WARPS_HIGH, bool CAPPED>
static __device__ __forceinline__ void weigh(float s[][4], struct sums<DIM> &sums,
                                             const uint64_t seen[2], int first, float cap)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    const int t = threadIdx.x % 4;
    const uint64_t all = ~(uint64_t)0 >> (64 - Z::EACH);
    const uint64_t bits[2] = {seen[0] >> first & all, seen[1] >> first & all};
    float top[2] = {-INFINITY, -INFINITY}, shrink[2];
#pragma unroll
    for (int n = 0; CAPPED && n < Z::EACH / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] = esp_cuda_capped(cap, s[n][i]);
    if (__any_sync(ESP_ALL_LANES, (bits[0] & bits[1]) != all)) /* false for most tiles */
#pragma unroll
        for (int n = 0; n < Z::EACH / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (!(bits[i / 2] >> (8 * n + 2 * t + i % 2) & 1))
                    s[n][i] = -INFINITY;
#pragma unroll
    for (int n = 0; n < Z::EACH / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            top[i / 2] = fmaxf(top[i / 2], s[n][i]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        top[i] = fmaxf(top[i], __shfl_xor_sync(ESP_ALL_LANES, top[i], 1));
        top[i] = fmaxf(top[i], __shfl_xor_sync(ESP_ALL_LANES, top[i], 2));
        top[i] = fmaxf(sums.top[i], top[i] * ESP_LOG2_E);
        const float base = top[i] == -INFINITY ? 0.0f : top[i];
        shrink[i] = esp_exp2(sums.top[i] - base);
        sums.weight[i] *= shrink[i];
        sums.top[i] = top[i];
        top[i] = base;
    }
#pragma unroll
    for (int n = 0; n < Z::EACH / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = esp_exp2(fmaf(s[n][i], ESP_LOG2_E, -top[i / 2]));
            sums.weight[i / 2] += s[n][i];
        }
    if (__any_sync(ESP_ALL_LANES, shrink[0] != 1.0f || shrink[1] != 1.0f))
#pragma unroll
        for (int n = 0; n < DIM / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums.out[n][i] *= shrink[i / 2];
}

/* Adds the weighted values of the warp's keys to the sums. */
template <typename T, int DIM, int WARPS_HIGH>
static __device__ __forceinline__ void add_values(const float s[][4], struct sums<DIM> &sums,
                                                  const T *v)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    const int lane = threadIdx.x % ESP_WARP, row = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int key = 0; key < Z::EACH; key += 16) {
        const float *low = s[key / 8], *high = s[key / 8 + 1];
        const uint32_t a0 = esp_pack<T>(low[0], low[1]), a1 = esp_pack<T>(low[2], low[3]);
        const uint32_t a2 = esp_pack<T>(high[0], high[1]), a3 = esp_pack<T>(high[2], high[3]);
#pragma unroll
        for (int n = 0; n < DIM / 8; n += 2) {
            uint32_t b[4];
            esp_load_matrices(
                b, v + (key + row + matrix % 2 * 8) * Z::STRIDE + 8 * n + matrix / 2 * 8, true);
            esp_mma(sums.out[n], a0, a1, a2, a3, b[0], b[1], T());
            esp_mma(sums.out[n + 1], a0, a1, a2, a3, b[2], b[3], T());
        }
    }
}

/* Writes the sums of a warp that has processed all keys of each tile. */
template <typename T, int DIM>
static __device__ void write_sums(const struct esp_cuda_attend<T> &a,
                                  const struct sums<DIM> &sums,
                                  const struct esp_cuda_query q[2], int share)
{
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (q[i].length == 0)
            continue;
        float *to = esp_cuda_place(a, q[i], share);
#pragma unroll
        for (int n = 0; n < DIM / 8; n++)
#pragma unroll
            for (int j = 0; j < 2; j++)
                if (8 * n + 2 * t + j < a.width)
                    to[8 * n + 2 * t + j] = sums.out[n][2 * i + j];
        if (t == 0) {
            to[a.width] = sums.top[i];
            to[a.width + 1] = sums.weight[i];
        }
    }
}

/* Joins the sums of the warps in a block of 16 queries. These warps have processed different
 * keys of the same queries. `room`: shared memory, for (ACROSS, 16, DIM + 2) floats. */
template <typename T, int DIM, int WARPS_HIGH>
static __device__ void
join_warps(const struct esp_cuda_arrays &at, const struct esp_cuda_attend<T> &a,
           const struct sums<DIM> &sums, int base, int share, float *room)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    const int width = DIM + 2, lane = threadIdx.x % ESP_WARP, t = lane % 4;
    float *mine = room + (threadIdx.x / ESP_WARP * 16 + lane / 4) * width;
#pragma unroll
    for (int i = 0; i < 2; i++, mine += 8 * width) {
#pragma unroll
        for (int n = 0; n < DIM / 8; n++) {
            mine[8 * n + 2 * t] = sums.out[n][2 * i];
            mine[8 * n + 2 * t + 1] = sums.out[n][2 * i + 1];
        }
        if (t == 0) {
            mine[DIM] = sums.top[i];
            mine[DIM + 1] = sums.weight[i];
        }
    }
    __syncthreads();
    for (int row = 0; row < 16; row++) {
        const struct esp_cuda_query q = esp_cuda_find_query(at, a, blockIdx.x, base + row);
        float top = -INFINITY, shrink[Z::ACROSS];
        if (q.length == 0)
            continue;
        for (int i = 0; i < Z::ACROSS; i++)
            top = fmaxf(top, room[(16 * i + row) * width + DIM]);
        for (int i = 0; i < Z::ACROSS; i++)
            shrink[i] =
                top == -INFINITY ? 0.0f : exp2f(room[(16 * i + row) * width + DIM] - top);
        float *to = esp_cuda_place(a, q, share);
        for (int d = threadIdx.x; d <= DIM; d += Z::THREADS) {
            const int from = d < DIM ? d : DIM + 1; /* column of sum d, or of the weight */
            float sum = 0.0f;
            for (int i = 0; i < Z::ACROSS; i++)
                sum = fmaf(room[(16 * i + row) * width + from], shrink[i], sum);
            if (d == DIM) {
                to[a.width] = top;
                to[a.width + 1] = sum;
            } else if (d < a.width) {
                to[d] = sum;
            }
        }
    }
}

/* Writes the block's queries to shared memory as T. Columns after the width of a head and rows
 * without a query become zero. A warp loads several queries at the same time, so that it waits
 * for memory only once. */
template <typename T, int DIM, int WARPS_HIGH>
static __device__ void load_queries(const struct esp_cuda_arrays &at,
                                    const struct esp_cuda_attend<T> &a, bool sinks, int base,
                                    T *to)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    const int first = threadIdx.x / ESP_WARP, warps = Z::THREADS / ESP_WARP;
#pragma unroll 1
    for (int begin = 0; begin < Z::ROWS; begin += warps * QUERIES_TOGETHER) {
        int row[QUERIES_TOGETHER], head[QUERIES_TOGETHER];
        bool there[QUERIES_TOGETHER];
        T *place[QUERIES_TOGETHER];
#pragma unroll
        for (int i = 0; i < QUERIES_TOGETHER; i++) {
            const int index = begin + first + i * warps;
            const struct esp_cuda_query q =
                esp_cuda_find_query(at, a, blockIdx.x, base + index);
            there[i] = q.length > 0;
            row[i] = there[i] ? q.row : a.first_row;
            head[i] = q.head;
            place[i] = to + index * Z::STRIDE;
        }
        esp_cuda_write_queries<QUERIES_TOGETHER>(a.heads, row, head, there, sinks, place, DIM);
    }
}

/* Narrows the range of tiles begin..end-1 to the tiles to which at least one query of the block
 * attends. */
template <typename T, int ROWS>
static __device__ void clip(const struct esp_cuda_arrays &at,
                            const struct esp_cuda_attend<T> &a, const struct tiles &t, int base,
                            bool sinks, int *begin, int *end)
{
    int first = INT_MAX, last = 0;
    for (int i = threadIdx.x % ESP_WARP; i < ROWS; i += ESP_WARP) {
        const struct esp_cuda_query q = esp_cuda_find_query(at, a, blockIdx.x, base + i);
        const struct sight s = sight_of(at, q, sinks);
        first = s.end > 0 && s.from < first ? s.from : first;
        last = s.end > last ? s.end : last;
    }
    first = __reduce_min_sync(ESP_ALL_LANES, first);
    last = __reduce_max_sync(ESP_ALL_LANES, last);
    while (*begin < *end && t.stop(*begin) <= first)
        ++*begin;
    while (*begin < *end && t.start(*end - 1) >= last)
        --*end;
}

/* Computes attention to a share of the keys, or to the sinks, for the queries of a block. */
template <typename T, int DIM, int WARPS_HIGH, bool CAPPED>
static __device__ __forceinline__ void attend(const struct esp_cuda_arrays &at,
                                              const struct esp_cuda_attend<T> &a, T *q_shared)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    T *staged = q_shared + Z::ROWS * Z::STRIDE;
    const int warp = threadIdx.x / ESP_WARP, lane = threadIdx.x % ESP_WARP;
    const int high = warp % WARPS_HIGH, across = warp / WARPS_HIGH;
    const int base = blockIdx.y * Z::ROWS, share = blockIdx.z;
    const bool sinks = share == a.parts;
    const size_t head = (size_t)blockIdx.x * a.cache_rows * a.width;
    const struct tiles t = tiles_of(at.pass, sinks, Z::KEYS);
    int begin = sinks ? 0 : share * tiles_each(t, a.parts);
    int end = sinks ? t.all : begin + tiles_each(t, a.parts);
    end = end < t.all ? end : t.all;
    clip<T, Z::ROWS>(at, a, t, base, sinks, &begin, &end);

    struct esp_cuda_query query[2];
    struct sight sight[2];
    struct sums<DIM> sums;
    for (int i = 0; i < 2; i++) {
        const int index = base + 16 * high + lane / 4 + 8 * i;
        query[i] = esp_cuda_find_query(at, a, blockIdx.x, index);
        sight[i] = sight_of(at, query[i], sinks);
        if (query[i].length == 0) /* there is no query, and no mask is needed */
            sight[i].end = INT_MAX;
        sums.top[i] = -INFINITY;
        sums.weight[i] = 0.0f;
    }
#pragma unroll
    for (int n = 0; n < DIM / 8; n++)
        sums.out[n][0] = sums.out[n][1] = sums.out[n][2] = sums.out[n][3] = 0.0f;

    const struct cached<T> cached = {
        (const T *)a.k + head, (const T *)a.v + head, esp_cuda_fresh_from(at, a)
    };
    if (begin < end) {
        begin_tile<T, DIM, WARPS_HIGH>(at, a, cached, t, begin, staged);
        esp_copy_group();
        load_queries<T, DIM, WARPS_HIGH>(at, a, sinks, base, q_shared);
    }
    for (int tile = begin; tile < end; tile++) {
        const T *from = staged + (tile - begin) % STAGES * 2 * Z::TILE;
        if (tile + 1 < end)
            begin_tile<T, DIM, WARPS_HIGH>(at, a, cached, t, tile + 1,
                                           staged + (tile + 1 - begin) % STAGES * 2 * Z::TILE);
        esp_copy_group();
        esp_copy_wait<1>();
        __syncthreads();
        const int first = across * Z::EACH;
        const uint64_t seen[2] = {seen_of(sight[0], t, tile), seen_of(sight[1], t, tile)};
        float s[Z::EACH / 8][4];
        score<T, DIM, WARPS_HIGH>(s, q_shared + 16 * high * Z::STRIDE,
                                  from + first * Z::STRIDE);
        weigh<T, DIM, WARPS_HIGH, CAPPED>(s, sums, seen, first, a.cap);
        add_values<T, DIM, WARPS_HIGH>(s, sums, from + Z::TILE + first * Z::STRIDE);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) { /* the weight of a query is the sum over four lanes */
        sums.weight[i] += __shfl_xor_sync(ESP_ALL_LANES, sums.weight[i], 1);
        sums.weight[i] += __shfl_xor_sync(ESP_ALL_LANES, sums.weight[i], 2);
    }
    if (Z::ACROSS == 1)
        write_sums(a, sums, query, share);
    else
        join_warps<T, DIM, WARPS_HIGH>(at, a, sums, base, share,
                                       reinterpret_cast<float *>(staged));
}

/* Tells esp_cuda_join_queries() how many shares were computed for a query. The number is the
 * same for all queries. */
struct shares {
    static const bool EXP2 = true;
    int count;

    __device__ __forceinline__ int operator()(const struct esp_cuda_query &) const
    {
        return count;
    }
};

/* Returns the number of shares that are not empty. A tile has `keys` keys. */
static __device__ __forceinline__ struct shares shares_of(const struct esp_cuda_pass *pass,
                                                          int parts, int keys)
{
    const struct tiles t = tiles_of(pass, false, keys);
    const int each = tiles_each(t, parts);
    return {(t.all + each - 1) / each};
}

/* Computes attention to a share of the keys, or to the sinks. Grid: (kv_head, tile of queries,
 * share or the sinks). */
template <typename T, int DIM, int WARPS_HIGH, bool CAPPED>
static __global__ void __launch_bounds__(tiling<T, DIM, WARPS_HIGH>::THREADS,
                                         tiling<T, DIM, WARPS_HIGH>::BLOCKS)
    attend_mma_kernel(struct esp_cuda_arrays at, struct esp_cuda_attend<T> a)
{
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    ESP_SHARED(T, shared); /* queries (ROWS, STRIDE), then keys and values of each stage */
    esp_begin_early();
    const bool sinks = blockIdx.z == gridDim.z - 1, of_sinks = esp_cuda_of_sinks(at.pass);
    const struct shares used = shares_of(at.pass, a.parts, Z::KEYS);
    if (sinks)
        esp_cuda_append(at, a, blockIdx.x);
    if (sinks ? !of_sinks : (int)blockIdx.z >= used.count)
        return;
    attend<T, DIM, WARPS_HIGH, CAPPED>(at, a, shared);
    esp_cuda_join_tile(at, a, Z::ROWS, used, used.count + of_sinks,
                       reinterpret_cast<int *>(shared));
}

/* Joins the shares of each query. `keys`: number of keys in a tile. */
template <typename T>
static __global__ void join_mma_kernel(struct esp_cuda_arrays at, struct esp_cuda_attend<T> a,
                                       int keys)
{
    esp_begin_early();
    esp_cuda_join_queries(at, a, blockIdx.y, blockIdx.x * ESP_CUDA_JOINED, ESP_CUDA_JOINED,
                          shares_of(at.pass, a.parts, keys));
}

/* ------------------------------------------------------------------ launching */

/* A kernel for heads of up to `widest` numbers; the narrowest kernel that fits is used. */
template <typename T> struct variant {
    void (*kernel)(struct esp_cuda_arrays, struct esp_cuda_attend<T>);
    int widest, rows, threads, keys, blocks; /* blocks: per multiprocessor */
    size_t bytes;
};

template <typename T, int DIM, int WARPS_HIGH, bool CAPPED>
static struct variant<T> variant_of() {
    typedef struct tiling<T, DIM, WARPS_HIGH> Z;
    return {attend_mma_kernel<T, DIM, WARPS_HIGH, CAPPED>,
            DIM,
            Z::ROWS,
            Z::THREADS,
            Z::KEYS,
            Z::BLOCKS,
            Z::BYTES};
}

enum {
    WIDTHS = 4,
    CAPPED_WIDTHS = 2,
    HEIGHTS = 3,
    VARIANTS = HEIGHTS * (WIDTHS + CAPPED_WIDTHS)
};

/* Returns the kernels for 16, 64 and 128 queries: first without a cap, and then with a cap. */
template <typename T> static const struct variant<T> *variants() {
    static const struct variant<T> all[VARIANTS] = {
        variant_of<T, 64, 1, false>(), variant_of<T, 96, 1, false>(),
            variant_of<T, 128, 1, false>(), variant_of<T, 256, 1, false>(),
            variant_of<T, 64, HIGH, false>(), variant_of<T, 96, HIGH, false>(),
            variant_of<T, 128, HIGH, false>(), variant_of<T, 256, HIGH, false>(),
            variant_of<T, 64, HIGHEST, false>(), variant_of<T, 96, HIGHEST, false>(),
            variant_of<T, 128, HIGHEST, false>(), variant_of<T, 256, HIGHEST, false>(),
            variant_of<T, 128, 1, true>(), variant_of<T, 256, 1, true>(),
            variant_of<T, 128, HIGH, true>(), variant_of<T, 256, HIGH, true>(),
            variant_of<T, 128, HIGHEST, true>(), variant_of<T, 256, HIGHEST, true>()
    };
    return all;
}

/* Returns the cost of a launch over `chunks` chunks of keys, for predictions. */
template <typename T>
static struct esp_cuda_cost cost_of(const struct esp_cuda_attend<T> &a,
                                    const struct variant<T> *v, int chunks, int tiles_high)
{
    const double keys = (double)chunks * ESP_CUDA_CHUNK;
    const double seen = a.window > 0 && a.window < keys ? a.window : keys;
    const int warps = v->threads / ESP_WARP;
    struct esp_cuda_cost cost = {};
    cost.memory = 2 * sizeof(T) * seen * a.width * a.heads.kv_heads;
    cost.cache = (tiles_high - 1) * cost.memory;
    cost.flight = 2 * sizeof(T) * v->keys * a.width;
    cost.issue = seen / v->keys / a.parts * warps *
                 (v->rows > ESP_CUDA_TILE ? INSTRUCTIONS_MANY : INSTRUCTIONS_FEW);
    cost.products = 2 * seen / a.parts * v->rows * v->widest;
    /* The blocks for the sinks are not counted, because few of them have work. */
    cost.blocks = (double)a.heads.kv_heads * tiles_high * a.parts;
    cost.waits = 6;
    return cost;
}

/* Returns the narrowest kernel for heads of this width. height: 0, 1 or 2, for 16, 64 or 128
 * queries. */
template <typename T>
static const struct variant<T> *find_variant(int height, bool capped, int width) {
    const struct variant<T> *v =
        variants<T>() + (capped ? HEIGHTS * WIDTHS + height * CAPPED_WIDTHS : height * WIDTHS);
    while (v->widest < width)
        v++;
    return v;
}

/* Returns the kernel for a key/value head with `queries` queries. If there are more than 64
 * queries, and the device gives a block enough shared memory, this is the kernel for 128
 * queries. */
template <typename T>
static const struct variant<T> *choose_variant(const struct esp_cuda_backend *backend,
                                               int queries, bool capped, int width) {
    const struct variant<T> *highest = find_variant<T>(2, capped, width);
    if (queries <= FEW_QUERIES)
        return find_variant<T>(0, capped, width);
    return queries > highest->rows / 2 && highest->bytes <= backend->shared_limit
               ? highest
               : find_variant<T>(1, capped, width);
}

template <typename T>
void esp_cuda_attention_mma(struct esp_cuda_cache *c, const struct esp_cuda_layer *held,
                            int layer, int rows, int chunks)
{
    const struct esp_cuda_backend *backend = esp_cuda_backend_of(c);
    struct esp_cuda_attend<T> a = esp_cuda_attend_of<T>(c, held, layer, rows);
    const struct variant<T> *v =
        choose_variant<T>(backend, rows * a.group, a.cap > 0.0f, a.width);
    const int tiles_high = (rows * a.group + v->rows - 1) / v->rows;
    const int shares = v->blocks * backend->multiprocessors / (a.heads.kv_heads * tiles_high);
    a.parts = shares < 1 ? 1 : shares < chunks ? shares : chunks;
    const int together = (int)(c->parts / ((size_t)a.heads.heads * (a.parts + 1)));
    for (; a.first_row < rows; a.first_row = a.end_row) {
        a.end_row = rows - a.first_row < together ? rows : a.first_row + together;
        const int queries = (a.end_row - a.first_row) * a.group;
        const dim3 grid(a.heads.kv_heads, (queries + v->rows - 1) / v->rows, a.parts + 1);
        a.done = esp_cuda_done(c, queries < v->rows ? queries : v->rows, a.parts);
        const struct esp_cuda_cost cost = cost_of(a, v, chunks, (int)grid.y);
        esp_cuda_costs(esp_cuda_backend_of(c), &cost);
        ESP_LAUNCH_EARLY(esp_cuda_early(c), v->kernel, grid, dim3(v->threads), v->bytes,
                         backend->stream, c->at, a);
        if (!a.done)
            ESP_LAUNCH_EARLY(
                esp_cuda_early(c), (join_mma_kernel<T>), esp_cuda_join_grid(a.heads, queries),
                dim3(ESP_CUDA_JOINED * ESP_WARP), 0, backend->stream, c->at, a, v->keys);
    }
}

int esp_cuda_attention_mma_prepare(struct esp_cuda_backend *backend)
{
    int status = esp_cuda_allow_variants(backend, variants<esp_bf16>(), VARIANTS);
    return status < 0 ? status
                      : esp_cuda_allow_variants(backend, variants<esp_f16>(), VARIANTS);
}

template void esp_cuda_attention_mma<esp_bf16>(struct esp_cuda_cache *,
                                               const struct esp_cuda_layer *, int, int, int);
template void esp_cuda_attention_mma<esp_f16>(struct esp_cuda_cache *,
                                              const struct esp_cuda_layer *, int, int, int);
