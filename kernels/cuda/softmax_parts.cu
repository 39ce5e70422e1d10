/* softmax_parts.cu - computes softmax of a few long rows. Each step is a launch with one block
 * for each part of a row.
 *
 * If one block computed all exponentials of a long row, the rest of the device would be idle.
 * Here a block computes 4096 values. The last block of a row to finish combines the results of
 * the parts into what the next step needs: the largest value or the total. Only the search for
 * the last selected rank has one block per row.
 */
#include "kernels/cuda/softmax.h"

enum {
    PART_THREADS = 256,
    ROW_THREADS = 1024,
    PARTS_LEAST = 4, /* for rows with fewer parts, one launch is just as fast */
};

namespace
{

/* Results of the steps for one row. Later steps read these results. */
struct row_state {
    double total;
    uint64_t cut;
    float top, least;
};

/* Points to the arrays in the work memory. The first dimension of the grid is `rows`. */
struct work {
    struct row_state *state; /* (rows) */
    double *sums;            /* (rows, chunks) */
    float *tops;             /* (rows, parts) */
};

} // namespace

static __device__ struct work work_of(const struct esp_cuda_job *job, int rows)
{
    struct work w;
    w.state = reinterpret_cast<struct row_state *>(job->step.scratch + 1);
    w.sums = reinterpret_cast<double *>(w.state + rows);
    w.tops = reinterpret_cast<float *>(w.sums + (size_t)rows * esp_chunks(job->n));
    return w;
}

static __device__ struct esp_walk part_of(const struct esp_cuda_job *job)
{
    const int begin = blockIdx.y * ESP_PART, left = job->n - begin;
    return esp_softmax_row(job, begin, begin + (left < ESP_PART ? left : ESP_PART), NULL, 0);
}

/* Finds the largest value of each row. The grid is (rows, parts), as for all kernels in this
 * file except search(). */
template <class From> static __global__ void __launch_bounds__(PART_THREADS) find_top(From from)
{
    ESP_SHARED(float, room); /* a float per warp, then an int */
    const struct esp_cuda_job job = from();
    if ((int)blockIdx.x >= job.rows)
        return;
    const struct work work = work_of(&job, gridDim.x);
    const struct esp_walk w = part_of(&job);
    float *tops = work.tops + (size_t)blockIdx.x * gridDim.y;
    float top = esp_softmax_top(&w, room);
    if (threadIdx.x == 0)
        tops[blockIdx.y] = top;
    if (!esp_last_block(&job.step.scratch->counter[blockIdx.x], gridDim.y,
                        reinterpret_cast<int *>(room + PART_THREADS / ESP_WARP)))
        return;
    for (int i = threadIdx.x; i < (int)gridDim.y; i += PART_THREADS)
        top = tops[i] > top ? tops[i] : top;
    top = esp_block_max(top, room);
    if (threadIdx.x == 0) {
        work.state[blockIdx.x].top = top;
        work.state[blockIdx.x].cut = ESP_NO_RANK;
        if (!esp_finite(top))
            *job.numeric = 1;
    }
}

static __host__ __device__ bool cuts(const struct esp_cuda_job *job, bool mass)
{
    return mass ? job->step.top_p < 1.0 : job->step.top_k > 0 && job->step.top_k < job->n;
}

/* Finds the last selected rank. If `mass` is true, applies top-p to exponentials; otherwise
 * applies top-k to logits. Grid: (rows). */
template <class From>
static __global__ void __launch_bounds__(ROW_THREADS) search(From from, bool mass)
{
    ESP_SHARED(struct esp_select_room, room);
    const struct esp_cuda_job job = from();
    if ((int)blockIdx.x >= job.rows || !cuts(&job, mass))
        return;
    struct row_state *state = &work_of(&job, gridDim.x).state[blockIdx.x];
    const struct esp_walk w = esp_softmax_row(&job, 0, job.n, NULL, 0);
    if (!esp_finite(state->top))
        return;
    const struct esp_selection s = mass ? esp_softmax_mass(job.step.top_p, state->total, job.n)
                                        : esp_softmax_best(job.step.top_k);
    const uint64_t cut = esp_select(&w, s, room);
    if (threadIdx.x == 0) {
        state->cut = cut;
        state->least = s.least;
    }
}

