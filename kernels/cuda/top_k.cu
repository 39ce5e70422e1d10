/* top_k.cu - finds the k largest values of each row, in descending order.
 *
 * For the few values that a tree needs (k up to 64), a block keeps 4096 values in registers, in
 * the form of ranks (rank.h). First it finds the best value of each thread. The k-th best of
 * these values is the limit. It is not better than the k-th best of all values, so the k best
 * values are all at least as good as the limit. The candidates are all values that are at least
 * as good as the limit. There are slightly more than k candidates, and at most 1024. The
 * position of a candidate in the result is the number of better candidates. A long row is
 * divided into parts of 4096 values, and the last block of the row to finish does the same with
 * the results of the parts.
 *
 * For larger k, a radix search finds the last rank that is selected, and a bitonic sort
 * (Batcher 1968) orders the values up to this rank.
 */
#include "kernels/cuda/rank.h"

#include <climits>

enum {
    THREADS = 256,
    EACH = ESP_PART / THREADS, /* ranks in the registers of a thread */
    MOST_K = 64,
    TOP_K_PIECE = 1 << 20, /* for larger k: bytes of results that are computed at a time */
    CANDIDATES = MOST_K * EACH,
    SORTERS = 1024,
    SORTED_IN_ROOM = 2048, /* ranks that are sorted in shared memory */
};

/* ------------------------------------------------------------------ small k */

namespace
{

struct few_room {
    uint64_t first[THREADS], candidate[CANDIDATES], best[MOST_K];
    unsigned candidates;
    int last;
};

} // namespace

/* Returns how many of the ranks are smaller than `rank`. */
static __device__ int place_of(uint64_t rank, const uint64_t *ranks, int count)
{
    int before = 0;
    for (int i = 0; i < count; i++)
        before += ranks[i] < rank;
    return before;
}

/* Writes the k best of the block's ranks to room->best. If there are fewer than k, ESP_NO_RANK
 * follows them. The limit is the k-th best of the best ranks of groups of 1, 2 or 4 threads.
 * There are at least 4 k groups, so only a few ranks that are not among the k best are better
 * than the limit. */
static __device__ void find_best(const uint64_t *rank, int k, struct few_room *room)
{
    const int thread = threadIdx.x, together = k <= 8 ? 4 : k <= 16 ? 2 : 1;
    uint64_t best = ESP_NO_RANK, limit;
    for (int i = 0; i < EACH; i++)
        best = rank[i] < best ? rank[i] : best;
    for (int step = 1; step < together; step *= 2) {
        uint64_t other = __shfl_xor_sync(ESP_ALL_LANES, best, step);
        best = other < best ? other : best;
    }
    if (thread % together == 0)
        room->first[thread / together] = best;
    if (thread < k)
        room->best[thread] = ESP_NO_RANK;
    if (thread == 0) {
        room->candidates = 0;
        room->candidate[0] = ESP_NO_RANK - 1;
    }
    __syncthreads();
    if (thread < THREADS / together) {
        best = room->first[thread];
        if (place_of(best, room->first, THREADS / together) == k - 1 && best != ESP_NO_RANK)
            room->candidate[0] = best;
    }
    __syncthreads();
    limit = room->candidate[0];
    __syncthreads();
    for (int i = 0; i < EACH; i++)
        if (rank[i] <= limit)
            room->candidate[atomicAdd(&room->candidates, 1u)] = rank[i];
    __syncthreads();
    const int count = (int)room->candidates;
    for (int i = thread; i < count; i += THREADS) {
        int place = place_of(room->candidate[i], room->candidate, count);
        if (place < k)
            room->best[place] = room->candidate[i];
    }
    __syncthreads();
}

