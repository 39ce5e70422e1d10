/* total.h - computes the sum of a function over the vocabulary, and the function divided by
 * this sum.
 *
 * Sums are added in double precision, in the order of row_sum() in cpu/isa/distribution.c. The
 * row is divided into chunks of 256 values. A chunk is summed in 16 lanes, the lanes are added
 * as a tree, and the chunks are added one after another. Half a warp sums a chunk, a block sums
 * sixteen chunks at a time, and the last block adds the chunks. So the sum does not depend on
 * the launch, and the results of softmax, remove and sample are bit-identical to the CPU's. In
 * combine, the CPU adds in a different order, so the last bits of its sums may differ. This
 * order has a price: one thread adds vocabulary / 256 chunks, one after another.
 *
 * combine, remove and the residual of ratio.cu differ only in the function. The function is a
 * struct with
 *     __device__ double operator()(int token) const;
 *     enum { clears }; // if the sum is 0: true sets the row to 0, false leaves it unchanged
 *
 * If a compiler might fuse a product and a sum, they are written as esp_times and esp_plus,
 * because the CPU backend rounds twice.
 */
#ifndef ESP_CUDA_TOTAL_H
#define ESP_CUDA_TOTAL_H

#include "kernels/cuda/rows.h"

enum { ESP_CHUNK = 256, ESP_CHUNK_LANES = 16, ESP_TOTAL_THREADS = 256 };

static __host__ __device__ inline int esp_chunks(int n)
{
    return (n + ESP_CHUNK - 1) / ESP_CHUNK;
}

static __device__ __forceinline__ double esp_times(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

static __device__ __forceinline__ double esp_plus(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

/* 16 threads call this to sum one chunk. The first of these threads gets the sum. If the chunk
 * is after the last one, the sum is 0. Every thread of the warp must call this. */
template <class F>
static __device__ __forceinline__ double esp_chunk_sum(const F &f, int chunk, int n)
{
    double sum = 0.0;
    const int first = chunk * ESP_CHUNK + threadIdx.x % ESP_CHUNK_LANES;
    for (int i = 0; i < ESP_CHUNK / ESP_CHUNK_LANES; i++) {
        int token = first + i * ESP_CHUNK_LANES;
        sum += token < n ? f(token) : 0.0;
    }
    for (int width = ESP_CHUNK_LANES / 2; width > 0; width /= 2)
        sum += __shfl_down_sync(ESP_ALL_LANES, sum, width, ESP_CHUNK_LANES);
    return sum;
}

/* Writes the sum over chunk c to sums[c - from], for from <= c < to. Every thread of the block
 * must call this. */
template <class F>
static __device__ void esp_chunk_sums(const F &f, int from, int to, int n, double *sums)
{
    const int group = threadIdx.x / ESP_CHUNK_LANES;
    for (int c = from; c < to; c += blockDim.x / ESP_CHUNK_LANES) {
        double sum = esp_chunk_sum(f, c + group, n);
        if (threadIdx.x % ESP_CHUNK_LANES == 0 && c + group < to)
            sums[c + group - from] = sum;
    }
}

/* Returns the total of all chunks to every thread of a block. `room` (chunks) is shared memory
 * that can be reused when this returns. `sums` and `room` may be the same memory. */
static __device__ inline double esp_sum_of_chunks(const double *sums, int chunks, double *room)
{
    if (sums != room)
        for (int c = threadIdx.x; c < chunks; c += blockDim.x)
            room[c] = sums[c];
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0.0;
        for (int c = 0; c < chunks; c++)
            total += room[c];
        room[0] = total;
    }
    __syncthreads();
    double total = room[0];
    __syncthreads();
    return total;
}

/* Returns the total of a row to every thread of a block. No other block computes this row. */
template <class F> static __device__ double esp_block_total(const F &f, int n, double *sums)
{
    const int chunks = (n + ESP_CHUNK - 1) / ESP_CHUNK;
    esp_chunk_sums(f, 0, chunks, n, sums);
    return esp_sum_of_chunks(sums, chunks, sums);
}

/* ------------------------------------------------------------------ f / sum of f */

template <class F>
static __device__ void esp_write_quotients(const F &f, int n, float *to, double total)
{
    const int step = blockDim.x * gridDim.x;
    if (!(total > 0.0) && !F::clears)
        return;
    double inverse = total > 0.0 ? 1.0 / total : 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        to[i] = (float)(f(i) * inverse);
}

/* Block b computes the sums of the chunks of part b. The last block to finish adds them. If the
 * row is a single part and `out` is not NULL, the block also writes the quotients to `out`. */
template <class F>
static __global__ void esp_total_kernel(F f, int n, float *out, double *sums, unsigned *counter,
                                        double *total, double *result)
{
    ESP_SHARED(double, room); /* a double per chunk, and then an int */
    const int chunks = (n + ESP_CHUNK - 1) / ESP_CHUNK, per = ESP_PART / ESP_CHUNK;
    const int from = blockIdx.x * per, to = from + per < chunks ? from + per : chunks;
    esp_chunk_sums(f, from, to, n, sums + from);
    if (!esp_last_block(counter, gridDim.x, reinterpret_cast<int *>(room + chunks)))
        return;
    const double sum = esp_sum_of_chunks(sums, chunks, room);
    if (threadIdx.x == 0)
        *total = *result = sum;
    if (gridDim.x == 1 && out)
        esp_write_quotients(f, n, out, sum);
}

template <class F>
static __global__ void esp_quotient_kernel(F f, int n, float *out, const double *total)
{
    esp_write_quotients(f, n, out, *total);
}

/* Launches the kernels of a call and ends the call. The kernels compute the sum of f and, if
 * `out` is not NULL, write f divided by this sum to `out`. If `sum` is not NULL, waits for the
 * sum. The caller's esp_cuda_begin() must have reserved memory for the sum. */
template <class F>
static int esp_cuda_total(struct esp_rows *rows, const F &f, float *out, double *sum,
                          const char *what)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_rows *r = esp_cuda_rows_of(rows);
    const int n = rows->vocabulary, parts = esp_parts(n);
    const size_t shared = (size_t)(esp_chunks(n) + 1) * sizeof(double);
    double *total = r->scratch->total, *result = esp_cuda_promise(rows, 1, sum);
    ESP_LAUNCH((esp_total_kernel<F>), parts, ESP_TOTAL_THREADS, shared, b->stream, f, n, out,
               esp_cuda_work<double>(r), r->scratch->counter, total, result);
    int status = esp_cuda_launch_status(b, what);
    if (status == ESP_OK && out && parts > 1) {
        ESP_LAUNCH((esp_quotient_kernel<F>), parts, ESP_TOTAL_THREADS, 0, b->stream, f, n, out,
                   total);
        status = esp_cuda_launch_status(b, what);
    }
    return sum ? esp_cuda_finish(rows, status, ESP_NOW) : status;
}

#endif