/* Turns logits into exponentials. If `lower` is true, the result is 0 for ranks above the last
 * selected rank. Then computes the total of the row. */
template <class From>
static __global__ void __launch_bounds__(PART_THREADS) add_up(From from, bool lower)
{
    ESP_SHARED(double, room); /* a double per chunk, then an int */
    const struct esp_cuda_job job = from();
    if ((int)blockIdx.x >= job.rows || (lower && !cuts(&job, true)))
        return;
    const struct work work = work_of(&job, gridDim.x);
    struct row_state *state = &work.state[blockIdx.x];
    const struct esp_walk w = part_of(&job);
    const struct esp_walk_values f = {&w};
    const int chunks = esp_chunks(job.n);
    double *sums = work.sums + (size_t)blockIdx.x * chunks;
    const int first = w.begin / ESP_CHUNK, end = (w.end + ESP_CHUNK - 1) / ESP_CHUNK;
    if (!esp_finite(state->top))
        return;
    if (lower)
        esp_softmax_lower(&w, state->least, state->cut);
    else
        esp_softmax_raise(&w, state->top, job.step.factor, state->cut);
    esp_chunk_sums(f, first, end, w.end, sums + first);
    if (!esp_last_block(&job.step.scratch->counter[blockIdx.x], gridDim.y,
                        reinterpret_cast<int *>(room + chunks)))
        return;
    const double total = esp_sum_of_chunks(sums, chunks, room);
    if (threadIdx.x == 0)
        state->total = total;
}

template <class From> static __global__ void __launch_bounds__(PART_THREADS) scale(From from)
{
    const struct esp_cuda_job job = from();
    if ((int)blockIdx.x >= job.rows)
        return;
    const struct esp_walk w = part_of(&job);
    const struct row_state *state = &work_of(&job, gridDim.x).state[blockIdx.x];
    if (esp_finite(state->top))
        esp_softmax_scale(&w, state->total);
}

bool esp_cuda_softmax_splits(const struct esp_cuda_backend *b, int n, int count)
{
    const int parts = esp_parts(n);
    const size_t each = sizeof(struct row_state) + (size_t)esp_chunks(n) * sizeof(double) +
                        (size_t)parts * sizeof(float);
    return parts >= PARTS_LEAST && count <= b->multiprocessors / 2 && count <= ESP_COUNTERS &&
           (size_t)count * each <= esp_cuda_top_k_work(n);
}

/* Launches all steps. `best` and `mass` say whether to search for top-k and top-p. The steps
 * of a graph are fixed, so a graph has both searches. A search that has nothing to drop ends
 * immediately. */
template <class From>
static void launch(struct esp_cuda_backend *b, const From &from, int n, int rows, bool best,
                   bool mass)
{
    const dim3 grid(rows, esp_parts(n));
    const size_t tops = (PART_THREADS / ESP_WARP + 1) * sizeof(float),
                 sums = (size_t)(esp_chunks(n) + 1) * sizeof(double),
                 bins = sizeof(struct esp_select_room);
    ESP_LAUNCH(find_top<From>, grid, PART_THREADS, tops, b->stream, from);
    if (best)
        ESP_LAUNCH(search<From>, rows, ROW_THREADS, bins, b->stream, from, false);
    ESP_LAUNCH(add_up<From>, grid, PART_THREADS, sums, b->stream, from, false);
    if (mass) {
        ESP_LAUNCH(search<From>, rows, ROW_THREADS, bins, b->stream, from, true);
        ESP_LAUNCH(add_up<From>, grid, PART_THREADS, sums, b->stream, from, true);
    }
    ESP_LAUNCH(scale<From>, grid, PART_THREADS, 0, b->stream, from);
}

void esp_cuda_softmax_parts(struct esp_cuda_backend *b, const struct esp_cuda_job_given &given)
{
    const struct esp_cuda_job *job = &given.job;
    launch(b, given, job->n, job->rows, cuts(job, false), cuts(job, true));
}

void esp_cuda_softmax_parts(struct esp_cuda_backend *b, const struct esp_cuda_job_of_pass &pass,
                            int n, int rows)
{
    launch(b, pass, n, rows, true, true);
}
