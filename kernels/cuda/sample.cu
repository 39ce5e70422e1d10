/* sample.cu - draws tokens by inverting the cumulative sum of rows, one block per draw.
 *
 * The same additions in the same order as esp_row_sample() of the CPU backend, so that the same
 * row and number draw the same token: sums over chunks of 256 tokens in all threads, their
 * running total in one, the chunk in which it passes u * total in all, and a walk over that
 * chunk in one. Chunks that hold excluded tokens are marked and look every token up.
 */
#include "cuda/total.h"

enum { THREADS = 512 };

namespace
{

struct draw {
    const float *row;            /* (n) */
    const int32_t *excluded;     /* (per) */
    const unsigned char *marked; /* (chunks) has this chunk an excluded token? */
    int per;

    __device__ double operator()(int token) const
    {
        double value = row[token];
        for (int i = 0; i < per && marked[token / ESP_CHUNK]; i++)
            value = excluded[i] == token ? 0.0 : value;
        return value;
    }
};

struct shared_part {
    double value[ESP_CHUNK];
    double before, total;
    int chunk, last, token;
};

} // namespace

/* Running totals in place of the sums; `last` is the last chunk with anything in it. */
static __device__ void accumulate(double *sums, int chunks, struct shared_part *s)
{
    double total = 0.0;
    s->last = 0;
    for (int c = 0; c < chunks; c++) {
        if (sums[c] > 0.0)
            s->last = c;
        total += sums[c];
        sums[c] = total;
    }
    s->total = total;
    s->chunk = chunks;
    s->token = -1;
}

/* The first token at which the running total passes `target`; if it never does, the last one
 * that adds to it. */
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

static __global__ void __launch_bounds__(THREADS)
    sample(const float *data, size_t stride, int n, const int32_t *which, const double *u,
           const int32_t *excluded, int per, int32_t *tokens, double *values)
{
    ESP_SHARED(struct shared_part, s); /* (1), sums (chunks), marked (chunks) */
    const int chunks = (n + ESP_CHUNK - 1) / ESP_CHUNK;
    double *sums = reinterpret_cast<double *>(s + 1);
    unsigned char *marked = reinterpret_cast<unsigned char *>(sums + chunks);
    const struct draw f = {data + (size_t)which[blockIdx.x] * stride,
                           excluded + (size_t)blockIdx.x * per, marked, per};

    for (int c = threadIdx.x; c < chunks; c += THREADS)
        marked[c] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < per; i += THREADS)
        if (f.excluded[i] >= 0)
            marked[f.excluded[i] / ESP_CHUNK] = 1;
    __syncthreads();
    esp_chunk_sums(f, 0, chunks, n, sums);
    __syncthreads();
    if (threadIdx.x == 0)
        accumulate(sums, chunks, s);
    __syncthreads();

    const double target = esp_times(u[blockIdx.x], s->total);
    for (int c = threadIdx.x; c < chunks; c += THREADS)
        if (sums[c] > target) {
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
    if (threadIdx.x == 0) {
        double before = chunk > 0 ? sums[chunk - 1] : 0.0;
        int32_t token =
            s->total > 0.0 ? walk(s->value, first, count, before, target, passes) : -1;
        tokens[blockIdx.x] = token;
        values[blockIdx.x] = token < 0 ? 0.0 : f.row[token];
    }
}

int esp_cuda_launch_sample(struct esp_cuda_rows *r, const int32_t *which, const double *u,
                           int count, const int32_t *excluded, int per, int32_t *tokens,
                           double *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(&r->base);
    const int n = r->base.vocabulary, chunks = esp_chunks(n);
    const size_t shared = sizeof(struct shared_part) + (size_t)chunks * (sizeof(double) + 1);
    ESP_LAUNCH(sample, count, THREADS, shared, b->stream, r->data, r->stride, n, which, u,
               excluded, per, tokens, values);
    ESP_CUDA_LAUNCHED(b, "sample");
    return ESP_OK;
}
