/* attention.c - computes attention for a few queries and one key/value head of the cache.
 *
 * Keys are stored in blocks of 16 positions. In a block, the 16 numbers of a dimension are
 * adjacent. So each lane computes one score, as a chain of multiply-adds over head_dim. Blocks
 * are skipped if no query of a tile attends to any of their rows. In a large tree, many of the
 * blocks after the prefix are skipped. If the nodes of a subtree are adjacent, most of these
 * blocks are skipped (dyspec, app. C).
 *
 * Then the scores of the rows to which a query attends are arranged in the order of the query's
 * context. The index of a row in this order is its logical index. The sums that follow use only
 * this index: the softmax sums in 16 lanes by logical index, and values are added in two
 * chains, for even and odd logical indices. So a query's result is the same whether its
 * ancestors are adjacent or scattered among the branches of a tree.
 *
 * With a window, rows outside of the window get the weight 0, which changes no sum. The logical
 * index of a row is its index in the text minus a multiple of 16. So the order of the sums does
 * not depend on how many rows have been dropped from the cache.
 *
 * If possible, several queries share one loop over the keys and values: the heads of a group
 * (grouped-query attention, Ainslie et al. 2023) and neighbouring rows of a batch.
 */
#include "kernels/cpu/isa/parts.h"

#if ESP_SIMD == 3
enum { TILE_QUERIES = 4, TILE_BLOCKS = 4, TILE_VECTORS = 2 };
#else
enum { TILE_QUERIES = 2, TILE_BLOCKS = 2, TILE_VECTORS = 1 };
#endif

/* ------------------------------------------------------------------ scores */