/* Finds the k largest values of each row, for k up to MOST_K. Grid: (rows, parts). */
template <class From> static __global__ void __launch_bounds__(THREADS, 4) top_few(From from)
{
    ESP_SHARED(struct few_room, room);
    const struct esp_cuda_job job = from();
    if ((int)blockIdx.x >= job.rows)
        return;
    const float *row = job.data + (size_t)job.which[blockIdx.x] * job.stride;
    const int parts = gridDim.y, n = job.n, k = job.step.k;
    uint64_t *found = reinterpret_cast<uint64_t *>(job.step.scratch + 1); /* (rows, parts, k) */
    uint64_t rank[EACH], *own = found + (size_t)blockIdx.x * parts * k;
    bool number = true;
    for (int j = 0; j < EACH; j += 4) {
        const int i = blockIdx.y * ESP_PART + j * THREADS + 4 * threadIdx.x;
        float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < n)
            four = *reinterpret_cast<const float4 *>(row + i);
        const float value[4] = {four.x, four.y, four.z, four.w};
        for (int l = 0; l < 4; l++) {
            rank[j + l] = i + l < n ? esp_rank(value[l], i + l) : ESP_NO_RANK;
            number &= i + l >= n || value[l] == value[l];
        }
    }
    if (!number)
        *job.numeric = 1;
    find_best(rank, k, room);
    if (parts > 1) {
        if ((int)threadIdx.x < k)
            own[blockIdx.y * k + threadIdx.x] = room->best[threadIdx.x];
        if (!esp_last_block(&job.step.scratch->counter[blockIdx.x], gridDim.y, &room->last))
            return;
        for (int j = 0; j < EACH; j++) {
            const int i = j * THREADS + threadIdx.x;
            rank[j] = i < parts * k ? own[i] : ESP_NO_RANK;
        }
        find_best(rank, k, room);
    }
    if ((int)threadIdx.x < k) {
        const size_t at = (size_t)blockIdx.x * k + threadIdx.x;
        job.step.ids[at] = esp_rank_index(room->best[threadIdx.x]);
        job.step.values[at] = esp_rank_value(room->best[threadIdx.x]);
    }
}

int esp_cuda_top_k_at_once(int n, int k)
{
    const int parts = esp_parts(n);
    if (k > MOST_K || (int64_t)k * parts > ESP_PART)
        return 0;
    const size_t fit = esp_cuda_top_k_work(n) / ((size_t)parts * k * sizeof(uint64_t));
    return parts == 1 ? INT_MAX : fit < ESP_COUNTERS ? (int)fit : ESP_COUNTERS;
}

void esp_cuda_step_top_k(struct esp_cuda_cache *c, int rows)
{
    struct esp_cuda_backend *b = esp_cuda_backend_of(c);
    const struct esp_cuda_job_of_pass pass = {c->at.pass, c->at.wanted_at, b->numeric};
    ESP_LAUNCH(top_few<struct esp_cuda_job_of_pass>,
               dim3(rows, esp_parts(esp_model_desc_tokens(esp_cuda_desc_of(c)))), THREADS,
               sizeof(struct few_room), b->stream, pass);
}

/* ------------------------------------------------------------------ large k */

/* Sorts ranks in ascending order, in place; `size` is a power of two. */
static __device__ void sort(uint64_t *ranks, int size)
{
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < size / 2; i += SORTERS) {
                const int low = i / step * 2 * step + i % step, high = low + step;
                const uint64_t a = ranks[low], b = ranks[high];
                if ((a > b) == ((low & run) == 0)) {
                    ranks[low] = b;
                    ranks[high] = a;
                }
            }
            __syncthreads();
        }
}

namespace
{

struct many_room {
    struct esp_select_room select;
    uint64_t ranks[SORTED_IN_ROOM];
    unsigned found;
};

} // namespace

/* Finds the k largest values for large k. There is one block per row. `lists` (rows, size) is
 * memory for the k ranks if they do not fit into shared memory. */
