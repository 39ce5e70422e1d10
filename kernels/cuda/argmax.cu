/* argmax.cu - finds the most likely token of each row of logits. This is the token with the
 * smallest rank (rank.h). Each row is read once.
 *
 * If there are few rows, each row is divided into parts, so that all multiprocessors help to
 * read it. The last block of a row to finish finds the smallest of the parts' ranks. If a value
 * is not finite, the kernel sets the flag `numeric`.
 */
#include "kernels/cuda/rank.h"

enum { THREADS = 256, PART_LEAST = 8192, BLOCKS_EACH = 4 };

/* Every thread of the block passes a rank. Returns the smallest of these ranks, but only in
 * thread 0. */
static __device__ uint64_t least_of_block(uint64_t rank, uint64_t *room)
{
    const int warp = threadIdx.x / ESP_WARP;
    rank = esp_warp_least(rank);
    if (threadIdx.x % ESP_WARP == 0)
        room[warp] = rank;
    __syncthreads();
    for (int i = 0; i < THREADS / ESP_WARP && threadIdx.x == 0; i++)
        rank = room[i] < rank ? room[i] : rank;
    return rank;
}

/* Finds the most likely token of each row. Grid: (rows, parts). */
static __global__ void __launch_bounds__(THREADS)
    argmax(const float *data, size_t stride, int n, const int32_t *which, uint64_t *parts,
           unsigned *counter, int32_t *ids, int *numeric)
{
    ESP_SHARED(uint64_t, room); /* a rank per warp, then an int */
    const float *row = data + (size_t)which[blockIdx.x] * stride;
    uint64_t *own = parts + (size_t)blockIdx.x * gridDim.y, best = ESP_NO_RANK;
    bool finite = true;
    for (int i = 4 * (int)(blockIdx.y * THREADS + threadIdx.x); i < n;
         i += 4 * THREADS * (int)gridDim.y) {
        const float4 four = *reinterpret_cast<const float4 *>(row + i);
        const float value[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4 && i + j < n; j++) {
            uint64_t rank = esp_rank(value[j], i + j);
            best = rank < best ? rank : best;
            finite &= fabsf(value[j]) <= 3.402823466e38f;
        }
    }
    if (!finite)
        *numeric = 1;
    best = least_of_block(best, room);
    if (gridDim.y > 1) {
        if (threadIdx.x == 0)
            own[blockIdx.y] = best;
        int *last = reinterpret_cast<int *>(room + THREADS / ESP_WARP);
        if (!esp_last_block(&counter[blockIdx.x], gridDim.y, last))
            return;
        best = ESP_NO_RANK;
        for (int i = threadIdx.x; i < (int)gridDim.y; i += THREADS)
            best = own[i] < best ? own[i] : best;
        best = least_of_block(best, room);
    }
    if (threadIdx.x == 0)
        ids[blockIdx.x] = esp_rank_index(best);
}

int esp_cuda_argmax(struct esp_rows *rows, const int32_t *which, int count, int32_t *ids,
                    enum esp_delivery when)
{
    struct esp_cuda_backend *b = esp_cuda_of(rows);
    const struct esp_cuda_rows *r = esp_cuda_rows_of(rows);
    const int n = rows->vocabulary, most = (n + PART_LEAST - 1) / PART_LEAST;
    const int32_t *asked;
    const int status = esp_cuda_ask(rows, which, count, esp_cuda_room<int32_t>(count), &asked);
    if (!asked)
        return status;
    int32_t *found = esp_cuda_promise(rows, count, ids);
    int parts = BLOCKS_EACH * b->multiprocessors / count;
    if (parts > most)
        parts = most;
    if (parts < 1 || count > ESP_COUNTERS)
        parts = 1;
    const size_t shared = (THREADS / ESP_WARP + 1) * sizeof(uint64_t);
    ESP_LAUNCH(argmax, dim3(count, parts), THREADS, shared, b->stream, r->data, r->stride, n,
               asked, esp_cuda_work<uint64_t>(r), r->scratch->counter, found, b->numeric);
    return esp_cuda_finish(rows, esp_cuda_launch_status(b, "argmax"), when);
}
