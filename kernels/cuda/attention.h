/* attention.h - which keys a query sees, for both kinds of attention. */
#ifndef ESP_CUDA_ATTENTION_H
#define ESP_CUDA_ATTENTION_H

#include "kernels/cuda/cuda.h"

static const float ESP_LOG2_E = 1.44269504f;

/* A query: one head of one row of a pass. */
struct esp_cuda_query {
    int row, head,
        length;     /* length: keys in front of the query and its own; 0: an unused place */
    int from;       /* the first of these keys that the windows leave it */
    int sinks;      /* keys in front of the gap, 0: there is no gap */
    int contiguous; /* the first so many of these keys are cache rows 0, 1, ... */
};

/* What the window of the text leaves of what a query sees. A layer whose own window is smaller
 * sees no sinks. */
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

static __device__ __forceinline__ struct esp_cuda_query
esp_cuda_find_query(const struct esp_cuda_arrays &at, int index, int kv_head, int group,
                    int first_row, int end_row, int window)
{
    struct esp_cuda_query q;
    const int last = end_row < at.pass->rows ? end_row : at.pass->rows;
    q.row = first_row + index / group;
    q.head = kv_head * group + index % group;
    q.length = q.contiguous = q.from = q.sinks = 0;
    if (q.row < last) {
        const bool masked = at.pass->words > 0;
        q.contiguous = masked ? at.pass->prefix : at.pass->first + q.row + 1;
        q.length = q.contiguous + (masked ? at.seen_count[q.row] : 0);
        q.from = window > 0 && q.length > window ? q.length - window : 0;
        if (at.pass->recent > 0)
            esp_cuda_see_window(at, window, q);
    }
    return q;
}

static __device__ __forceinline__ float esp_cuda_capped(float cap, float score)
{
    return cap > 0.0f ? cap * tanhf(score / cap) : score;
}

/* Joins the parts of a query's keys to its result. parts: rows of `width` sums, the maximum and
 * the weight; the first `used` of them, and of a query with sinks also part `of_sinks`. sink: a
 * score that takes part in the softmax and adds no value (`struct esp_layer`), or NULL. EXP2:
 * maxima are logarithms of base 2. Every thread of the block calls this. */
template <bool EXP2, typename T>
static __device__ void esp_cuda_join_parts(const float *parts, int used, int of_sinks,
                                           bool sinks, int width, const float *sink,
                                           int head_dim, T *out)
{
    const int count = sinks ? used + 1 : used;
    const float score = !sink ? -INFINITY : EXP2 ? *sink * ESP_LOG2_E : *sink;
    float top = score, weight = 0.0f;
    for (int i = 0; i < count; i++)
        top = fmaxf(top, parts[(i < used ? i : of_sinks) * (width + 2) + width]);
    for (int i = 0; i < count; i++) {
        const float *part = parts + (i < used ? i : of_sinks) * (width + 2);
        const float below = part[width] - top;
        weight = fmaf(part[width + 1], EXP2 ? exp2f(below) : expf(below), weight);
    }
    if (sink)
        weight += EXP2 ? exp2f(score - top) : expf(score - top);
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
        float sum = 0.0f;
        for (int i = 0; i < count; i++) {
            const float *part = parts + (i < used ? i : of_sinks) * (width + 2);
            const float below = part[width] - top;
            sum = fmaf(part[d], EXP2 ? exp2f(below) : expf(below), sum);
        }
        out[d] = esp_from_float<T>(sum / weight);
    }
}

/* c->attended = attention of c->q over the cache by tensor cores. The order of the sums depends
 * on where keys lie in the cache and on the number of rows. */
template <typename T>
void esp_cuda_attention_mma(struct esp_cuda_cache *c, const struct esp_cuda_layer *held,
                            int layer, int rows, int chunks);
/* Once per backend: lets it use the shared memory that it needs. */
int esp_cuda_attention_mma_prepare(struct esp_cuda_backend *backend);

#endif