static __global__ void __launch_bounds__(SORTERS)
    top_many(struct esp_cuda_job job, uint64_t *lists, int size)
{
    ESP_SHARED(struct many_room, room);
    float *row = job.data + (size_t)job.which[blockIdx.x] * job.stride;
    const int n = job.n, k = job.step.k;
    const struct esp_walk w = {row, NULL, 0, n, 0};
    const struct esp_selection best = {(uint64_t)k, 0.0, 0.0f};
    uint64_t *list = size > SORTED_IN_ROOM ? lists + (size_t)blockIdx.x * size : room->ranks;
    if (threadIdx.x == 0)
        room->found = 0;
    const uint64_t cut = esp_select(&w, best, &room->select);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += SORTERS) {
        const float value = row[i];
        if (value != value)
            *job.numeric = 1;
        const uint64_t rank = esp_rank(value, i);
        if (rank <= cut)
            list[atomicAdd(&room->found, 1u)] = rank;
    }
    for (int i = k + threadIdx.x; i < size; i += SORTERS)
        list[i] = ESP_NO_RANK;
    __syncthreads();
    sort(list, size);
    for (int i = threadIdx.x; i < k; i += SORTERS) {
        const size_t at = (size_t)blockIdx.x * k + i;
        job.step.ids[at] = esp_rank_index(list[i]);
        job.step.values[at] = esp_rank_value(list[i]);
    }
}

static int power_of_two(int least)
{
    int power = 1;
    while (power < least)
        power *= 2;
    return power;
}

/* ------------------------------------------------------------------ any k */

/* The work memory is large enough to sort one row, and also large enough for the results of all
 * parts of 64 rows. */
size_t esp_cuda_top_k_work(int n)
{
    const size_t sorted = (size_t)power_of_two(n) * sizeof(uint64_t);
    const size_t found = (size_t)64 * esp_parts(n) * MOST_K * sizeof(uint64_t);
    return sorted > found ? sorted : found;
}

static int launch(struct esp_cuda_rows *r, const int32_t *which, int count, int k, int32_t *ids,
                  float *values)
{
    struct esp_cuda_backend *b = esp_cuda_of(&r->base);
    const int n = r->base.vocabulary, few = esp_cuda_top_k_at_once(n, k),
              size = power_of_two(k);
    const int many = (int)(r->work_bytes / ((size_t)size * sizeof(uint64_t)));
    const int most = few > 0 ? few : many;
    int status = ESP_OK;
    for (int done = 0, now; done < count && status == ESP_OK; done += now) {
        now = count - done < most ? count - done : most;
        struct esp_cuda_job_given given = {esp_cuda_job_for(r, which + done, now)};
        given.job.step.k = k;
        given.job.step.ids = ids + (size_t)done * k;
        given.job.step.values = values + (size_t)done * k;
        if (few > 0)
            ESP_LAUNCH(top_few<struct esp_cuda_job_given>, dim3(now, esp_parts(n)), THREADS,
                       sizeof(struct few_room), b->stream, given);
        else
            ESP_LAUNCH(top_many, now, SORTERS, sizeof(struct many_room), b->stream, given.job,
                       esp_cuda_work<uint64_t>(r), size);
        status = esp_cuda_launch_status(b, "top_k");
    }
    return status;
}

static int top_k_piece(struct esp_rows *rows, const int32_t *which, int count, int k,
                       int32_t *ids, float *values, enum esp_delivery when)
{
    const size_t all = (size_t)count * (size_t)k;
    const int32_t *asked;
    const int status = esp_cuda_ask(
        rows, which, count, esp_cuda_room<int32_t>(all) + esp_cuda_room<float>(all), &asked);
    if (!asked)
        return status;
    int32_t *best = esp_cuda_promise(rows, all, ids);
    float *value = esp_cuda_promise(rows, all, values);
    return esp_cuda_finish(rows, launch(esp_cuda_rows_of(rows), asked, count, k, best, value),
                           when);
}

int esp_cuda_top_k(struct esp_rows *rows, const int32_t *which, int count, int k, int32_t *ids,
                   float *values, enum esp_delivery when)
{
    if (k < 1 || k > rows->vocabulary || !esp_rows_exist(rows, which, count))
        return esp_cuda_refuse(rows);
    const int usual = rows->capacity > count ? rows->capacity : count;
    const int fit = TOP_K_PIECE / (k * (int)(sizeof *ids + sizeof *values));
    const int most = k <= 64 ? usual : fit > 1 ? fit : 1;
    int status = ESP_OK;
    for (int done = 0, now; done < count && status == ESP_OK; done += now) {
        const size_t at = (size_t)done * (size_t)k;
        now = count - done < most ? count - done : most;
        status = top_k_piece(rows, which + done, now, k, ids + at, values + at, when);
    }
    return status;
}
