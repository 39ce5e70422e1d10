/* attention.h - which keys a query sees, for both kinds of attention. */
#ifndef ESP_CUDA_ATTENTION_H
#define ESP_CUDA_ATTENTION_H

#include "kernels/cuda/cuda.h"

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

/* c->attended = attention of c->q over the cache by tensor cores. The order of the sums depends
 * on where keys lie in the cache and on the number of rows. */
template <typename T>
void esp_cuda_attention_mma(struct esp_cuda_cache *c, int layer, int rows, int chunks);
/* Once per backend: lets it use the shared memory that it needs. */
int esp_cuda_attention_mma_prepare(struct esp_cuda_backend *backend);

#endif