/* Computes the scores of queries query..query+m-1 for the keys of blocks block[0..n-1]. */
V16 void score_tile(const struct esp_attention *a, int query, const int m, const int *block,
                    const int n)
{
    const size_t block_size = (size_t)a->head_dim * ESP_LANES;
    const float *k[TILE_BLOCKS];
    struct v16 sum[TILE_QUERIES][TILE_BLOCKS];
#pragma GCC unroll 4
    for (int j = 0; j < n; j++)
        k[j] = a->k + (size_t)block[j] * block_size;
#pragma GCC unroll 4
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            sum[i][j] = v16_set(0.0f);
    for (int d = 0; d < a->head_dim; d++) {
        struct v16 q[TILE_QUERIES];
#pragma GCC unroll 4
        for (int i = 0; i < m; i++)
            q[i] = v16_set(a->q[query + i][d]);
#pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            struct v16 key = v16_load(k[j] + (size_t)d * ESP_LANES);
#pragma GCC unroll 4
            for (int i = 0; i < m; i++)
                sum[i][j] = v16_fma(q[i], key, sum[i][j]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < m; i++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            v16_store(a->scores + (size_t)(query + i) * a->scores_stride +
                          (size_t)block[j] * ESP_LANES,
                      sum[i][j]);
}

static int sink_blocks(const struct esp_attention *a)
{
    const int blocks = (a->sinks + ESP_LANES - 1) / ESP_LANES;
    return blocks < a->blocks ? blocks : a->blocks;
}

/* Returns the first logical index after the sinks to which any of m queries attends. */
static int first_seen(const struct esp_attention *a, int query, int m)
{
    int from = a->from[query];
    for (int i = 1; i < m; i++)
        from = a->from[query + i] < from ? a->from[query + i] : from;
    return from > a->sinks ? from : a->sinks;
}

/* Returns whether any of m queries attends to a row of the block. Must be called for the blocks
 * in ascending order, because next[i] stores where in a->extra the search for query `query + i`
 * continues. */
static bool is_seen(const struct esp_attention *a, int query, int m, int block, int *next)
{
    const int first = block * ESP_LANES, end = first + ESP_LANES;
    bool seen = block < sink_blocks(a);
    for (int i = query; i < query + m && !seen; i++, next++) {
        const int32_t *extra = a->extra[i];
        const int extras = a->extras[i];
        while (*next < extras && extra[*next] < first)
            ++*next;
        seen = (a->from[i] < end && first < a->contiguous[i]) ||
               (*next < extras && extra[*next] < end);
    }
    return seen;
}

V16 void score_rows(const struct esp_attention *a, int query, const int m)
{
    int block[TILE_BLOCKS], count = 0, next[TILE_QUERIES] = {0};
    for (int i = 0; i < a->blocks; i++) {
        if (!is_seen(a, query, m, i, next))
            continue;
        block[count++] = i;
        if (count == TILE_BLOCKS) {
            score_tile(a, query, m, block, TILE_BLOCKS);
            count = 0;
        }
    }
    for (int i = 0; i < count; i++)
        score_tile(a, query, m, block + i, 1);
}

/* Computes the scores of the sinks again, with the vector a->for_sinks instead of a->q. */
V16 void score_sinks(const struct esp_attention *a, int query)
{
    float *score = a->scores + (size_t)query * a->scores_stride;
    for (int block = 0; block < sink_blocks(a); block++) {
        const float *k = a->k + (size_t)block * (size_t)a->head_dim * ESP_LANES;
        const int left = a->sinks - block * ESP_LANES;
        struct v16 sum = v16_set(0.0f);
        for (int d = 0; d < a->head_dim; d++)
            sum = v16_fma(v16_set(a->for_sinks[query][d]), v16_load(k + (size_t)d * ESP_LANES),
                          sum);
        v16_store_part(score + (size_t)block * ESP_LANES, left < ESP_LANES ? left : ESP_LANES,
                       sum);
    }
}

/* ------------------------------------------------------------------ softmax */

/* Turns scores, which are indexed by cache row, into weights, which are indexed by logical
 * index. Weights outside of the window are 0. Weights after the last index, up to a multiple of
 * 16, are also 0. Returns 1 / the sum of the weights. */
static float softmax_scores(const struct esp_attention *a, int query)
{
    const int contiguous = a->contiguous[query], extras = a->extras[query];
    const int n = contiguous + extras;
    float *score = a->scores + (size_t)query * a->scores_stride;
    for (int i = 0; i < extras; i++)
        score[contiguous + i] = score[a->extra[query][i]];
    if (a->cap > 0)
        ISA(cap)(score, n, a->cap);
    for (int i = a->sinks; i < a->from[query]; i++)
        score[i] = -INFINITY;
    for (int i = n; i % ESP_LANES; i++)
        score[i] = -INFINITY;

    struct v16 top = v16_load(score), sum = v16_set(0.0f);
    for (int i = ESP_LANES; i < n; i += ESP_LANES)
        top = v16_max(top, v16_load(score + i));
    const float *sink = a->sink_logit[query];
    const float most = v16_highest(top);
    const struct v16 highest = v16_set(sink && *sink > most ? *sink : most);
    for (int i = 0; i < n; i += ESP_LANES) {
        struct v16 weight = v16_exp(v16_sub(v16_load(score + i), highest));
        v16_store(score + i, weight);
        sum = v16_add(sum, weight);
    }
    float total = v16_sum(sum), weights[ESP_LANES];
    if (sink) {
        v16_store(weights, v16_exp(v16_sub(v16_set(*sink), highest)));
        total += weights[0];
    }
    return 1.0f / total;
}

/* ------------------------------------------------------------------ values */

/* Computes 16 n columns of the output, beginning with column 16 * vector, for queries
 * query..query+m-1. First adds the values of the rows to which all of these queries attend,
 * then those of the remaining rows of each query. sum[.][.][0] is for even logical indices, and
 * sum[.][.][1] is for odd logical indices. */
V16 void value_tile(const struct esp_attention *a, const float *normaliser, int query,
                    const int m, int vector, const int n)
{
    const float *v = a->v + (size_t)vector * ESP_LANES, *score[TILE_QUERIES];
    struct v16 sum[TILE_QUERIES][TILE_VECTORS][2];
    int common = a->contiguous[query];
#pragma GCC unroll 4
    for (int i = 0; i < m; i++) {
        score[i] = a->scores + (size_t)(query + i) * a->scores_stride;
        common = a->contiguous[query + i] < common ? a->contiguous[query + i] : common;
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            sum[i][j][0] = sum[i][j][1] = v16_set(0.0f);
    }
    common -= common % 2;
    const int sinks = (a->sinks + 1) / 2 * 2, first = first_seen(a, query, m) / 2 * 2;
    const int begin[2] = {0, first > sinks ? first : sinks};
    const int end[2] = {sinks < common ? sinks : common, common};
    for (int range = 0; range < 2; range++)
        for (int index = begin[range]; index < end[range]; index += 2) {
#pragma GCC unroll 2
            for (int odd = 0; odd < 2; odd++) {
                const float *row = v + (size_t)(index + odd) * a->v_stride;
#pragma GCC unroll 4
                for (int i = 0; i < m; i++) {
                    struct v16 weight = v16_set(score[i][index + odd]);
#pragma GCC unroll 4
                    for (int j = 0; j < n; j++)
                        sum[i][j][odd] =
                            v16_fma(weight, v16_load(row + j * ESP_LANES), sum[i][j][odd]);
                }
            }
        }
#pragma GCC unroll 4
    for (int i = 0; i < m; i++) {
        const int contiguous = a->contiguous[query + i];
        const int seen = contiguous + a->extras[query + i];
        for (int index = common; index < seen; index += 2) {
#pragma GCC unroll 2
            for (int odd = 0; odd < 2; odd++) {
                if (index + odd >= seen)
                    break;
                int at = index + odd;
                at = at < contiguous ? at : a->extra[query + i][at - contiguous];
                struct v16 weight = v16_set(score[i][index + odd]);
#pragma GCC unroll 4
                for (int j = 0; j < n; j++) {
                    const float *row = v + (size_t)at * a->v_stride + j * ESP_LANES;
                    sum[i][j][odd] = v16_fma(weight, v16_load(row), sum[i][j][odd]);
                }
            }
        }
#pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            int column = (vector + j) * ESP_LANES, left = a->head_dim - column;
            struct v16 value = v16_add(sum[i][j][0], sum[i][j][1]);
            value = v16_mul(value, v16_set(normaliser[query + i]));
            v16_store_part(a->out[query + i] + column, left < ESP_LANES ? left : ESP_LANES,
                           value);
        }
    }
}

V16 void value_rows(const struct esp_attention *a, const float *normaliser, int query,
                    const int m)
{
    int vector = 0, vectors = (a->head_dim + ESP_LANES - 1) / ESP_LANES;
    for (; vector + TILE_VECTORS <= vectors; vector += TILE_VECTORS)
        value_tile(a, normaliser, query, m, vector, TILE_VECTORS);
    for (; vector < vectors; vector++)
        value_tile(a, normaliser, query, m, vector, 1);
}

/* SWITCH calls f(.., m) with a constant for m, the number of queries. So the compiler makes a
 * separate version of f for each m. */
#define CASE(m, f, ...)                                                                        \
    case m:                                                                                    \
        f(__VA_ARGS__, m);                                                                     \
        break;
#define SWITCH(m, ...)                                                                         \
    switch (m) {                                                                               \
        CASE(1, __VA_ARGS__)                                                                   \
        CASE(2, __VA_ARGS__)                                                                   \
        MORE_CASES(__VA_ARGS__)                                                                \
    }
#if ESP_SIMD == 3
#define MORE_CASES(...) CASE(3, __VA_ARGS__) CASE(4, __VA_ARGS__)
#else
#define MORE_CASES(...)
#endif

void ISA(attention)(const struct esp_attention *a)
{
    float normaliser[ESP_QUERIES];
    for (int query = 0, m; query < a->queries; query += m) {
        m = a->queries - query < TILE_QUERIES ? a->queries - query : TILE_QUERIES;
        SWITCH(m, score_rows, a, query)
    }
    for (int i = 0; i < a->queries; i++) {
        if (a->for_sinks[i])
            score_sinks(a, i);
        normaliser[i] = softmax_scores(a, i);
    }
    for (int query = 0, m; query < a->queries; query += m) {
        m = a->queries - query < TILE_QUERIES ? a->queries - query : TILE_QUERIES;
        SWITCH(m, value_rows, a, normaliser, query)
    }
}
