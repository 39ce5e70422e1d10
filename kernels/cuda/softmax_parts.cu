/* softmax_parts.cu - softmax of few long rows: each step is a launch over parts of the rows.
 *
 * One block would compute all exponentials of a long row while the rest of the device waits.
 * Here 4096 values are a block's share. What a row needs to know between steps (its largest
 * value, the total, the last rank to be kept) is put together by the block of the row that ends
 * last; only the search for that rank has one block per row.
 */
#include "cuda/softmax.h"

enum {
    PART_THREADS = 256,
    ROW_THREADS = 1024,
    PARTS_LEAST = 4, /* shorter rows are as quick in one launch */
};

namespace
{

/* What is known of a row. */
struct row_state {
    double total;
    uint64_t cut;
    float top, least;
};

struct job {
    float *data;
    size_t stride;
    const int32_t *which;    /* (rows) */
    struct row_state *state; /* (rows) */
    double *sums;            /* (rows, chunks) */
    float *tops;             /* (rows, parts) */
    unsigned *counter;       /* (rows) */
    int *numeric;
    int n, chunks;
};

} // namespace

static __device__ struct esp_walk part_of(const struct job *job)
{
    const int begin = blockIdx.y * ESP_PART, left = job->n - begin;
    const struct esp_walk w = {job->data + (size_t)job->which[blockIdx.x] * job->stride, NULL,
                               begin, begin + (left < ESP_PART ? left : ESP_PART), 0};
    return w;
}

/* Grid of all but search(): (rows, parts). */
static __global__ void __launch_bounds__(PART_THREADS) find_top(struct job job)
{
    ESP_SHARED(float, room); /* (warps), (1) an int */
    const struct esp_walk w = part_of(&job);
    float *tops = job.tops + (size_t)blockIdx.x * gridDim.y;
    float top = esp_softmax_top(&w, room);
    if (threadIdx.x == 0)
        tops[blockIdx.y] = top;
    if (!esp_last_block(&job.counter[blockIdx.x], gridDim.y,
                        reinterpret_cast<int *>(room + PART_THREADS / ESP_WARP)))
        return;
    for (int i = threadIdx.x; i < (int)gridDim.y; i += PART_THREADS)
        top = tops[i] > top ? tops[i] : top;
    top = esp_block_max(top, room);
    if (threadIdx.x == 0) {
        job.state[blockIdx.x].top = top;
        job.state[blockIdx.x].cut = ESP_NO_RANK;
        if (!esp_finite(top))
            *job.numeric = 1;
    }
}

/* The last rank to be kept: of top_k logits, or of exponentials of mass top_p. Grid: (rows). */
static __global__ void __launch_bounds__(ROW_THREADS)
    search(struct job job, int top_k, double top_p)
{
    ESP_SHARED(struct esp_select_room, room);
    struct row_state *state = &job.state[blockIdx.x];
    const struct esp_walk w = {job.data + (size_t)job.which[blockIdx.x] * job.stride, NULL, 0,
                               job.n, 0};
    if (!esp_finite(state->top))
        return;
    const struct esp_selection s =
        top_k > 0 ? esp_softmax_best(top_k) : esp_softmax_mass(top_p, state->total, job.n);
    const uint64_t cut = esp_select(&w, s, room);
    if (threadIdx.x == 0) {
        state->cut = cut;
        state->least = s.least;
    }
}

/* Logits become exponentials, or (lower) exponentials past the cut 0; and the total of them. */
static __global__ void __launch_bounds__(PART_THREADS)
    add_up(struct job job, float factor, bool lower)
{
    ESP_SHARED(double, room); /* (chunks), (1) an int */
    struct row_state *state = &job.state[blockIdx.x];
    const struct esp_walk w = part_of(&job);
    const struct esp_walk_values f = {&w};
    double *sums = job.sums + (size_t)blockIdx.x * job.chunks;
    const int from = w.begin / ESP_CHUNK, to = (w.end + ESP_CHUNK - 1) / ESP_CHUNK;
    if (!esp_finite(state->top))
        return;
    if (lower)
        esp_softmax_lower(&w, state->least, state->cut);
    else
        esp_softmax_raise(&w, state->top, factor, state->cut);
    esp_chunk_sums(f, from, to, w.end, sums + from);
    if (!esp_last_block(&job.counter[blockIdx.x], gridDim.y,
                        reinterpret_cast<int *>(room + job.chunks)))
        return;
    const double total = esp_sum_of_chunks(sums, job.chunks, room);
    if (threadIdx.x == 0)
        state->total = total;
}

static __global__ void __launch_bounds__(PART_THREADS) scale(struct job job)
{
    const struct esp_walk w = part_of(&job);
    if (esp_finite(job.state[blockIdx.x].top))
        esp_softmax_scale(&w, job.state[blockIdx.x].total);
}

static int parts_of(int n)
{
    return (n + ESP_PART - 1) / ESP_PART;
}

bool esp_cuda_softmax_splits(const struct esp_cuda_rows *r, int count)
{
    const int n = r->base.vocabulary, parts = parts_of(n);
    const size_t each = sizeof(struct row_state) + (size_t)esp_chunks(n) * sizeof(double) +
                        (size_t)parts * sizeof(float);
    return parts >= PARTS_LEAST && count <= esp_cuda_of(&r->base)->multiprocessors / 2 &&
           count <= ESP_COUNTERS && (size_t)count * each <= r->work_bytes;
}

int esp_cuda_launch_softmax_parts(struct esp_cuda_rows *r, const int32_t *which, int count,
                                  float factor, const struct esp_sampling *sampling)
{
    struct esp_cuda_backend *b = esp_cuda_of(&r->base);
    const int n = r->base.vocabulary, chunks = esp_chunks(n);
    const dim3 grid(count, parts_of(n));
    const size_t tops = (PART_THREADS / ESP_WARP + 1) * sizeof(float),
                 sums = (size_t)(chunks + 1) * sizeof(double),
                 bins = sizeof(struct esp_select_room);
    struct job job = {r->data,
                      r->stride,
                      which,
                      esp_cuda_work<struct row_state>(r),
                      NULL,
                      NULL,
                      r->scratch->counter,
                      r->numeric,
                      n,
                      chunks};
    job.sums = reinterpret_cast<double *>(job.state + count);
    job.tops = reinterpret_cast<float *>(job.sums + (size_t)count * chunks);

    ESP_LAUNCH(find_top, grid, PART_THREADS, tops, b->stream, job);
    if (sampling->top_k > 0 && sampling->top_k < n)
        ESP_LAUNCH(search, count, ROW_THREADS, bins, b->stream, job, sampling->top_k, 1.0);
    ESP_LAUNCH(add_up, grid, PART_THREADS, sums, b->stream, job, factor, false);
    if (sampling->top_p < 1.0) {
        ESP_LAUNCH(search, count, ROW_THREADS, bins, b->stream, job, 0, sampling->top_p);
        ESP_LAUNCH(add_up, grid, PART_THREADS, sums, b->stream, job, factor, true);
    }
    ESP_LAUNCH(scale, grid, PART_THREADS, 0, b->stream, job);
    ESP_CUDA_LAUNCHED(b, "softmax");
    return ESP_OK;
}
