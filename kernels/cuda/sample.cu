/* sample.cu - draws tokens from rows of probabilities, by inverting the cumulative sum. One
 * block makes all draws from a row.
 *
 * The additions and their order are the same as in `sample` of the CPU backend. So both
 * backends draw the same token for the same row and random number u. All threads sum chunks of
 * 256 tokens. One thread computes the running totals of these sums. All threads look for the
 * first chunk whose running total exceeds u * total, and one thread searches this chunk.
 * Chunks with excluded tokens are marked, and each of their tokens is compared with the
 * excluded tokens. A drawn token is excluded from the next draws, and only its chunk is summed
 * again.
 */
#include "kernels/cuda/total.h"

enum { THREADS = 512 };

namespace
{

struct draw {
    const float *row;            /* (n) */
    const int32_t *excluded;     /* (per) */
    const int32_t *drawn;        /* (done) */
    const unsigned char *marked; /* (chunks) 1 for a chunk with an excluded or drawn token */
    int per, done;

    __device__ double operator()(int token) const
    {
        double value = row[token];
        if (!marked[token / ESP_CHUNK])
            return value;
        for (int i = 0; i < per; i++)
            value = excluded[i] == token ? 0.0 : value;
        for (int i = 0; i < done; i++)
            value = drawn[i] == token ? 0.0 : value;
        return value;
    }
};

struct shared_part {
    double value[ESP_CHUNK];
    double total;
    int chunk, last;
    int32_t drawn[ESP_MAX_DRAWS];
};

} // namespace

/* Computes the running totals of the sums, and s->last, the last chunk whose sum is not 0. */
static __device__ void accumulate(const double *sums, double *totals, int chunks,
                                  struct shared_part *s)
{
    double total = 0.0;
    s->last = 0;
    for (int c = 0; c < chunks; c++) {
        if (sums[c] > 0.0)
            s->last = c;
        total += sums[c];
        totals[c] = total;
    }
    s->total = total;
    s->chunk = chunks;
}

/* Returns the first token at which the running total exceeds `target`. If there is none,
 * returns the last token with a probability above 0. */
static __device__ int32_t walk(const double *value, int first, int count, double before,
                               double target, bool passes)
{
    int32_t token = -1;
    for (int i = 0; i < count; i++) {
        if (!(value[i] > 0.0))
            continue;
        token = first + i;
        before += value[i];
        if (passes && before > target)
            break;
    }
    return token;
}

/* Thread 0 gets the token at which the running total exceeds u * total, or -1 if no token has a
 * probability above 0. All other threads get -1. */
static __device__ int32_t invert(const struct draw &f, int n, double u, const double *totals,
                                 struct shared_part *s)
{
    const int chunks = esp_chunks(n);
    const double target = esp_times(u, s->total);
    for (int c = threadIdx.x; c < chunks; c += THREADS)
        if (totals[c] > target) {
            atomicMin(&s->chunk, c);
            break;
        }
    __syncthreads();
    const bool passes = s->chunk < chunks;
    const int chunk = passes ? s->chunk : s->last, first = chunk * ESP_CHUNK;
    const int count = n - first < ESP_CHUNK ? n - first : ESP_CHUNK;
    for (int i = threadIdx.x; i < count; i += THREADS)
        s->value[i] = f(first + i);
    __syncthreads();
    if (threadIdx.x > 0 || !(s->total > 0.0))
        return -1;
    return walk(s->value, first, count, chunk > 0 ? totals[chunk - 1] : 0.0, target, passes);
}

static __global__ void __launch_bounds__(THREADS)
    sample(const float *data, size_t stride, int n, const int32_t *which, const double *u,
           int draws, const int32_t *excluded, int per, int32_t *tokens, double *values)
{
    /* Shared memory has one struct, followed by the arrays sums, totals and marked (chunks). */
    ESP_SHARED(struct shared_part, s);
    const int chunks = esp_chunks(n);
    double *sums = reinterpret_cast<double *>(s + 1), *totals = sums + chunks;
    unsigned char *marked = reinterpret_cast<unsigned char *>(totals + chunks);
    struct draw f = {data + (size_t)which[blockIdx.x] * stride,
                     excluded + (size_t)blockIdx.x * per,
                     s->drawn,
                     marked,
                     per,
                     0};

    for (int c = threadIdx.x; c < chunks; c += THREADS)
        marked[c] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < per; i += THREADS)
        if (f.excluded[i] >= 0)
            marked[f.excluded[i] / ESP_CHUNK] = 1;
    __syncthreads();
    esp_chunk_sums(f, 0, chunks, n, sums);
    while (f.done < draws) {
        const size_t at = (size_t)blockIdx.x * draws + f.done;
        __syncthreads();
        if (threadIdx.x == 0)
            accumulate(sums, totals, chunks, s);
        __syncthreads();
        const int32_t token = invert(f, n, u[at], totals, s);
        if (threadIdx.x == 0) {
            tokens[at] = s->drawn[f.done] = token;
            values[at] = token < 0 ? 0.0 : f.row[token];
            if (token >= 0)
                marked[token / ESP_CHUNK] = 1;
        }
        __syncthreads();
        const int32_t drawn = s->drawn[f.done++];
        if (drawn >= 0 && f.done < draws)
            esp_chunk_sums(f, drawn / ESP_CHUNK, drawn / ESP_CHUNK + 1, n,
                           sums + drawn / ESP_CHUNK);
    }
}

static size_t shared_bytes(int n)
{
    return sizeof(struct shared_part) + (size_t)esp_chunks(n) * (2 * sizeof(double) + 1);
}

int esp_cuda_sample_prepare(struct esp_cuda_backend *b)
{
    const size_t most = shared_bytes(ESP_VOCABULARY_MOST);
    return esp_cuda_allow_shared(b, (const void *)sample,
                                 most < b->shared_limit ? most : b->shared_limit);
}

int esp_cuda_sample(struct esp_rows *rows, const int32_t *which, const double *u, int count,
                    int draws, const int32_t *excluded, int per, int32_t *tokens,
                    double *values, enum esp_delivery when)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_rows *r = esp_cuda_rows_of(rows);
    const int n = rows->vocabulary;
    const int32_t *asked, *without = NULL;
    const double *at = NULL;
    if (!esp_draws_fit(rows, u, count, draws, excluded, per))
        return esp_cuda_refuse(rows);
    const size_t drawn = (size_t)count * (size_t)draws, gone = (size_t)count * (size_t)per;
    int status = esp_cuda_ask(rows, which, count,
                              2 * esp_cuda_room<double>(drawn) + esp_cuda_room<int32_t>(drawn) +
                                  esp_cuda_room<int32_t>(gone),
                              &asked);
    if (!asked)
        return status;
    status = esp_cuda_put(rows, u, drawn, &at);
    if (status == ESP_OK)
        status = esp_cuda_put(rows, excluded, gone, &without);
    if (status < 0)
        return status;
    int32_t *token = esp_cuda_promise(rows, drawn, tokens);
    double *value = esp_cuda_promise(rows, drawn, values);
    ESP_LAUNCH(sample, count, THREADS, shared_bytes(n), b->stream, r->data, r->stride, n, asked,
               at, draws, without, per, token, value);
    return esp_cuda_finish(rows, esp_cuda_launch_status(b, "sample"), when);
}
